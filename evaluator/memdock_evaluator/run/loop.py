"""The only loop of a run: every system for every dialogue, several at once."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, replace

from memdock_evaluator.dataset import Dialogue
from memdock_evaluator.results.finalise import with_stores
from memdock_evaluator.results.folder import Folder
from memdock_evaluator.results.parts import Parts, Unit
from memdock_evaluator.results.plan import Plan
from memdock_evaluator.results.records import ANSWER, CLOSE, INGEST, RETRIEVE, ROWS
from memdock_evaluator.results.rows import Outcome
from memdock_evaluator.results.stored import Stored, ingested_in
from memdock_evaluator.run.answering import Answering, keys_of
from memdock_evaluator.run.contestants import Contestant
from memdock_evaluator.run.parallel import for_each
from memdock_evaluator.run.progress import Progress, Work
from memdock_evaluator.run.recorded import RecordedRetriever
from memdock_evaluator.run.retriever import BaselineRetriever, Retrievals, Retriever
from memdock_evaluator.run.row_maker import RowMaker
from memdock_evaluator.run.selection import Selection, Survey
from memdock_evaluator.run.settings import RunSettings
from memdock_evaluator.run.settling import Key, known
from memdock_evaluator.run.space import Space, space_id
from memdock_evaluator.run.system_retriever import SystemRetriever
from memdock_evaluator.run.tools import Tools


@dataclass(frozen=True, slots=True, kw_only=True)
class Replying:
    """One contestant on one dialogue: its answers, its verdicts, its rows."""

    contestant: Contestant
    answering: Answering
    row_maker: RowMaker


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemRun:
    """One system and one dialogue: stored once, then asked for each contestant. `store`: the parts of that."""

    dialogue: Dialogue
    store: Parts
    retriever: Retriever
    replying: Sequence[Replying]
    settings: RunSettings

    async def run(self) -> None:
        """Does what earlier attempts left to do; raises only `RunStoppedError`."""
        keys = keys_of(self.dialogue, self.settings.repeats, self.store.unit.ingest)
        if self.settings.stop_after == INGEST.name:
            if not self._has_asked(keys) or ingested_in(self.store) is None:
                await self.retriever.store(self.dialogue)
            return
        retrievals = await self.retriever.retrieve(self.dialogue, keys)
        if self.settings.stop_after == RETRIEVE.name:
            return
        for each in self.replying:
            await self._reply(each, retrievals)

    def _has_asked(self, keys: Sequence[Key]) -> bool:
        return all(known(each.contestant.parts, RETRIEVE).keys() >= set(keys) for each in self.replying)

    async def _reply(self, replying: Replying, retrievals: Retrievals) -> None:
        contestant, ingested = replying.contestant, self.store.newest(INGEST)
        found = retrievals[contestant.name]
        answering = replace(replying.answering, spaces=tuple(each.space_id for each in ingested))
        answered = await answering.answers(self.dialogue, found)
        if self.settings.stop_after == ANSWER.name:
            return
        judged = await answering.verdicts(self.dialogue, answered)
        rows = replying.row_maker.rows(
            self.dialogue,
            found,
            answered,
            judged,
            Stored.of(ingested),
        )
        await contestant.parts.save(ROWS, list(rows))


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """The units of a run. A dialogue without questions is left out."""

    settings: RunSettings
    plan: Plan
    survey: Survey
    tools: Tools
    folder: Folder
    run_id: str
    progress: Progress

    @property
    def expected(self) -> Counter[Unit]:
        """All units with the rows that each must get; a system that several contestants share has a unit without."""
        of_question = self.settings.repeats * self.settings.judge_repeats
        rows = {
            replace(store, system=each.name): size.questions * of_question
            for size in self.survey.sizes
            for store in self._stores(size.language, size.dialogue_id)
            for each in self.plan.contestants[store.system]
            if size.questions
        }
        return with_stores(self.plan, rows)

    async def run(self, selection: Selection) -> None:
        """Does what is not done; raises `RunStoppedError` where that cannot go on, or what `selection` raises."""
        verdicts = self.expected.total()
        stored = len(self.tools.systems) * self.settings.ingest_repeats
        turns = sum(size.turns for size in self.survey.sizes if size.questions) * stored
        for work in (Work.ACCEPTED, Work.PROCESSED):
            self.progress.expect(work, turns)
        for work in (Work.RETRIEVALS, Work.ANSWERS):
            self.progress.expect(work, verdicts // self.settings.judge_repeats)
        self.progress.expect(Work.VERDICTS, verdicts)
        await for_each(self._units(selection), self._unit, limit=self.settings.concurrency)

    def _stores(self, language: str, dialogue_id: str) -> Iterator[Unit]:
        """A baseline stores nothing, so that there is nothing to store anew."""
        for name in self.plan.contestants:
            for ingest in range(1 if name in self.tools.baselines else self.settings.ingest_repeats):
                yield Unit(system=name, language=language, dialogue_id=dialogue_id, ingest=ingest)

    async def _units(self, selection: Selection) -> AsyncIterator[tuple[Dialogue, Unit]]:
        """A file is read on another thread, so that calls go on meanwhile."""
        dialogues = selection.dialogues()
        while (dialogue := await asyncio.to_thread(next, dialogues, None)) is not None:
            if dialogue.questions:
                for unit in self._stores(dialogue.language, dialogue.dialogue_id):
                    yield dialogue, unit

    async def _unit(self, item: tuple[Dialogue, Unit]) -> None:
        dialogue, unit = item
        store = Parts(self.folder, unit)
        asked = [
            Contestant(facts=each, parts=Parts(self.folder, replace(unit, system=each.name)))
            for each in self.plan.contestants[unit.system]
        ]
        if self._is_done(store, asked):
            self._skip(dialogue, unit.system, len(asked))
            return
        await SystemRun(
            dialogue=dialogue,
            store=store,
            retriever=self._retriever(store, asked),
            replying=[self._replying(each) for each in asked],
            settings=self.settings,
        ).run()

    def _is_done(self, store: Parts, asked: Sequence[Contestant]) -> bool:
        """Whether every question has its row and none is to be asked again, and the space was filled and given back."""
        rows = [each.parts.newest(ROWS) for each in asked]
        if not all(found and all(row.outcome is not Outcome.INFRASTRUCTURE_ERROR for row in found) for found in rows):
            return False
        if store.unit.system not in self.tools.systems:
            return True
        ingested, closed = ingested_in(store), store.newest(CLOSE)
        whole = ingested is not None and ingested.is_whole(self.settings.allowed_failed_turns)
        return whole and bool(closed) and closed[-1].blame is None

    def _skip(self, dialogue: Dialogue, name: str, contestants: int) -> None:
        if name in self.tools.systems:
            for work in (Work.ACCEPTED, Work.PROCESSED):
                self.progress.advance(work, sum(1 for _ in dialogue.turns))
        answers = len(dialogue.questions) * self.settings.repeats * contestants
        for work in (Work.RETRIEVALS, Work.ANSWERS):
            self.progress.advance(work, answers)
        self.progress.advance(Work.VERDICTS, answers * self.settings.judge_repeats)

    def _replying(self, contestant: Contestant) -> Replying:
        baseline = self.tools.baselines.get(contestant.name)
        refuses = baseline is not None and not baseline.asks_model
        return Replying(
            contestant=contestant,
            answering=Answering(
                answerer=self.tools.refusing if refuses else self.tools.answerer,
                judge=self.tools.judge,
                parts=contestant.parts,
                progress=self.progress,
                context_tokens=contestant.facts.context_tokens,
                judge_repeats=self.settings.judge_repeats,
            ),
            row_maker=RowMaker(
                unit=contestant.parts.unit,
                k=contestant.facts.k,
                scores_retrieval=contestant.names_sources,
                guesses_sources=baseline is None and not contestant.names_sources,
                keeps_memories=baseline is None or baseline.keeps_memories,
                judge_repeats=self.settings.judge_repeats,
            ),
        )

    def _retriever(self, store: Parts, asked: Sequence[Contestant]) -> Retriever:
        unit = store.unit
        if unit.system in self.tools.baselines:
            return BaselineRetriever(
                baseline=self.tools.baselines[unit.system], as_of=self.settings.as_of, progress=self.progress
            )
        if self.tools.recorded is not None:
            return RecordedRetriever(contestants=asked, progress=self.progress)
        space = Space(
            space_id=space_id(self.run_id, unit.dialogue_id, unit.language, unit.ingest),
            system=self.tools.systems[unit.system],
            parts=store,
            settings=self.settings,
            progress=self.progress,
        )
        return SystemRetriever(space=space, contestants=asked, settings=self.settings, progress=self.progress)
