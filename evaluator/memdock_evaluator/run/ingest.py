"""A dialogue into its space: turns in order, the barrier, failed turns once more, and what the system lists of them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from memdock.types import Feature, StageTiming, Turn, TurnRecord, TurnState
from memdock_evaluator.faults import Fault, turn_failed_by_infrastructure
from memdock_evaluator.results.manifest import IngestCounts
from memdock_evaluator.results.parts import Unit
from memdock_evaluator.results.records import FailedTurn, Ingested
from memdock_evaluator.results.rows import Outcome, Stage, Timing
from memdock_evaluator.run.measuring import Stopwatch
from memdock_evaluator.run.memory_system import MemorySystem
from memdock_evaluator.run.progress import Progress, Work
from memdock_evaluator.run.requests import requests
from memdock_evaluator.words import counted

MOST_LISTED = 20_000
"""Memories of a dialogue that are gone through to prove what was not stored; RUMBA's longest has a thousand turns."""


@dataclass(slots=True, kw_only=True)
class Ingest:
    """The filling of one space, in one step or in several. Methods raise `Fault` or `RunStoppedError`.

    A turn that the system fails at is sent once more after the barrier; what fails then is counted, and the questions
    are asked all the same. A turn that failed for want of infrastructure fails the ingest, which is done again later.
    `lists_memories`: at the end the memories are listed, to know which turns none was made from.
    """

    system: MemorySystem
    unit: Unit
    space_id: str
    flush_timeout_s: float
    progress: Progress
    lists_memories: bool = False
    _sent: dict[str, Turn] = field(default_factory=dict)
    _refused: dict[str, FailedTurn] = field(default_factory=dict)
    _processed: int = 0
    _requests: int = 0
    _retried: int = 0
    _timings: list[Timing] = field(default_factory=list)

    async def add(self, groups: Iterator[Sequence[Turn]]) -> None:
        """Sends the turns, then waits until none is pending."""
        limits = self.system.description.limits
        for group in groups:
            self._sent.update((turn.turn_id, turn) for turn in group)
            for request in requests([self._fitting(group)], limits):
                await self._send(request)
            self.progress.advance(Work.ACCEPTED, len(group))
        if await self._wait():
            await self._retry()

    async def add_again(self, turns: Iterable[Turn], failed: Iterable[FailedTurn]) -> None:
        """Sends what `failed` of the `turns` that were sent before, once more, then waits; counts none as progress."""
        self._sent.update((turn.turn_id, turn) for turn in turns)
        self._processed = len(self._sent)
        self._refused.update((turn.turn_id, turn) for turn in failed)
        await self._retry()

    async def finish(self) -> Ingested:
        """Compares what was sent with what the system lists."""
        listed = {record.turn_id: record for record in await self.system.list_turns(self.space_id)}
        states = Counter(record.state for record in listed.values())
        failed = [
            FailedTurn(turn_id=record.turn_id, reason=record.error.reason, message=record.error.message)
            if record.error
            else FailedTurn(turn_id=record.turn_id, reason="INTERNAL", message="it failed without a reason")
            for record in listed.values()
            if record.state is TurnState.FAILED
        ]
        failed += [turn for turn_id, turn in self._refused.items() if turn_id not in listed]
        counts = IngestCounts(
            requests=self._requests,
            turns_read=len(self._sent),
            turns_listed=sum(1 for turn_id in listed if turn_id in self._sent),
            searchable=states[TurnState.SEARCHABLE],
            no_memory=states[TurnState.NO_MEMORY],
            failed=len(failed),
            retried=self._retried,
        )
        return Ingested(
            space_id=self.space_id,
            counts=counts,
            failed_turns=tuple(failed),
            turns_without_memory=tuple(
                sorted(record.turn_id for record in listed.values() if record.state is TurnState.NO_MEMORY)
            ),
            unsourced_turns=await self._unsourced() if self.lists_memories else None,
            timings=tuple(self._timings),
        )

    async def _unsourced(self) -> tuple[str, ...] | None:
        """The turns that no memory names; `None` where a memory names no turn at all, and where they cannot be listed.

        What became of the answers can be told without it, so that a list which fails, or is too long, fails nothing.
        """
        can = (Feature.LIST_MEMORIES, Feature.SOURCES)
        if not all(map(self.system.declares, can)):
            return None
        place = f"{self.system.name}: dialogue {self.unit.dialogue_id} ({self.unit.language})"
        try:
            memories = await self.system.list_memories(self.space_id, most=MOST_LISTED)
        except Fault as fault:
            self.progress.say(f"{place}: its memories cannot be listed: {fault.detail} ({fault.reason})")
            return None
        if len(memories) > MOST_LISTED:
            self.progress.say(f"{place}: more than {MOST_LISTED:,} memories, which are not gone through")
            return None
        if not all(memory.sources for memory in memories):
            return None
        return tuple(sorted(self.turn_ids - {source.turn_id for memory in memories for source in memory.sources}))

    @property
    def turn_ids(self) -> frozenset[str]:
        """The turns that were sent so far."""
        return frozenset(self._sent)

    def _fitting(self, group: Sequence[Turn]) -> list[Turn]:
        """The turns that the system can take at all; the others are noted as failed."""
        most = self.system.description.limits.max_turn_bytes
        for turn in group:
            if (size := len(turn.text.encode())) > most:
                message = f"the turn has {size} bytes, and the system takes {most}"
                self._refused[turn.turn_id] = FailedTurn(
                    turn_id=turn.turn_id, reason="PAYLOAD_TOO_LARGE", message=message
                )
        return [turn for turn in group if turn.turn_id not in self._refused]

    async def _send(self, turns: Sequence[Turn]) -> None:
        self._requests += 1
        try:
            added = await self.system.add_turns(self.space_id, turns)
        except Fault as fault:
            if fault.outcome is Outcome.INFRASTRUCTURE_ERROR:
                raise
            for turn in turns:
                self._refused[turn.turn_id] = FailedTurn(
                    turn_id=turn.turn_id, reason=fault.reason, message=fault.detail
                )
        else:
            self._note(Stage.ADD, added.ms, added.result.timing)

    async def _wait(self) -> int:
        """The barrier; the number of turns that the system failed at or refused."""
        flushed = await self.system.flush(self.space_id, timeout_s=self.flush_timeout_s, pending=self._tell)
        self._note(Stage.FLUSH, flushed.ms)
        if not flushed.result.done:
            detail = f"{counted(flushed.result.pending, 'turn')} still pending after {self.flush_timeout_s:g} s"
            raise Fault(Outcome.INFRASTRUCTURE_ERROR, "DEADLINE_EXCEEDED", detail)
        return flushed.result.failed_count + len(self._refused)

    async def _retry(self) -> None:
        """Each failed turn alone, so that one that cannot be taken does not refuse the others with it."""
        again = {record.turn_id for record in await self._failed()} | self._refused.keys()
        turns = [turn for turn_id, turn in self._sent.items() if turn_id in again]
        self._retried += len(turns)
        self._refused.clear()
        for turn in turns:
            if self._fitting([turn]):
                await self._send([turn])
        await self._wait()
        for record in await self._failed():
            if record.error is not None and turn_failed_by_infrastructure(record.error):
                raise Fault(Outcome.INFRASTRUCTURE_ERROR, record.error.reason, record.error.message)

    async def _failed(self) -> list[TurnRecord]:
        return [turn for turn in await self.system.list_turns(self.space_id) if turn.state is TurnState.FAILED]

    def _tell(self, pending: int) -> None:
        """Of the turns that were sent, those that are not pending are processed."""
        processed = max(self._processed, len(self._sent) - pending)
        self.progress.advance(Work.PROCESSED, processed - self._processed)
        self._processed = processed

    def _note(self, stage: Stage, ms: float, inner: Sequence[StageTiming] = ()) -> None:
        self._timings.extend(Stopwatch(unit=self.unit).timings(stage, ms, inner))
