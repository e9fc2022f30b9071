"""The only loop of a run: every system for every dialogue, several at once."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace

from memdock.types import Feature
from memdock_evaluator.dataset import Dialogue
from memdock_evaluator.results.folder import Folder
from memdock_evaluator.results.parts import Parts, Unit
from memdock_evaluator.results.records import ANSWER, CLOSE, INGEST, RETRIEVE, ROWS
from memdock_evaluator.results.rows import Outcome
from memdock_evaluator.results.stored import Stored
from memdock_evaluator.run.answering import Answering, keys_of
from memdock_evaluator.run.parallel import for_each
from memdock_evaluator.run.progress import Progress, Work
from memdock_evaluator.run.recorded import RecordedRetriever
from memdock_evaluator.run.retriever import BaselineRetriever, Retriever
from memdock_evaluator.run.row_maker import RowMaker
from memdock_evaluator.run.selection import Selection, Survey
from memdock_evaluator.run.settings import RunSettings
from memdock_evaluator.run.settling import known
from memdock_evaluator.run.space import Space, space_id
from memdock_evaluator.run.system_retriever import SystemRetriever
from memdock_evaluator.run.tools import Tools


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitRun:
    """One system and one dialogue: its memories, its answers, its verdicts, its rows."""

    dialogue: Dialogue
    parts: Parts
    retriever: Retriever
    answering: Answering
    row_maker: RowMaker
    settings: RunSettings

    async def run(self) -> None:
        """Does what earlier attempts left to do; raises only `RunStoppedError`."""
        keys = keys_of(self.dialogue, self.settings.repeats, self.parts.unit.ingest)
        stop_after = self.settings.stop_after
        if stop_after == INGEST.name:
            if not known(self.parts, RETRIEVE).keys() >= set(keys):
                await self.retriever.store(self.dialogue)
            return
        retrievals = await self.retriever.retrieve(self.dialogue, keys)
        if stop_after == RETRIEVE.name:
            return
        spaces = tuple(each.space_id for each in self.parts.newest(INGEST))
        answering = replace(self.answering, spaces=spaces)
        answered = await answering.answers(self.dialogue, retrievals)
        if stop_after == ANSWER.name:
            return
        judged = await answering.verdicts(self.dialogue, answered)
        rows = self.row_maker.rows(
            self.dialogue,
            retrievals,
            answered,
            judged,
            Stored.of(self.parts.newest(INGEST)),
        )
        self.parts.write(ROWS, rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """The units of a run. A dialogue without questions is left out."""

    settings: RunSettings
    survey: Survey
    tools: Tools
    folder: Folder
    run_id: str
    progress: Progress

    @property
    def expected(self) -> Counter[Unit]:
        """All units with the rows that each must get."""
        rows = self.settings.repeats * self.settings.judge_repeats
        return Counter(
            {
                unit: size.questions * rows
                for size in self.survey.sizes
                for unit in self._units_of(size.language, size.dialogue_id)
                if size.questions
            }
        )

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

    @property
    def _names(self) -> tuple[str, ...]:
        recorded = self.tools.recorded.systems if self.tools.recorded else ()
        return *self.tools.systems, *recorded, *self.tools.baselines

    def _units_of(self, language: str, dialogue_id: str) -> Iterator[Unit]:
        """A baseline stores nothing, so that there is nothing to store anew."""
        for name in self._names:
            for ingest in range(1 if name in self.tools.baselines else self.settings.ingest_repeats):
                yield Unit(system=name, language=language, dialogue_id=dialogue_id, ingest=ingest)

    async def _units(self, selection: Selection) -> AsyncIterator[tuple[Dialogue, Unit]]:
        """A file is read on another thread, so that calls go on meanwhile."""
        dialogues = selection.dialogues()
        while (dialogue := await asyncio.to_thread(next, dialogues, None)) is not None:
            if dialogue.questions:
                for unit in self._units_of(dialogue.language, dialogue.dialogue_id):
                    yield dialogue, unit

    async def _unit(self, item: tuple[Dialogue, Unit]) -> None:
        dialogue, unit = item
        parts = Parts(self.folder, unit)
        if _is_done(parts, self.settings.allowed_failed_turns):
            self._skip(dialogue, unit.system)
        else:
            await self._unit_run(dialogue, parts).run()

    def _skip(self, dialogue: Dialogue, name: str) -> None:
        if name in self.tools.systems:
            for work in (Work.ACCEPTED, Work.PROCESSED):
                self.progress.advance(work, sum(1 for _ in dialogue.turns))
        answers = len(dialogue.questions) * self.settings.repeats
        for work in (Work.RETRIEVALS, Work.ANSWERS):
            self.progress.advance(work, answers)
        self.progress.advance(Work.VERDICTS, answers * self.settings.judge_repeats)

    def _unit_run(self, dialogue: Dialogue, parts: Parts) -> UnitRun:
        baseline = self.tools.baselines.get(parts.unit.system)
        refuses = baseline is not None and not baseline.asks_model
        names_sources = baseline is None and self._names_sources(parts.unit.system)
        return UnitRun(
            dialogue=dialogue,
            parts=parts,
            retriever=self._retriever(parts),
            answering=Answering(
                answerer=self.tools.refusing if refuses else self.tools.answerer,
                judge=self.tools.judge,
                parts=parts,
                progress=self.progress,
                judge_repeats=self.settings.judge_repeats,
            ),
            row_maker=RowMaker(
                unit=parts.unit,
                k=self.settings.k,
                scores_retrieval=names_sources,
                guesses_sources=baseline is None and not names_sources,
                keeps_memories=baseline is None or baseline.keeps_memories,
                judge_repeats=self.settings.judge_repeats,
            ),
            settings=self.settings,
        )

    def _names_sources(self, system: str) -> bool:
        if self.tools.recorded is not None:
            return self.tools.recorded.systems[system]
        return self.tools.systems[system].declares(Feature.SOURCES)

    def _retriever(self, parts: Parts) -> Retriever:
        unit = parts.unit
        if unit.system in self.tools.baselines:
            return BaselineRetriever(
                baseline=self.tools.baselines[unit.system], as_of=self.settings.as_of, progress=self.progress
            )
        if self.tools.recorded is not None:
            return RecordedRetriever(parts=parts, progress=self.progress)
        space = Space(
            space_id=space_id(self.run_id, unit.dialogue_id, unit.language, unit.ingest),
            system=self.tools.systems[unit.system],
            parts=parts,
            settings=self.settings,
            progress=self.progress,
        )
        return SystemRetriever(space=space, parts=parts, settings=self.settings, progress=self.progress)


def _is_done(parts: Parts, allowed_failed_turns: float) -> bool:
    """Whether every question has its row and none is to be asked again, and the space was filled and given back."""
    rows, ingested, closed = parts.newest(ROWS), parts.newest(INGEST), parts.newest(CLOSE)
    asked = bool(rows) and all(row.outcome is not Outcome.INFRASTRUCTURE_ERROR for row in rows)
    whole = all(each.is_whole(allowed_failed_turns) for each in ingested)
    given_back = not ingested or (bool(closed) and closed[-1].blame is None)
    return asked and whole and given_back
