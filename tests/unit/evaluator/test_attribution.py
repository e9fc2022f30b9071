"""Where a wrong answer went wrong: each place, and nothing that is not proven."""

from dataclasses import replace
from typing import Any

import pytest

from memdock_evaluator.attribution import ORACLE, Failure, attribute
from memdock_evaluator.dataset import Dialogue, DialogueTurn, Question, Session
from memdock_evaluator.results.parts import Unit
from memdock_evaluator.results.records import Retrieval
from memdock_evaluator.results.rows import MemorySource, Outcome, RetrievedMemory, Row
from memdock_evaluator.results.stored import Stored
from memdock_evaluator.run.row_maker import RowMaker
from memdock_evaluator.summary import summarise
from memdock_evaluator.text_sources import TextSources
from support.synthetic_rows import a_row, a_run


def wrong(**changes: Any) -> Row:
    return a_row(**{"correct": False, "verdict": 0, "answer": "In Omsk", **changes})


def oracle(correct: bool | None, repeat: int = 0) -> Row:
    return a_row(system=ORACLE, correct=correct, repeat=repeat)


FOUND = RetrievedMemory(
    rank=1, kind="", text="x", score=None, time=None, sources=(MemorySource(session_id="s1", turn_id="s1-t0"),)
)
OTHER = replace(FOUND, sources=(MemorySource(session_id="s2", turn_id="s2-t0"),))
NO_SOURCES: dict[str, None] = {"recall_turns": None, "recall_sessions": None}
LOST = {"recall_turns": 0.0, "recall_sessions": 0.0}


@pytest.mark.parametrize(
    ("row", "failure"),
    [
        (wrong(), Failure.NOT_USED),
        (wrong(recall_turns=0.5), Failure.NOT_RETRIEVED),
        (wrong(recall_turns=None, recall_sessions=0.0), Failure.NOT_RETRIEVED),
        (wrong(**LOST, failed_evidence=("s1-t0",)), Failure.NOT_STORED),
        (wrong(**LOST, unstored_evidence=("s1-t0",)), Failure.NOT_STORED),
        (wrong(unstored_evidence=("s1-t0",), memories=(FOUND,), memories_given=1), Failure.NOT_USED),
        (wrong(memories=(FOUND, OTHER), memories_given=1), Failure.NOT_USED),
        (wrong(memories=(OTHER, FOUND), memories_given=1), Failure.NOT_GIVEN),
        (wrong(memories=(OTHER, FOUND), memories_given=1, recall_turns=0.5), Failure.NOT_RETRIEVED),
        (wrong(memories=(OTHER, FOUND), memories_given=1, recall_text=1.0, **NO_SOURCES), Failure.UNKNOWN),
        (wrong(abstention=True, **NO_SOURCES), Failure.NO_ANSWER_DUE),
        (wrong(axes={"semantic": "DeleteInfo"}), Failure.NO_ANSWER_DUE),
        (wrong(outcome=Outcome.SYSTEM_ERROR, answer=None, **LOST), Failure.SYSTEM_ERROR),
        (wrong(**NO_SOURCES), Failure.UNKNOWN),
    ],
)
def test_the_first_proven_place_has_it(row: Row, failure: Failure) -> None:
    assert [each.failure for each in attribute([row])] == [failure]


@pytest.mark.parametrize(
    ("of_oracle", "failure"),
    [
        ([oracle(False)], Failure.BEYOND_THE_EVIDENCE),
        ([oracle(True)], Failure.NOT_USED),
        ([oracle(False), oracle(True, repeat=1)], Failure.NOT_USED),
        ([oracle(None)], Failure.NOT_USED),
        ([replace(oracle(False), question_id="another")], Failure.NOT_USED),
        ([replace(oracle(False), language="ru")], Failure.NOT_USED),
    ],
)
def test_beyond_the_evidence_is_what_the_oracle_fails_at_each_time(of_oracle: list[Row], failure: Failure) -> None:
    assert [each.failure for each in attribute([*of_oracle, wrong()])] == [failure]


def test_what_was_not_retrieved_stays_so_where_the_oracle_fails_too() -> None:
    (found,) = attribute([oracle(False), wrong(**LOST)])
    assert found.failure is Failure.NOT_RETRIEVED


