from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import orjson
import pytest

from memdock_evaluator.dataset import DatasetError
from support.data_files import DIALOGUE, ROW, changed, kinds, read, without

SHAPES = pytest.mark.parametrize("record", [ROW, DIALOGUE], ids=["rows", "dialogues"])


@SHAPES
def test_a_record_is_read_whole(tmp_path: Path, record: dict[str, Any]) -> None:
    [dialogue] = read(tmp_path, record)

    assert (dialogue.dialogue_id, dialogue.language, dialogue.oddities) == ("0", "ru", ())
    assert [(session.session_id, session.index) for session in dialogue.sessions] == [("s1", 1), ("s2", 2)]
    first = dialogue.sessions[0].turns[0]
    assert (first.turn_id, first.role, first.text) == ("s1-t0", "user", "Мою собаку зовут Рекс!")
    assert first.time == datetime(2024, 3, 5, 23, 30, tzinfo=ZoneInfo("UTC"))
    [question] = dialogue.questions
    assert (question.question_id, question.text, question.references) == ("0|q0", "Как зовут мою собаку?", ("Рекс",))
    assert question.date == datetime(2024, 6, 1, 10, tzinfo=ZoneInfo("UTC"))
    assert question.axes == {
        "group": "extraction",
        "semantic": "StaticUser",
        "scope": "single",
        "temporality": "atemporal",
        "scope_temporality": "single+atemporal",
    }
    assert question.evidence_sessions == ("s1",)
    assert not question.abstention


@SHAPES
@pytest.mark.parametrize("zone", ["Asia/Vladivostok", "America/New_York"])
def test_weekday_is_that_of_the_file_in_any_zone(tmp_path: Path, record: dict[str, Any], zone: str) -> None:
    [dialogue] = read(tmp_path, record, zone=zone)

    time = dialogue.sessions[0].time
    assert time is not None
    assert f"{time:%A %H:%M}" == "Tuesday 23:30"
    assert time.tzinfo == ZoneInfo(zone)


def test_rows_may_stand_in_any_order(tmp_path: Path) -> None:
    rows = [
        changed(ROW, "id", f"{dialogue}|q{place}") | {"conversation_idx": dialogue}
        for place in range(3)
        for dialogue in (4, 2, 9)
    ]

    dialogues = read(tmp_path, *rows)

    assert [dialogue.dialogue_id for dialogue in dialogues] == ["4", "2", "9"]
    assert [question.question_id for question in dialogues[1].questions] == ["2|q0", "2|q1", "2|q2"]
    assert all(dialogue.oddities == () for dialogue in dialogues)


def test_another_conversation_in_a_later_row_is_noted(tmp_path: Path) -> None:
    later = changed(ROW, "conversation", 0, "conversation", 0, "message", "Мою собаку зовут Пушок!") | {"id": "0|q1"}

    [dialogue] = read(tmp_path, ROW, later)

    assert next(dialogue.turns).text == "Мою собаку зовут Рекс!"
    assert [(oddity.kind, oddity.where) for oddity in dialogue.oddities] == [
        ("conversation-differs", "dialogue 0, question 0|q1")
    ]


@pytest.mark.parametrize(
    ("change", "value"),
    [
        ("evidence", "[1]"),
        ("category", ["StaticUser", "single", "atemporal"]),
        ("conversation", orjson.dumps(ROW["conversation"]).decode()),
        ("answer", 7),
        ("id", 3),
    ],
)
def test_the_obvious_is_repaired_without_a_word(tmp_path: Path, change: str, value: object) -> None:
    [dialogue] = read(tmp_path, changed(ROW, change, value))

    assert dialogue.oddities == ()
    assert dialogue.questions[0].evidence_sessions == ("s1",)


@pytest.mark.parametrize(
    ("record", "field"),
    [
        (without(ROW, "question"), "question"),
        (changed(ROW, "question", "  "), "question"),
        (changed(ROW, "answer", {"a": 1}), "answer[0]"),
        (changed(ROW, "question_date", "soon"), "question_date"),
        (changed(ROW, "conversation", []), "conversation"),
        (without(ROW, "conversation"), "conversation"),
        (
            changed(ROW, "conversation", 1, "conversation", 0, "role", "narrator"),
            "conversation[1].conversation[0].role",
        ),
        (changed(ROW, "conversation", 1, "session_datetime", "2024-13-01"), "conversation[1].session_datetime"),
        (changed(ROW, "conversation", 1, "session_idx", 1), "conversation"),
    ],
)
def test_a_broken_row_is_named_before_any_dialogue_is_out(tmp_path: Path, record: dict[str, Any], field: str) -> None:
    with pytest.raises(DatasetError) as caught:
        next(iter(read(tmp_path, ROW, ROW | {"conversation_idx": 1, "id": "1|q0"}, record, format="rumba-rows")))

    assert (caught.value.record, caught.value.field) == (3, field)
    assert f"data.jsonl, record 3, field {field}: " in str(caught.value)


