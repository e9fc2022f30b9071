"""The moments of one system: at rest, under concurrency, after a restart, after Forget, after Reset."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

from memdock.types import Feature, Selection, Turn, TurnState
from memdock_evaluator.faults import Fault, RunStoppedError
from memdock_evaluator.leaks.asking import QUESTION, VALUE, ask, texts_for
from memdock_evaluator.leaks.kept import Kept, MomentRows
from memdock_evaluator.leaks.rows import Moment, TrialRow
from memdock_evaluator.leaks.trials import Canaries, Met, Pairing, shown, trials
from memdock_evaluator.leaks.twins import Fact, Pair, Twin
from memdock_evaluator.results.folder import Folder
from memdock_evaluator.results.rows import Outcome
from memdock_evaluator.run.parallel import for_each, stream
from memdock_evaluator.run.progress import Progress, Work
from memdock_evaluator.run.requests import groups
from memdock_evaluator.run.settings import RunSettings
from memdock_evaluator.suites.filling import fill, settle
from memdock_evaluator.suites.system import ErasableSystem

_HELD = {TurnState.SEARCHABLE, TurnState.NO_MEMORY, TurnState.FAILED}
"""A turn that failed is one that its user does not find: a void trial, which another attempt would not mend."""

Job: TypeAlias = Callable[[], Awaitable[None]]
SpaceOf: TypeAlias = Callable[[Twin], str]


@dataclass(slots=True, kw_only=True)
class SystemUnderTest:
    """One system through all moments, in the order of `Moment`. Methods raise `RunStoppedError` alone.

    `rows` grow as moments end; a pair for which a moment fails has the fault in its rows. `spaces` may hold something.
    `goes_on`: an earlier attempt has begun; what it has kept in `folder` is not asked again. `restarts`: there is a
    moment after a restart.
    """

    system: ErasableSystem
    pairs: Sequence[Pair]
    canaries: Canaries
    settings: RunSettings
    progress: Progress
    run_id: str
    folder: Folder
    goes_on: bool = False
    restarts: bool = False
    rows: list[TrialRow] = field(default_factory=list)
    spaces: set[str] = field(default_factory=set)
    _stored: set[tuple[str, int]] = field(default_factory=set)
    _pairings: dict[tuple[str, int], Pairing] = field(default_factory=dict)

    async def at_rest(self) -> None:
        """All are stored, then asked, one call after another."""
        if self.goes_on:
            self.spaces |= {self._busy(twin) for pair in self.pairs for twin in (pair.first, pair.second)}
        for pair in self.pairs:
            try:
                await self._store_where_needed(pair)
            except Fault as fault:
                self._fail(Moment.REST, pair, fault, Met())
            else:
                self._stored.add(pair.key)
        for pair in self.pairs:
            if pair.key in self._stored:
                await self._moment(Moment.REST, pair, self._space)

    async def under_concurrency(self) -> None:
        """All twins, in spaces of their own, write and are asked at once; all are asked at once; then one by one."""
        if not self.lacks(Moment.CONCURRENT):
            for pair in self.pairs:
                self._take(Moment.CONCURRENT, pair)
            self.progress.advance(Work.RETRIEVALS, self.reads_under_concurrency)
            return
        met = Met()
        twins = [twin for pair in self.pairs for twin in (pair.first, pair.second)]
        try:
            await for_each(stream(twins), self._empty_busy, limit=self.settings.concurrency)
            await self._write_and_ask(met)
            await for_each(stream(twins), self._settle_busy, limit=self.settings.concurrency)
            await self._at_once(self._reads(met))
        except Fault as fault:
            for pair in self.pairs:
                self._fail(Moment.CONCURRENT, pair, fault, met)
            return
        for pair in self.pairs:
            await self._moment(Moment.CONCURRENT, pair, self._busy, met=met)

    async def after_restart(self) -> None:
        """The spaces that were stored at rest are asked again."""
        for pair in self.pairs:
            await self._moment(Moment.RESTART, pair, self._space)

    async def after_forget(self) -> None:
        """The first of each pair forgets its canaries."""
        for pair in self.pairs:
            await self._moment(Moment.FORGET, pair, self._space, partial(self._forget, pair.first))

    async def after_reset(self) -> None:
        """The first of each pair is reset."""
        for pair in self.pairs:
            await self._moment(Moment.RESET, pair, self._space, partial(self._reset, self._space(pair.first)))

    async def close(self) -> list[str]:
        """Resets every space; those for which that failed, as system/space. Raises nothing."""
        left = [space_id for space_id in sorted(self.spaces) if not await self._closed(space_id)]
        return [f"{self.system.name}/{space_id}" for space_id in left]

    def lacks(self, moment: Moment) -> bool:
        """Whether any pair is yet to be asked at a moment."""
        return moment in self._moments and any(self._kept.of(moment, pair) is None for pair in self.pairs)

    @property
    def _moments(self) -> tuple[Moment, ...]:
        skipped = {Moment.RESTART: not self.restarts, Moment.FORGET: not self.can_forget}
        return tuple(moment for moment in Moment if not skipped.get(moment))

    @property
    def _kept(self) -> Kept:
        return Kept(folder=self.folder, system=self.system.name)

    @property
    def can_forget(self) -> bool:
        """Whether the canaries' turns, or their sessions, can be named."""
        return self.system.declares(Feature.FORGET_TURNS) or self.system.declares(Feature.FORGET_SESSIONS)

    @property
    def reads_under_concurrency(self) -> int:
        """How many Retrieves go between the writes, and behind them."""
        between = sum(len(_told(owner, sent, step)) for _, owner, sent in self._ways for step in range(len(sent)))
        return 2 * between + len(self._reads(Met()))

    async def _moment(
        self, moment: Moment, pair: Pair, space_of: SpaceOf, prepare: Job | None = None, met: Met | None = None
    ) -> None:
        if moment is not Moment.CONCURRENT and self._take(moment, pair):
            return
        met = met or Met()
        try:
            if prepare is not None:
                await prepare()
            seen = [await ask(self.system, space_of(asker), asker, owner) for asker, owner in pair.ways]
        except Fault as fault:
            self._fail(moment, pair, fault, met)
            return
        self.progress.advance(Work.RETRIEVALS, 2 * sum(len(asker.facts) for asker, _ in pair.ways))
        before = self._pairings.get(pair.key, Pairing()) if moment is not Moment.CONCURRENT else Pairing()
        rows, now = trials(self.system.name, moment, pair, seen, self.canaries, before=before, met=met)
        self._keep(moment, pair, rows, now)
        if moment is not Moment.CONCURRENT:
            self._pairings[pair.key] = now

    def _keep(self, moment: Moment, pair: Pair, rows: list[TrialRow], found: Pairing) -> None:
        self.rows += rows
        first, second = (tuple(sorted(names)) for names in (found.first, found.second))
        self._kept.keep(moment, pair, MomentRows(rows=tuple(rows), first=first, second=second))

    def _take(self, moment: Moment, pair: Pair) -> bool:
        """Takes over what an earlier attempt has kept, if it has."""
        kept = self._kept.of(moment, pair) if self.goes_on else None
        if kept is None:
            return False
        self.rows += kept.rows
        self.progress.advance(Work.RETRIEVALS, 2 * sum(len(asker.facts) for asker, _ in pair.ways))
        if moment is not Moment.CONCURRENT:
            self._pairings[pair.key] = kept.pairing
        return True

    def _fail(self, moment: Moment, pair: Pair, fault: Fault, met: Met) -> None:
        self.progress.say(
            f"{self.system.name}: pair {pair.first.pair} ({pair.first.language}) {moment}: {fault.detail}"
        )
        rows = met.failed(self.system.name, moment, pair, fault)
        self._keep(moment, pair, rows, self._pairings.get(pair.key, Pairing()))

    def _space(self, twin: Twin) -> str:
        """The second's name begins with the first's."""
        return f"eval-{self.run_id}-leak-{twin.language}-{twin.pair}{'' if twin.side == 'a' else '-b'}"

    def _busy(self, twin: Twin) -> str:
        return f"{self._space(twin)}-busy"

    async def _store_where_needed(self, pair: Pair) -> None:
        """Stores a pair that is to be asked yet, but where an earlier attempt has and all of it is still there."""
        asked = [moment for moment in self._moments if moment is not Moment.CONCURRENT]
        to_ask = not self.goes_on or any(self._kept.of(moment, pair) is None for moment in asked)
        if to_ask and not (self.goes_on and await self._is_stored(pair)):
            await self._store(pair)
            return
        for twin in (pair.first, pair.second):
            self.spaces.add(self._space(twin))
            for work in (Work.ACCEPTED, Work.PROCESSED):
                self.progress.advance(work, sum(1 for _ in twin.dialogue.turns))

    async def _is_stored(self, pair: Pair) -> bool:
        for twin in (pair.first, pair.second):
            turns = await self.system.turns_by_id(self._space(twin))
            states = {turns[turn.turn_id].state for turn in twin.dialogue.turns if turn.turn_id in turns}
            if len(turns) < sum(1 for _ in twin.dialogue.turns) or not states <= _HELD:
                return False
        return True

    async def _store(self, pair: Pair) -> None:
        for twin in (pair.first, pair.second):
            self.spaces.add(self._space(twin))
            await fill(self.system, self._space(twin), twin.dialogue, self.settings, self.progress)

    async def _empty_busy(self, twin: Twin) -> None:
        self.spaces.add(self._busy(twin))
        await self._reset(self._busy(twin))

    async def _settle_busy(self, twin: Twin) -> None:
        await settle(self.system, self._busy(twin), self.settings)
        self.progress.advance(Work.PROCESSED, sum(1 for _ in twin.dialogue.turns))

    async def _write_and_ask(self, met: Met) -> None:
        """In each step every twin sends its next turns, while it is asked for what its twin has sent by then."""
        ways = self._ways
        for step in range(max(len(sent) for _, _, sent in ways)):
            jobs: list[Job] = []
            for asker, owner, sent in ways:
                jobs += [partial(self._write, asker, turns) for turns in sent[step : step + 1]]
                jobs += [read for fact in _told(owner, sent, step) for read in self._reads_of(asker, fact, met)]
            await self._at_once(jobs)

    def _reads(self, met: Met) -> list[Job]:
        """Everybody is asked for everything, those who are asked the same beside each other."""
        facts = [(place, asker, fact) for asker, owner, _ in self._ways for place, fact in enumerate(owner.facts)]
        in_order = sorted(facts, key=lambda each: each[0])
        return [read for _, asker, fact in in_order for read in self._reads_of(asker, fact, met)]

    def _reads_of(self, asker: Twin, fact: Fact, met: Met) -> list[Job]:
        return [
            partial(self._read, asker, fact, QUESTION, fact.question, met),
            partial(self._read, asker, fact, VALUE, fact.value, met),
        ]

    async def _at_once(self, jobs: Sequence[Job]) -> None:
        await for_each(stream(jobs), lambda job: job(), limit=self.settings.concurrency)

    @property
    def _ways(self) -> list[tuple[Twin, Twin, Sequence[Sequence[Turn]]]]:
        """Who is asked, for whose canaries, and what the asker sends; the twin sends turns of the same ids."""
        unit = self.settings.ingest_unit
        return [(asker, owner, list(groups(asker.dialogue, unit))) for pair in self.pairs for asker, owner in pair.ways]

    async def _write(self, twin: Twin, turns: Sequence[Turn]) -> None:
        try:
            await self.system.add_turns(self._busy(twin), turns)
        except Fault as fault:  # a turn that the system refuses is one that its user will not find: a void trial
            if fault.outcome is Outcome.INFRASTRUCTURE_ERROR:
                raise
        self.progress.advance(Work.ACCEPTED, len(turns))

    async def _read(self, asker: Twin, fact: Fact, way: str, query: str, met: Met) -> None:
        try:
            texts = await texts_for(self.system, self._busy(asker), query)
        except Fault as fault:
            met.faults[(*asker.key, fact.name)] = fault
        else:
            foreign = self.canaries.foreign(fact.name, asker)
            met.leaks[(*asker.key, fact.name)] |= shown(foreign, {way: texts})
        self.progress.advance(Work.RETRIEVALS)

    async def _forget(self, twin: Twin) -> None:
        turn_ids = tuple(fact.turn_id for fact in twin.facts)
        session_ids = tuple(dict.fromkeys(fact.session_id for fact in twin.facts))
        by_turn = self.system.declares(Feature.FORGET_TURNS)
        selection = Selection(turn_ids=turn_ids) if by_turn else Selection(session_ids=session_ids)
        await self.system.forget(self._space(twin), selection)

    async def _reset(self, space_id: str) -> None:
        await self.system.reset(space_id)

    async def _closed(self, space_id: str) -> bool:
        try:
            await self._reset(space_id)
        except (Fault, RunStoppedError) as fault:
            self.progress.say(f"{self.system.name}: space {space_id} was not reset: {fault}")
            return False
        return True


def _told(owner: Twin, sent: Sequence[Sequence[Turn]], step: int) -> list[Fact]:
    """The owner's facts that are on their way in a step, or were in the one before."""
    turn_ids = {turn.turn_id for turns in sent[max(0, step - 1) : step + 1] for turn in turns}
    return [fact for fact in owner.facts if fact.turn_id in turn_ids]
