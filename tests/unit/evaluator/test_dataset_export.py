from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memdock_evaluator.dataset import DatasetError, Dialogue, DialogueTurn, Question, Session, open_dataset
from memdock_evaluator.dataset.export import SHAPES, export_dataset
from support.data_files import DIALOGUE, LOCOMO, OWN, ROW, changed, read


def through(folder: Path, dialogues: list[Dialogue], shape: str) -> list[Dialogue]:
    path = folder / f"out.{shape}"
    size = export_dataset(dialogues, shape, path)
    assert size == path.stat().st_size
    return list(open_dataset(path))


@pytest.mark.parametrize("record", [ROW, DIALOGUE], ids=["rows", "dialogues"])
@pytest.mark.parametrize("shape", SHAPES)
def test_rumba_goes_through_every_shape_unchanged(tmp_path: Path, record: dict[str, Any], shape: str) -> None:
    dialogues = read(tmp_path, record)

    assert through(tmp_path, dialogues, shape) == dialogues


def test_evidence_by_text_that_was_said_twice_comes_back_to_its_turn(tmp_path: Path) -> None:
    row = changed(ROW, "evidence", [2]) | {"evidence_turns": ["s2-t1"]}
    dialogues = read(tmp_path, row)

    assert through(tmp_path, dialogues, "dialogues") == dialogues


def test_several_right_answers_survive(tmp_path: Path) -> None:
    dialogues = read(tmp_path, changed(ROW, "answer", ["Рекс", "Рексом"]))

    assert dialogues[0].questions[0].references == ("Рекс", "Рексом")
    for shape in SHAPES:
        assert through(tmp_path, dialogues, shape) == dialogues


def test_locomo_goes_through_own(tmp_path: Path) -> None:
    [dialogue] = read(tmp_path, LOCOMO)
    [back] = through(tmp_path, [dialogue], "own")

    assert list(back.turns) == list(dialogue.turns)
    assert [question.evidence_turns for question in back.questions] == [("D1:2",), ("D1:1",)]
    assert [question.axes for question in back.questions] == [question.axes for question in dialogue.questions]
    assert back.oddities == ()


def test_other_tags_do_not_fit_rumba(tmp_path: Path) -> None:
    path = tmp_path / "out"

    with pytest.raises(DatasetError, match=r"question q1 has no semantic; .* export as own"):
        export_dataset(read(tmp_path, OWN), "rows", path)

    assert not path.exists()
    assert [entry.name for entry in tmp_path.iterdir()] == ["data.jsonl"]


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="cannot be written"):
        export_dataset(read(tmp_path, ROW), "own", tmp_path / "no" / "where")


def test_dialogues_of_nothing_are_an_empty_array(tmp_path: Path) -> None:
    export_dataset([], "dialogues", tmp_path / "out")

    assert orjson.loads((tmp_path / "out").read_bytes()) == []


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1).filter(str.strip)
TIME = st.none() | st.datetimes(timezones=st.sampled_from([UTC])).map(lambda time: time.replace(fold=0))


@st.composite
def dialogue(draw: Callable[[Any], Any]) -> Dialogue:
    sessions = []
    time = draw(st.none() | st.datetimes(max_value=datetime(9000, 1, 1), timezones=st.just(UTC)))
    for index in range(1, draw(st.integers(1, 4)) + 1):
        turns = tuple(
            DialogueTurn(
                turn_id=f"s{index}-t{place}", role=role, text=draw(TEXT), name=draw(st.just("") | TEXT), time=time
            )
            for place, role in enumerate(draw(st.lists(st.sampled_from(["user", "assistant"]), min_size=1, max_size=4)))
        )
        sessions.append(Session(session_id=f"s{index}", index=index, turns=turns, time=time))
        time = time + timedelta(days=draw(st.integers(0, 40))) if time else None
    turn_ids = [(session.session_id, turn.turn_id) for session in sessions for turn in session.turns]
    chosen = draw(st.sets(st.sampled_from(turn_ids)))
    evidence = [pair for pair in turn_ids if pair in chosen]
    questions = tuple(
        Question(
            question_id=f"q{place}",
            text=draw(TEXT),
            references=tuple(draw(st.lists(TEXT, min_size=1, max_size=2))),
            date=draw(TIME),
            axes=draw(st.dictionaries(TEXT, TEXT, max_size=3)),
            evidence_sessions=tuple(dict.fromkeys(session for session, _ in evidence)),
            evidence_turns=tuple(turn for _, turn in evidence),
            abstention=draw(st.booleans()),
        )
        for place in range(draw(st.integers(0, 3)))
    )
    return Dialogue(dialogue_id=draw(TEXT), language="ru", sessions=tuple(sessions), questions=questions, user_id="u")


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(written=dialogue())
def test_any_dialogue_goes_through_own_unchanged(tmp_path: Path, written: Dialogue) -> None:
    assert through(tmp_path, [written], "own") == [written]
