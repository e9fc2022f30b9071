"""A dialogue's own space in a memory system: filled, filled up where turns had failed, and given back."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from memdock.types import ModelUsage, Turn, TurnState
from memdock_evaluator.dataset import Dialogue
from memdock_evaluator.faults import Fault
from memdock_evaluator.results.manifest import IngestCounts
from memdock_evaluator.results.names import safe_name
from memdock_evaluator.results.parts import Parts
from memdock_evaluator.results.records import CLOSE, INGEST, Blame, Closed, Ingested
from memdock_evaluator.results.rows import Outcome
from memdock_evaluator.results.stored import ingested_in
from memdock_evaluator.run.ingest import Ingest
from memdock_evaluator.run.memory_system import MemorySystem
from memdock_evaluator.run.progress import Progress, Work
from memdock_evaluator.run.requests import groups, said_by
from memdock_evaluator.run.settings import RunSettings
from memdock_evaluator.run.settling import blame_of

_FILLED_AGAIN = Blame(
    outcome=Outcome.INFRASTRUCTURE_ERROR, reason="FILLED_AGAIN", detail="it was filled again for questions to be asked"
)

_TO_BE_RESET = Blame(
    outcome=Outcome.INFRASTRUCTURE_ERROR, reason="TO_BE_RESET", detail="its cost was kept, and its Reset began"
)


def space_id(run_id: str, dialogue_id: str, language: str, ingest: int = 0) -> str:
    """`eval-<run>-<dialogue>-<language>`: a run's own for each dialogue and language; nothing else is ever reset.

    Stored anew, a dialogue has its ingest behind that.
    """
    again = f"-{ingest}" if ingest else ""
    return f"eval-{run_id}-{safe_name(dialogue_id)}-{safe_name(language)}{again}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """Methods raise `Fault` or `RunStoppedError` unless they say otherwise."""

    space_id: str
    system: MemorySystem
    parts: Parts
    settings: RunSettings
    progress: Progress

    @property
    def is_filled(self) -> bool:
        """Whether an attempt filled it and kept what became of the turns."""
        return self._ingested() is not None

    @property
    def lacks_turns(self) -> bool:
        """Whether an earlier attempt filled it, but for more failed turns than are allowed."""
        ingested = self._ingested()
        return ingested is not None and not ingested.is_whole(self.settings.allowed_failed_turns)

    @property
    def failed_turns(self) -> frozenset[str]:
        """The turns that it lacks."""
        ingested = self._ingested()
        return frozenset(turn.turn_id for turn in ingested.failed_turns) if ingested else frozenset()

    async def holds(self, dialogue: Dialogue) -> bool:
        """Whether an earlier attempt filled it and the system still has every turn that did not fail."""
        if self._ingested() is None or self._closed():
            return False
        turns = await self.system.list_turns(self.space_id)
        held = {turn.turn_id for turn in turns if turn.state in (TurnState.SEARCHABLE, TurnState.NO_MEMORY)}
        return {turn.turn_id for turn in dialogue.turns} - self.failed_turns <= held

    async def fill(self, dialogue: Dialogue) -> None:
        """Stores the dialogue, in a space that is emptied first."""
        ingest = await self.emptied()
        await ingest.add(groups(dialogue, self.settings.ingest_unit))
        await self.keep(dialogue, await ingest.finish())

    async def emptied(self) -> Ingest:
        """The filling of it from the beginning.

        What it held is gone then, so that a kill leaves it as one that was never filled; what that had cost is kept,
        and where it had been given back, it will have to be once more.
        """
        usage = await self._cost() if self.parts.has(INGEST) or self.parts.has(CLOSE) else ()
        if self.is_filled:
            self.parts.write(INGEST, [Ingested(space_id=self.space_id, counts=IngestCounts(), blame=_FILLED_AGAIN)])
        if usage or self._closed():
            self.parts.write(CLOSE, [Closed(usage=usage, reset=False, blame=_FILLED_AGAIN)])
        await self.system.reset(self.space_id)
        if usage:
            self.parts.write(CLOSE, [Closed(usage=usage, reset=True, blame=_FILLED_AGAIN)])
        return self._ingest()

    async def filled_up(self, dialogue: Dialogue) -> Ingested | None:
        """Sends again what had failed; `None` where it failed again. The caller keeps it."""
        before = self._ingested()
        assert before is not None, "what was never filled cannot be filled up"
        ingest = self._ingest()
        turns = (turn for group in groups(dialogue, self.settings.ingest_unit) for turn in group)
        await ingest.add_again(turns, before.failed_turns)
        after = await ingest.finish()
        if len(after.failed_turns) == len(before.failed_turns):
            return None
        counts = replace(
            after.counts,
            requests=before.counts.requests + after.counts.requests,
            retried=before.counts.retried + after.counts.retried,
        )
        return replace(after, counts=counts)

    async def keep(self, dialogue: Dialogue, ingested: Ingested) -> None:
        """Keeps what became of the turns, and says where a question may miss some of them."""
        await self.parts.save(INGEST, [ingested])
        counts = ingested.counts
        where = f"{self.system.name}: dialogue {dialogue.dialogue_id} ({dialogue.language})"
        if ingested.failed_turns:
            first = ingested.failed_turns[0]
            why = f"the first with {first.reason}: {first.message}"
            self.progress.say(f"{where}: {counts.failed} of {counts.turns_read} turns failed, {why}")
        if counts.turns_listed != counts.turns_read:
            self.progress.say(f"{where}: {counts.turns_read} turns were sent, the system lists {counts.turns_listed}")

    def keep_fault(self, dialogue: Dialogue, fault: Fault) -> None:
        """Keeps why the dialogue could not be stored, and says so."""
        where = f"dialogue {dialogue.dialogue_id} ({dialogue.language})"
        self.progress.say(f"{self.system.name}: {where} could not be stored: {fault.detail} ({fault.reason})")
        counts = IngestCounts(turns_read=sum(1 for _ in dialogue.turns))
        self.parts.write(INGEST, [Ingested(space_id=self.space_id, counts=counts, blame=blame_of(fault))])

    def unsaid(self, dialogue: Dialogue, date: datetime | None, ingest: Ingest) -> Iterator[list[Turn]]:
        """What had been said by a date and was not sent yet."""
        said, sent = said_by(date), ingest.turn_ids
        return groups(dialogue, self.settings.ingest_unit, lambda turn: turn.turn_id not in sent and said(turn))

    def tell_stored(self, dialogue: Dialogue) -> None:
        """Counts the dialogue's turns as what an earlier attempt has done."""
        for work in (Work.ACCEPTED, Work.PROCESSED):
            self.progress.advance(work, sum(1 for _ in dialogue.turns))

    async def close(self) -> None:
        """Notes what it has cost and resets it; a failure is kept as such, and the next run tries again."""
        if self._closed():
            return
        usage = await self._cost()
        closed = Closed(usage=usage, reset=False)
        if not self.settings.keep:
            if usage:
                await self.parts.save(CLOSE, [replace(closed, blame=_TO_BE_RESET)])
            try:
                residue = (await self.system.reset(self.space_id)).residual
                closed = Closed(usage=usage, residue=residue)
            except Fault as fault:
                closed = replace(closed, blame=blame_of(fault))
                self.progress.say(f"{self.system.name}: space {self.space_id} was not reset: {fault.detail}")
        await self.parts.save(CLOSE, [closed])

    def _ingest(self) -> Ingest:
        return Ingest(
            system=self.system,
            unit=self.parts.unit,
            space_id=self.space_id,
            flush_timeout_s=self.settings.flush_timeout_s,
            progress=self.progress,
            lists_memories=True,
        )

    def _ingested(self) -> Ingested | None:
        return ingested_in(self.parts)

    def _closed(self) -> bool:
        closed = self.parts.newest(CLOSE)
        return bool(closed) and closed[-1].blame is None and (closed[-1].reset or self.settings.keep)

    async def _cost(self) -> tuple[ModelUsage, ...]:
        """What it has cost since its last Reset; where a kill came right behind that, what was kept before it."""
        if spent := await self._spent():
            return spent
        closed = self.parts.newest(CLOSE)
        return closed[-1].usage if closed and not closed[-1].reset else ()

    async def _spent(self) -> tuple[ModelUsage, ...]:
        """What the space has cost; a system that cannot say so is told on, and its space is given back all the same."""
        try:
            return (await self.system.flush(self.space_id, timeout_s=0)).result.space_usage
        except Fault as fault:
            self.progress.say(f"{self.system.name}: space {self.space_id} does not tell its usage: {fault.detail}")
            return ()