def test_misjudged_is_told_by_people_alone() -> None:
    (found,) = attribute([wrong(**LOST)], labelled_right={wrong().key})
    assert found.failure is Failure.MISJUDGED


def test_what_is_right_unscored_or_a_baselines_has_no_place() -> None:
    assert attribute([a_row(), a_row(correct=None), wrong(system="baseline:closed-book")]) == []


@pytest.mark.parametrize(("recall", "failure"), [(1.0, Failure.NOT_USED), (0.5, Failure.NOT_RETRIEVED)])
def test_a_system_without_sources_is_told_by_text_and_says_so(recall: float, failure: Failure) -> None:
    (found,) = attribute([wrong(**NO_SOURCES, recall_text=recall)])
    assert (found.failure, found.by_text) == (failure, True)


def test_every_wrong_answer_is_counted_in_the_summary() -> None:
    run = a_run()
    summary = summarise(run.rows, run.timings, run.manifest)
    found = summary["systems"]["rag-dense"]["languages"]["en"]["failures"]
    # Wrong are 33 of 102, and an error of the system's; of those, two abstentions and two DeleteInfo.
    assert found["n"] == sum(found["where"].values()) == 34
    assert found["where"] == {"system error": 1, "no answer was due": 4, "not retrieved": 29}
    assert sum(sum(where.values()) for where in found["slices"]["semantic"].values()) == 34
    assert summary["systems"]["baseline:refusal"]["languages"]["en"]["failures"]["n"] == 0


def a_dialogue() -> Dialogue:
    texts = {
        "s1": ("I moved to Kazan in March with my grey cat.", "How does the cat like Kazan?"),
        "s2": ("My sister Vera plays the cello in an orchestra.", "Yes."),
    }
    sessions = tuple(
        Session(
            session_id=name,
            index=int(name[1:]),
            turns=tuple(
                DialogueTurn(turn_id=f"{name}-t{place}", role="user", text=text) for place, text in enumerate(said)
            ),
        )
        for name, said in texts.items()
    )
    return Dialogue(dialogue_id="0", language="en", sessions=sessions, questions=())


@pytest.mark.parametrize(
    ("memory", "turns"),
    [
        ("I moved to Kazan in March with my grey cat.", ["s1-t0"]),
        ("user: My sister Vera plays the cello in an orchestra. assistant: Yes.", ["s2-t0"]),
        ("The user's sister is Vera, a cello player", ["s2-t0"]),
        ("plays the cello", ["s2-t0"]),
        ("moved to Kazan", ["s1-t0"]),
        ("The user likes to swim in cold water", []),
        ("Yes.", []),
        ("", []),
    ],
)
def test_a_memory_without_sources_is_traced_by_its_words(memory: str, turns: list[str]) -> None:
    assert [turn for _, turn in TextSources(a_dialogue()).of(memory)] == turns


def rows_of(**changes: Any) -> list[Row]:
    """The rows that a run makes of one question about s1-t0, answered by one memory."""
    question = Question(
        question_id="q0",
        text="Where do I live?",
        references=("In Kazan",),
        evidence_sessions=("s1",),
        evidence_turns=("s1-t0",),
    )
    memory = RetrievedMemory(rank=1, kind="fact", text="The user moved to Kazan in March", score=None, time=None)
    maker = RowMaker(
        unit=Unit(system="mem", language="en", dialogue_id="0"),
        k=10,
        scores_retrieval=False,
        keeps_memories=True,
        **{"guesses_sources": True, **changes},
    )
    retrieval = Retrieval(question_id="q0", repeat=0, memories=(memory,))
    dialogue = replace(a_dialogue(), questions=(question,))
    return list(
        maker.rows(dialogue, {retrieval.key: retrieval}, {}, {}, stored=Stored(absent=frozenset({"s1-t0", "s2-t1"})))
    )


def test_a_row_keeps_what_the_places_are_told_by() -> None:
    (row,) = rows_of()
    assert (row.sessions, row.recall_sessions, row.recall_text) == (2, None, 1.0)
    assert row.unstored_evidence == ("s1-t0",)


def test_text_is_asked_only_where_a_system_does_not_name_its_sources() -> None:
    (row,) = rows_of(guesses_sources=False)
    assert row.recall_text is None
