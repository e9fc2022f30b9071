from pathlib import Path

import pytest

from memdock_evaluator.dataset import DatasetError, open_dataset
from support.data_files import DIALOGUE, GIGAMEMORY, LOCOMO, LONGMEMEVAL, OWN, ROW, changed, kinds, read, write


def test_ids_that_stand_twice_are_told_apart(tmp_path: Path) -> None:
    question = OWN["questions"][0]
    twice = changed(OWN, "questions", [question, question, question])
    twice = changed(twice, "sessions", 1, "turns", 0, "turn_id", "a1")

    first, second = read(tmp_path, twice, twice)

    assert (first.dialogue_id, second.dialogue_id) == ("support-1", "support-1~2")
    assert [question.question_id for question in first.questions] == ["q1", "q1~2", "q1~3"]
    assert [turn.turn_id for turn in first.turns] == ["a1", "s1-t1", "a1~2"]
    assert first.questions[0].evidence_turns == ("a1",)
    assert kinds(first) == ["turn-id-twice", "question-id-twice", "question-id-twice"]
    assert kinds(second)[0] == "turn-id-twice"
    assert "dialogue-id-twice" in kinds(second)


def test_two_languages_of_one_file_share_their_ids(tmp_path: Path) -> None:
    english, russian = read(tmp_path, OWN | {"language": "en"}, OWN | {"language": "ru"})

    assert english.dialogue_id == russian.dialogue_id == OWN["dialogue_id"]
    assert "dialogue-id-twice" not in kinds(russian)


def test_a_suffix_never_meets_an_id_of_the_file(tmp_path: Path) -> None:
    questions = [OWN["questions"][0] | {"question_id": name} for name in ("q", "q~2", "q")]

    [dialogue] = read(tmp_path, changed(OWN, "questions", questions))

    assert [question.question_id for question in dialogue.questions] == ["q", "q~2", "q~3"]


def test_blank_turns_empty_sessions_and_nuls_are_left_out(tmp_path: Path) -> None:
    record = changed(ROW, "conversation", 0, "conversation", 1, "message", " \n")
    record = changed(record, "conversation", 0, "conversation", 0, "message", "Ре\0кс")
    record = changed(record, "conversation", 1, "conversation", [])

    [dialogue] = read(tmp_path, record)

    assert [turn.text for turn in dialogue.turns] == ["Рекс"]
    assert [session.session_id for session in dialogue.sessions] == ["s1"]
    assert kinds(dialogue) == ["nul-in-text", "turn-blank", "session-empty"]


def test_a_session_dated_before_an_earlier_one_stays_where_it_is(tmp_path: Path) -> None:
    [dialogue] = read(tmp_path, changed(ROW, "conversation", 1, "session_datetime", "2023-01-01T00:00:00"))

    assert [session.index for session in dialogue.sessions] == [1, 2]
    assert [(oddity.kind, oddity.where) for oddity in dialogue.oddities] == [
        ("session-out-of-order", "dialogue 0, session 2")
    ]


@pytest.mark.parametrize(
    ("record", "language"),
    [(ROW, "ru"), (DIALOGUE, "ru"), (LOCOMO, "en"), (LONGMEMEVAL, "en"), (GIGAMEMORY, "ru"), (OWN, "de")],
)
def test_every_format_is_told_by_its_first_record(tmp_path: Path, record: dict[str, object], language: str) -> None:
    [dialogue] = read(tmp_path, record)

    assert dialogue.language == language
    assert len(dialogue.questions) >= 1


def test_a_file_of_no_known_format_lists_what_was_tried(tmp_path: Path) -> None:
    path = write(tmp_path, [{"prompt": "x", "completion": "y"}])

    with pytest.raises(DatasetError) as caught:
        open_dataset(path)

    assert "Its keys: completion, prompt." in str(caught.value)
    for name in ("rumba-rows", "rumba-dialogues", "locomo", "longmemeval", "gigamemory", "own"):
        assert f"{name} (" in str(caught.value)


@pytest.mark.parametrize(
    ("record", "sentence"),
    [
        ("[1, 2]", r"no known format\. Its keys: none, for it is no object\. "),
        ('"text"', "something else than an object stands here"),
        ("5", "something else than an object stands here"),
    ],
)
def test_a_record_that_is_no_object_is_refused(tmp_path: Path, record: str, sentence: str) -> None:
    (tmp_path / "x.json").write_text(f"[{record}]")

    with pytest.raises(DatasetError, match=f"record 1: {sentence}"):
        open_dataset(tmp_path / "x.json")


def test_an_object_without_keys_is_refused_as_an_object(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"record 1: no known format\. Its keys: none\. "):
        open_dataset(write(tmp_path, [{}]))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"format": "rumba"}, "there is no format 'rumba'; name one of rumba-rows, "),
        ({"zone": "Moscow"}, "there is no time zone 'Moscow'; give an IANA name"),
        ({"format": "own"}, "record 1, field dialogue_id: Field required"),
    ],
)
def test_what_is_declared_wrongly_is_said(tmp_path: Path, options: dict[str, str], sentence: str) -> None:
    with pytest.raises(DatasetError, match=sentence):
        read(tmp_path, GIGAMEMORY, **options)


def test_an_array_without_records_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("[]")

    with pytest.raises(DatasetError, match="holds no records"):
        open_dataset(tmp_path / "x.json")
