"""One attempt of the system at a batch of turns: whatever happens in it becomes outcomes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from memdock import usage
from memdock.engine.faults import broken_interface, check_end, must_end, turn_error
from memdock.ledger import PendingTurn, Settled
from memdock.log import log_fault
from memdock.system import Batch, Outcome, System
from memdock.types import ModelUsage, Selection, TurnError, TurnState

_INTERRUPTED = TurnError(
    reason="INTERNAL",
    message="the server ended while the system worked on the turn, and the system cannot take back parts of it;"
    " what is sent again may be there twice",
    retryable=True,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What the system answered for a prefix of `turns`, or why all of them failed, and what that cost."""

    turns: Sequence[PendingTurn]
    batch: Batch
    spent: tuple[ModelUsage, ...] = ()

    @property
    def settled(self) -> list[Settled]:
        """The outcomes by place."""
        return [
            Settled(seq=held.seq, outcome=outcome)
            for held, outcome in zip(self.turns, self.batch.outcomes, strict=False)  # of a prefix
        ]

    @property
    def failed_count(self) -> int:
        """How many of the answered turns failed."""
        return sum(outcome.state is TurnState.FAILED for outcome in self.batch.outcomes)

    def unkept(self, fault: BaseException) -> "Attempt":
        """The same attempt when its answer cannot be kept: the turns that it answered for have failed."""
        return replace(self, batch=_failure(len(self.batch.outcomes), turn_error(fault)))


async def attempt(
    system: System, space: str, turns: Sequence[PendingTurn], *, final: bool, full: bool, leftovers: Sequence[str]
) -> Attempt:
    """Hands turns to the system, after it has forgotten what earlier attempts may have left of `leftovers`.

    `full`: the batch can hold no more turns, so a system that waits for more is told that these are all.
    """
    in_order = [held.turn for held in turns]
    with usage.collect() as meter:
        try:
            if leftovers:
                await system.forget(space, Selection(turn_ids=tuple(leftovers)), dry_run=False)
            batch = await system.add(space, in_order, final=final)
            if full and not final and not batch.outcomes:
                final = True
                batch = await system.add(space, in_order, final=True)
            _check(batch, len(turns), final=final)
        except BaseException as fault:
            if must_end(fault):
                raise
            log_fault("add_failed", fault)
            batch = _failure(len(turns), turn_error(fault))
    return Attempt(turns=turns, batch=batch, spent=meter.models)


def interrupted(turns: Sequence[PendingTurn]) -> Attempt:
    """The outcome of turns that a server left half done and that the system cannot take back."""
    return Attempt(turns=turns, batch=_failure(len(turns), _INTERRUPTED))


def _failure(count: int, error: TurnError) -> Batch:
    return Batch(outcomes=[Outcome(state=TurnState.FAILED, error=error)] * count)


def _check(batch: Batch, count: int, *, final: bool) -> None:
    answered = len(batch.outcomes)
    if answered > count:
        raise broken_interface(f"{answered} outcomes for {count} turns")
    if final and not answered:
        raise broken_interface("no outcome although the turns were final")
    for outcome in batch.outcomes:
        check_end(outcome)
