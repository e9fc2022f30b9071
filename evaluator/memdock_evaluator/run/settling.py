"""One stage of one unit, question by question: what earlier attempts settled is kept, the rest is done and written."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias, TypeVar

from memdock_evaluator.faults import Fault
from memdock_evaluator.results.parts import Parts
from memdock_evaluator.results.records import ANSWER, JUDGE, RETRIEVE, ROWS, Answered, Blame, Judged, Kind, Retrieval
from memdock_evaluator.results.rows import Outcome, Row
from memdock_evaluator.run.parallel import for_each, stream

Key: TypeAlias = tuple[str, int]
"""A question's id and the repeat."""

_STORED_ANEW = Blame(
    outcome=Outcome.INFRASTRUCTURE_ERROR,
    reason="STORED_ANEW",
    detail="the dialogue, or turns of it that had failed, is stored anew; the question is asked again",
)

RecordT = TypeVar("RecordT", Retrieval, Answered, Judged)


def settled(blame: Blame | None) -> bool:
    """Whether a stage need not be run again."""
    return blame is None or blame.outcome is not Outcome.INFRASTRUCTURE_ERROR


def blame_of(fault: Fault) -> Blame:
    """A fault as the records keep it."""
    return Blame(outcome=fault.outcome, reason=fault.reason, detail=fault.detail)


def known(parts: Parts, kind: Kind[RecordT]) -> dict[Key, RecordT]:
    """What earlier attempts settled; of a question's records the last one counts."""
    records = {record.key: record for record in parts.read(kind)}
    return {key: record for key, record in records.items() if settled(record.blame)}


def ask_again(parts: Parts) -> None:
    """Unsettles every question of the unit: what it was answered from is not what is stored any more.

    The rows first and the memories last, so that a kill in between leaves nothing that looks done.
    """
    rows = parts.newest(ROWS)
    if any(row.outcome is not Outcome.INFRASTRUCTURE_ERROR for row in rows):
        parts.write(ROWS, [unanswered(row, _STORED_ANEW) for row in rows])
    unsettle(parts, JUDGE, _STORED_ANEW)
    unsettle(parts, ANSWER, _STORED_ANEW)
    unsettle(parts, RETRIEVE, _STORED_ANEW)


def unanswered(row: Row, why: Blame) -> Row:
    """The question alone."""
    return Row(
        system=row.system,
        language=row.language,
        dialogue_id=row.dialogue_id,
        question_id=row.question_id,
        repeat=row.repeat,
        ingest=row.ingest,
        judging=row.judging,
        axes=row.axes,
        abstention=row.abstention,
        question=row.question,
        references=row.references,
        question_date=row.question_date,
        evidence_sessions=row.evidence_sessions,
        evidence_turns=row.evidence_turns,
        outcome=why.outcome,
        reason=why.reason,
        detail=why.detail,
    )


def unsettle(parts: Parts, kind: Kind[RecordT], why: Blame, outcomes: Collection[str] | None = None) -> bool:
    """Unsettles what a stage has settled, or what of it failed in one of these ways; whether there is any.

    A record that was unsettled for the same reason before is left.
    """
    settled_now = known(parts, kind)
    before = {record.key for record in parts.read(kind) if record.blame == why}
    chosen = [
        record
        for key, record in sorted(settled_now.items())
        if outcomes is None or (key not in before and record.blame is not None and record.blame.outcome in outcomes)
    ]
    parts.write(kind, [_anew(record, why) for record in chosen])
    return bool(chosen)


def _anew(record: RecordT, why: Blame) -> RecordT:
    """The record as that of a question to be asked again; its own has told already what it took and cost."""
    if isinstance(record, Retrieval):
        return Retrieval(question_id=record.question_id, repeat=record.repeat, blame=why)
    return replace(record, blame=why, timings=(), usage=(), paid=())


async def settle(
    parts: Parts,
    kind: Kind[RecordT],
    keys: Sequence[Key],
    ask: Callable[[Key], Awaitable[RecordT]],
    *,
    limit: int,
    first_alone: bool = False,
) -> Mapping[Key, RecordT]:
    """Asks for each key that is not settled yet, `limit` at a time, and writes what came as the stage's next part.

    Also what came before an exception is written, so that a run that stops pays for no question twice. `first_alone`:
    the others wait for the first one, which leaves what their prompts have in common in a provider's cache.
    """
    done = known(parts, kind)
    missing = [key for key in keys if key not in done]
    ahead = 1 if first_alone else 0
    fresh: dict[Key, RecordT] = {}

    async def one(key: Key) -> None:
        fresh[key] = await ask(key)

    try:
        await for_each(stream(missing[:ahead]), one, limit=1)
        await for_each(stream(missing[ahead:]), one, limit=limit)
    finally:
        await parts.save(kind, [fresh[key] for key in sorted(fresh)])
    return done | fresh
