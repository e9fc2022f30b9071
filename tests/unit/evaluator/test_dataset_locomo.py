from pathlib import Path
from typing import Any

import pytest

from memdock_evaluator.dataset import DatasetError
from support.data_files import LOCOMO, changed, kinds, read, without


def asked(**question: Any) -> dict[str, Any]:
    return changed(
        LOCOMO, "qa", [{"question": "Who?", "answer": "Ann", "evidence": ["D1:1"], "category": 1, **question}]
    )


def test_speakers_become_roles_and_keep_their_names(tmp_path: Path) -> None:
    [dialogue] = read(tmp_path, LOCOMO)

    assert (dialogue.dialogue_id, dialogue.language) == ("conv-1", "en")
    assert [(turn.turn_id, turn.role, turn.name, turn.text) for turn in dialogue.turns] == [
        ("D1:1", "assistant", "Bob", "Bob: Hey Ann!"),
        ("D1:2", "user", "Ann", "Ann: Look! [shares a photo: a red kite]"),
        ("D1:3", "assistant", "Bob", "Bob: [shares a photo: two kites]"),
        ("D10:1", "user", "Ann", "Ann: Bye."),
    ]


def test_sessions_keep_numbers_and_times_and_a_lone_date_is_noted(tmp_path: Path) -> None:
    [dialogue] = read(tmp_path, LOCOMO)

    assert [(session.session_id, session.index) for session in dialogue.sessions] == [("s1", 1), ("s10", 10)]
    assert [f"{session.time:%Y-%m-%d %H:%M %A}" for session in dialogue.sessions if session.time] == [
        "2023-05-08 13:56 Monday",
        "2023-06-02 00:00 Friday",
    ]
    assert [(oddity.kind, oddity.where) for oddity in dialogue.oddities] == [
        ("date-without-session", "dialogue conv-1, session_2")
    ]


def test_adversarial_question_is_an_abstention(tmp_path: Path) -> None:
    [dialogue] = read(tmp_path, LOCOMO)

    plain, adversarial = dialogue.questions
    assert (plain.axes, plain.references, plain.abstention) == ({"category": "single-hop"}, ("a kite",), False)
    assert adversarial.axes == {"category": "adversarial"}
    assert adversarial.abstention
    assert adversarial.references == ("There is no such information in the conversation.",)


def test_adversarial_question_with_an_answer_is_judged_by_it(tmp_path: Path) -> None:
    [dialogue] = read(tmp_path, asked(answer="No", adversarial_answer="Yes", category=5))

    assert (dialogue.questions[0].references, dialogue.questions[0].abstention) == (("No",), False)
    assert "adversarial-with-answer" in kinds(dialogue)


def test_numeric_answer_is_read_as_digits_and_noted(tmp_path: Path) -> None:
    [dialogue] = read(tmp_path, asked(answer=2022))

    assert dialogue.questions[0].references == ("2022",)
    assert "answer-number" in kinds(dialogue)


@pytest.mark.parametrize(
    ("evidence", "turns", "oddity"),
    [
        (["D1:2", "D1:1"], ("D1:1", "D1:2"), []),
        (["D1:1; D10:1"], ("D1:1", "D10:1"), ["evidence-mended"]),
        (["D:10:1"], ("D10:1",), ["evidence-mended"]),
        (["D10:01"], ("D10:1",), []),
        (["D7:1", "D1:1"], ("D1:1",), ["evidence-unknown-turn"]),
        (["D"], (), ["evidence-unreadable"]),
        ([], (), []),
    ],
)
def test_dirty_evidence(tmp_path: Path, evidence: list[str], turns: tuple[str, ...], oddity: list[str]) -> None:
    [dialogue] = read(tmp_path, asked(evidence=evidence))

    assert dialogue.questions[0].evidence_turns == turns
    assert dialogue.questions[0].evidence_sessions == tuple(
        session for session in ("s1", "s10") if any(turn.startswith(f"D{session[1:]}:") for turn in turns)
    )
    assert kinds(dialogue) == ["date-without-session", *oddity]


@pytest.mark.parametrize(
    ("record", "field"),
    [
        (without(LOCOMO, "qa", 0, "answer"), "qa[0].answer"),
        (without(LOCOMO, "conversation", "speaker_a"), "conversation.speaker_a"),
        (changed(LOCOMO, "conversation", "session_1", 1, "dia_id", "Д 1"), "conversation.session_1[1].dia_id"),
        (changed(LOCOMO, "conversation", "session_1_date_time", "May"), "conversation.session_1_date_time"),
        (changed(LOCOMO, "qa", 1, "category", "five"), "qa[1].category"),
    ],
)
def test_broken_structure_names_its_field(tmp_path: Path, record: dict[str, Any], field: str) -> None:
    with pytest.raises(DatasetError) as caught:
        read(tmp_path, record)

    assert (caught.value.record, caught.value.field) == (1, field)