@pytest.mark.parametrize(
    ("record", "field"),
    [
        (changed(DIALOGUE, "qa", 0, "question", ""), "qa[0].question"),
        (without(DIALOGUE, "qa", 0, "answer"), "qa[0].answer"),
        (changed(DIALOGUE, "qa", 0, "evidence", [5]), "qa[0].evidence[0]"),
        (changed(DIALOGUE, "conversation", "session_2", 1, "text", None), "conversation.session_2[1].text"),
        (changed(DIALOGUE, "conversation", "session_2_date_time", "x"), "conversation.session_2_date_time"),
    ],
)
def test_a_broken_dialogue_names_its_field(tmp_path: Path, record: dict[str, Any], field: str) -> None:
    with pytest.raises(DatasetError) as caught:
        read(tmp_path, DIALOGUE, record)

    assert (caught.value.record, caught.value.field) == (2, field)


@SHAPES
def test_a_category_that_cannot_be_read_keeps_its_question(tmp_path: Path, record: dict[str, Any]) -> None:
    path = ("category",) if "category" in record else ("qa", 0, "category")

    [dialogue] = read(tmp_path, changed(record, *path, "StaticUser, sometimes"))

    assert dialogue.questions[0].axes == {"category": "StaticUser, sometimes"}
    assert kinds(dialogue) == ["category-unreadable"]


@pytest.mark.parametrize(
    ("category", "tag", "expression", "oddity"),
    [
        ("DateExtraction, single, temporal", "explicit", "explicit", []),
        ("DateExtraction, single, temporal", "no temporal expression", "none", []),
        ("DateExtraction, single, temporal", "", None, ["expression-missing"]),
        ("DateExtraction, single, temporal", "maybe", None, ["expression-unreadable"]),
        ("StaticUser, single, atemporal", "implicit", None, ["expression-unexpected"]),
        ("StaticUser, single, atemporal", "none", None, []),
    ],
)
def test_temporal_expression(
    tmp_path: Path, category: str, tag: str, expression: str | None, oddity: list[str]
) -> None:
    [dialogue] = read(tmp_path, ROW | {"category": category, "text_temporal_expression": tag})

    assert dialogue.questions[0].axes.get("temporal_expression") == expression
    assert kinds(dialogue) == oddity


def test_an_abstention_is_one_and_a_deletion_is_none(tmp_path: Path) -> None:
    categories = ["Abstention, single, atemporal", "DeleteInfo, multi, atemporal"]

    [dialogue] = read(tmp_path, *(ROW | {"id": category, "category": category} for category in categories))

    assert [question.abstention for question in dialogue.questions] == [True, False]


@pytest.mark.parametrize(
    ("names", "roles", "oddity"),
    [
        (("user_0", "assistant"), ["user", "assistant"], []),
        (("assistant", "user_0"), ["assistant", "user"], []),
        (("GigaChat assistant", "Маша"), ["assistant", "user"], []),
        (("Маша", "Саша"), ["user", "assistant"], ["speaker-guessed"]),
    ],
)
def test_the_user_follows_from_the_names(
    tmp_path: Path, names: tuple[str, str], roles: list[str], oddity: list[str]
) -> None:
    a, b = names
    said = [{"speaker": a, "text": "раз"}, {"speaker": b, "text": "два"}]
    conversation = {"speaker_a": a, "speaker_b": b, "session_1": said}

    [dialogue] = read(tmp_path, changed(DIALOGUE, "conversation", conversation) | {"qa": []})

    assert [turn.role for turn in dialogue.turns] == roles
    assert kinds(dialogue) == oddity


@pytest.mark.parametrize(
    ("evidence", "turns", "oddity"),
    [
        ({"content": "Мою собаку зовут Рекс!"}, ("s1-t0",), []),
        ({"content": " мою  собаку зовут рекс "}, ("s1-t0",), []),
        ({"content": "собаку зовут Рекс"}, ("s1-t0",), []),
        ("Мою собаку зовут Рекс!", ("s1-t0",), []),
        ({"content": "Красивое имя."}, ("s1-t1",), ["evidence-ambiguous"]),
        ({"content": "Красивое имя.", "session_idx": 2}, ("s2-t1",), []),
        ({"content": "собаку зовут Ре"}, (), ["evidence-not-found"]),
        ({"content": "Кота зовут Рекс"}, (), ["evidence-not-found"]),
        ({"content": ""}, (), ["evidence-not-found"]),
        ({"content": "", "session_idx": 2}, (), []),
    ],
)
def test_evidence_is_aligned_to_turns(
    tmp_path: Path, evidence: object, turns: tuple[str, ...], oddity: list[str]
) -> None:
    [dialogue] = read(tmp_path, changed(DIALOGUE, "qa", 0, "evidence", [evidence]))

    assert dialogue.questions[0].evidence_turns == turns
    assert kinds(dialogue) == oddity
