"""Rows: the same row gives the same bytes, and a line that is no row is refused by name."""

import pytest

from memdock_evaluator.results.rows import MemorySource, Outcome, RetrievedMemory, Row, RowError, Stage, Timing

ROW = Row(
    system="rag-hybrid",
    language="ru",
    dialogue_id="0",
    question_id="q0",
    repeat=0,
    axes={"semantic": "StaticUser", "scope": "single"},
    abstention=False,
    question="Как зовут кота?",
    references=("Барсик",),
    question_date="2024-10-02T10:00:00+00:00",
    evidence_sessions=("s1",),
    evidence_turns=("s1-t0",),
    outcome=Outcome.ANSWERED,
    memories=(
        RetrievedMemory(
            rank=1,
            kind="turn",
            text="Кота зовут Барсик",
            score=0.125,
            time=None,
            sources=(MemorySource(session_id="s1", turn_id="s1-t0"),),
        ),
    ),
    answer="Барсик",
    verdict=2,
    correct=True,
    f1=1.0,
)


def test_a_row_survives_the_file_and_keeps_its_bytes() -> None:
    line = ROW.to_json()
    assert Row.from_json(line) == ROW
    assert Row.from_json(line).to_json() == line
    assert "Как зовут кота?" in line.decode()
    assert line.index(b'"abstained"') < line.index(b'"answer"') < line.index(b'"verdict"')
    assert line.index(b'"scope"') < line.index(b'"semantic"')


def test_a_timing_survives_the_file() -> None:
    timing = Timing(system="a", language="en", dialogue_id="0", question_id=None, repeat=0, stage=Stage.FLUSH, ms=12.5)
    assert Timing.from_json(timing.to_json()) == timing


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (ROW.to_json().replace(b'"answered"', b'"done"'), "outcome"),
        (ROW.to_json().replace(b'"f1":1.0', b'"f2":1.0'), "f2"),
        (ROW.to_json().replace(b'"repeat":0,', b""), "repeat"),
        (ROW.to_json()[:-9], "the line"),
    ],
)
def test_a_line_that_is_no_row_is_refused_by_its_field(wrong: bytes, message: str) -> None:
    with pytest.raises(RowError, match=message):
        Row.from_json(wrong)
