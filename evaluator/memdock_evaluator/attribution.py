"""Where it failed: what stood between a memory system and a right answer, one place for each wrong one.

The places are asked for in the order of `Failure`, which is the way of an answer; the first that is proven has it.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from memdock_evaluator.baselines import PREFIX
from memdock_evaluator.results.rows import Outcome, Row
from memdock_evaluator.words.sentence import said

ORACLE = f"{PREFIX}oracle"

RowKey = tuple[str, str, str, str, int]
_Question = tuple[str, str, str]


class Failure(StrEnum):
    """Where a wrong answer went wrong."""

    SYSTEM_ERROR = said("system error")
    """The memory system failed at its work, so that there is no answer."""
    MISJUDGED = said("misjudged")
    """People have labelled the answer as right. Never guessed."""
    NO_ANSWER_DUE = said("no answer was due")
    """The dialogue has none, or the user wanted it forgotten: there is nothing to store or to find."""
    NOT_STORED = said("not stored")
    """Evidence that failed or has no memory, by what the system says of the turn or by all the memories that it lists;
    and that did not come back.
    """
    NOT_RETRIEVED = said("not retrieved")
    """Evidence is missing among the memories, in whole or in part; it is stored, or nobody can say."""
    NOT_GIVEN = said("not given")
    """Evidence is among the memories that the context budget had no room for."""
    BEYOND_THE_EVIDENCE = said("beyond the evidence")
    """The answer model is wrong with nothing but the evidence before it, too: the baseline `oracle` ran and failed."""
    NOT_USED = said("retrieved and not used")
    """All of the evidence was before the answer model."""
    UNKNOWN = said("unknown")
    """The evidence is not known, or the memories do not tell where they come from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributed:
    """A wrong answer's place. `by_text`: told by the text of memories that name no sources, so a guess.

    `maybe_not_stored`: not retrieved, and the system does not list its memories, which would prove that it was stored.
    """

    row: Row
    failure: Failure
    by_text: bool = False
    maybe_not_stored: bool = False


def attribute(rows: Iterable[Row], *, labelled_right: Collection[RowKey] = ()) -> list[Attributed]:
    """A place for every wrong answer of a memory system, in the order of the rows.

    `labelled_right` are keys of rows whose answer people call right. Baselines have no memory to fail and get none. A
    question asked of the oracle several times is beyond the evidence when it failed each time.
    """
    rows = list(rows)
    oracle = _oracle(rows)
    return [
        _place(row, beyond=oracle.get(_question(row)) is False, misjudged=row.key in labelled_right)
        for row in rows
        if (row.correct is False or row.outcome is Outcome.SYSTEM_ERROR) and not row.system.startswith(PREFIX)
    ]


def _place(row: Row, *, beyond: bool, misjudged: bool) -> Attributed:
    known, by_text = _recall(row)
    evidence_lost = {*row.failed_evidence, *row.unstored_evidence} - _retrieved(row)
    sessions_lost = set(row.unstored_sessions) - {
        source.session_id for memory in row.memories for source in memory.sources
    }
    checks = {
        Failure.SYSTEM_ERROR: row.outcome is Outcome.SYSTEM_ERROR,
        Failure.MISJUDGED: misjudged,
        Failure.NO_ANSWER_DUE: row.abstention or row.axes.get("semantic") == "DeleteInfo",
        Failure.NOT_STORED: bool(evidence_lost or sessions_lost),
        Failure.NOT_RETRIEVED: known is not None and known < 1,
        Failure.NOT_GIVEN: _is_cut(row) and not by_text and known is not None and not _all_given(row),
        Failure.BEYOND_THE_EVIDENCE: beyond,
        Failure.NOT_USED: known is not None and not (_is_cut(row) and by_text),
        Failure.UNKNOWN: True,
    }
    failure = next(failure for failure in Failure if checks[failure])
    return Attributed(
        row=row,
        failure=failure,
        by_text=by_text and failure in (Failure.NOT_RETRIEVED, Failure.NOT_USED),
        maybe_not_stored=failure is Failure.NOT_RETRIEVED and not row.storage_listed,
    )


def _recall(row: Row) -> tuple[float | None, bool]:
    """The share of the evidence that came back, by turn where that is known, and whether it is told by text."""
    of_sources = row.recall_turns if row.recall_turns is not None else row.recall_sessions
    return (of_sources, False) if of_sources is not None else (row.recall_text, True)


def _is_cut(row: Row) -> bool:
    return row.outcome is Outcome.ANSWERED and row.memories_given < len(row.memories)


def _all_given(row: Row) -> bool:
    """Whether the memories that the answer model got hold all of the evidence, by turn where that is known."""
    given = {source for memory in row.memories[: row.memories_given] for source in memory.sources}
    if row.recall_turns is not None:
        return set(row.evidence_turns) <= {source.turn_id for source in given}
    return set(row.evidence_sessions) <= {source.session_id for source in given}


def _retrieved(row: Row) -> set[str]:
    return {source.turn_id for memory in row.memories for source in memory.sources}


def _oracle(rows: Iterable[Row]) -> Mapping[_Question, bool]:
    """Whether the oracle was right at least once, of the questions on which it has a score."""
    found: dict[_Question, bool] = {}
    for row in rows:
        if row.system == ORACLE and row.correct is not None:
            found[_question(row)] = found.get(_question(row), False) or row.correct
    return found


def _question(row: Row) -> _Question:
    return row.language, row.dialogue_id, row.question_id
