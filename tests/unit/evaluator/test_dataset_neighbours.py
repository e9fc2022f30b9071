"""LongMemEval and GigaMemory: a record is a dialogue with one question."""

from pathlib import Path
from typing import Any

import pytest

from memdock_evaluator.dataset import DatasetError
from support.data_files import GIGAMEMORY, LONGMEMEVAL, changed, kinds, read, without


def test_longmemeval_is_read_by_date_and_gives_no_gold_id_away(tmp_path: Path) -> None:
    [dialogue] = read(tmp_path, LONGMEMEVAL)

    assert [session.session_id for session in dialogue.sessions] == ["s1", "s2"]
    assert [turn.text for turn in dialogue.turns] == ["I moved to Oslo.", "Good.", "Sunny.", "Nice."]
    [question] = dialogue.questions
    assert (question.evidence_sessions, question.evidence_turns) == (("s1",), ("s1-t0",))
    assert question.axes == {"question_type": "knowledge-update"}
    assert question.date is not None
    assert f"{question.date:%a %H:%M}" == "Tue 23:40"
    assert dialogue.oddities == ()
    assert not question.abstention


def test_longmemeval_keeps_the_files_order_where_a_date_is_missing(tmp_path: Path) -> None:
    [dialogue] = read(tmp_path, changed(LONGMEMEVAL, "haystack_dates", 0, ""))

    assert next(dialogue.turns).text == "Sunny."
    assert dialogue.questions[0].evidence_sessions == ("s2",)


def test_longmemeval_abstention_and_unknown_evidence(tmp_path: Path) -> None:
    [dialogue] = read(tmp_path, LONGMEMEVAL | {"question_id": "q7_abs", "answer_session_ids": ["gone"], "answer": 3})

    assert dialogue.questions[0].abstention
    assert dialogue.questions[0].references == ("3",)
    assert kinds(dialogue) == ["evidence-unknown-session"]


def test_gigamemory_is_read_without_times(tmp_path: Path) -> None:
    [dialogue] = read(tmp_path, GIGAMEMORY)

    assert (dialogue.dialogue_id, dialogue.language) == ("1", "ru")
    assert [session.time for session in dialogue.sessions] == [None, None]
    [question] = dialogue.questions
    assert (question.evidence_sessions, question.evidence_turns, question.date) == (("s1",), (), None)
    assert question.axes == {"question_type": "info_updating"}
    assert not question.abstention


def test_gigamemory_no_info_is_an_abstention(tmp_path: Path) -> None:
    [dialogue] = read(tmp_path, GIGAMEMORY | {"question_type": "no_info", "ans_session_ids": []})

    assert dialogue.questions[0].abstention


def test_gigamemory_evidence_by_other_ids(tmp_path: Path) -> None:
    record = changed(GIGAMEMORY, "sessions", 1, "id", "вторая") | {"ans_session_ids": ["вторая", 99]}

    [dialogue] = read(tmp_path, record)

    assert dialogue.questions[0].evidence_sessions == ("s2",)
    assert kinds(dialogue) == ["evidence-unknown-session"]


@pytest.mark.parametrize(
    ("record", "field"),
    [
        (changed(LONGMEMEVAL, "haystack_dates", ["2023/05/21 (Sun) 01:00"]), "haystack_dates"),
        (changed(LONGMEMEVAL, "haystack_dates", 1, "2023/05/20 (Sun) 02:21"), "haystack_dates[1]"),
        (changed(LONGMEMEVAL, "haystack_sessions", 0, 1, "content", 5), "haystack_sessions[0][1].content"),
        (without(GIGAMEMORY, "sessions", 1, "messages"), "sessions[1].messages"),
        (changed(GIGAMEMORY, "ans", ""), "ans[0]"),
    ],
)
def test_broken_structure_names_its_field(tmp_path: Path, record: dict[str, Any], field: str) -> None:
    with pytest.raises(DatasetError) as caught:
        read(tmp_path, record)

    assert (caught.value.record, caught.value.field) == (1, field)
