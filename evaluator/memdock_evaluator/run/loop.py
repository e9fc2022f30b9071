"""The only loop of a run: every system for every dialogue, several at once."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass

from memdock.types import Feature
from memdock_evaluator.dataset import Dialogue
from memdock_evaluator.results.folder import Folder
from memdock_evaluator.results.parts import Parts, Unit
from memdock_evaluator.run.answering import Answering
from memdock_evaluator.run.data import Data, Survey
from memdock_evaluator.run.opening import Tools
from memdock_evaluator.run.parallel import for_each
from memdock_evaluator.run.progress import Progress, Work
from memdock_evaluator.run.recall import BaselineRecall, Recall
from memdock_evaluator.run.rows import RowMaker
from memdock_evaluator.run.settings import RunSettings
from memdock_evaluator.run.spaces import space_id
from memdock_evaluator.run.system_recall import SystemRecall
from memdock_evaluator.run.unit import UnitRun, is_done


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
        return Counter(
            {
                Unit(system=name, language=size.language, dialogue_id=size.dialogue_id): size.questions * self._repeats
                for size in self.survey.sizes
                for name in self._names
                if size.questions
            }
        )

    async def run(self, data: Data) -> None:
        """Does what is not done; raises `RunStoppedError` where that cannot go on, or what `data` raises."""
        questions = self.expected.total()
        turns = sum(size.turns for size in self.survey.sizes if size.questions) * len(self.tools.systems)
        self.progress.expect(Work.TURNS, turns)
        for work in (Work.RETRIEVALS, Work.ANSWERS, Work.VERDICTS):
            self.progress.expect(work, questions)
        await for_each(self._units(data), self._unit, limit=self.settings.concurrency)

    @property
    def _names(self) -> tuple[str, ...]:
        return *self.tools.systems, *self.tools.baselines

    @property
    def _repeats(self) -> int:
        return self.settings.repeats

    async def _units(self, data: Data) -> AsyncIterator[tuple[Dialogue, str]]:
        """A file is read on another thread, so that calls go on meanwhile."""
        dialogues = data.dialogues()
        while (dialogue := await asyncio.to_thread(next, dialogues, None)) is not None:
            if dialogue.questions:
                for name in self._names:
                    yield dialogue, name

    async def _unit(self, item: tuple[Dialogue, str]) -> None:
        dialogue, name = item
        unit = Unit(system=name, language=dialogue.language, dialogue_id=dialogue.dialogue_id)
        parts = Parts(self.folder, unit)
        if is_done(parts):
            self._skip(dialogue, name)
        else:
            await self._unit_run(dialogue, parts).run()

    def _skip(self, dialogue: Dialogue, name: str) -> None:
        if name in self.tools.systems:
            self.progress.advance(Work.TURNS, sum(1 for _ in dialogue.turns))
        for work in (Work.RETRIEVALS, Work.ANSWERS, Work.VERDICTS):
            self.progress.advance(work, len(dialogue.questions) * self._repeats)

    def _unit_run(self, dialogue: Dialogue, parts: Parts) -> UnitRun:
        baseline = self.tools.baselines.get(parts.unit.system)
        refuses = baseline is not None and not baseline.asks_model
        return UnitRun(
            dialogue=dialogue,
            parts=parts,
            recall=self._recall(parts),
            answering=Answering(
                answerer=self.tools.refusing if refuses else self.tools.answerer,
                judge=self.tools.judge,
                parts=parts,
                progress=self.progress,
                limit=self.settings.parallel_questions,
            ),
            row_maker=RowMaker(
                unit=parts.unit,
                k=self.settings.k,
                scores_retrieval=baseline is None and self.tools.systems[parts.unit.system].declares(Feature.SOURCES),
                keeps_memories=baseline is None or baseline.keeps_memories,
            ),
            repeats=self._repeats,
        )

    def _recall(self, parts: Parts) -> Recall:
        unit = parts.unit
        if unit.system in self.tools.baselines:
            return BaselineRecall(
                baseline=self.tools.baselines[unit.system], as_of=self.settings.as_of, progress=self.progress
            )
        return SystemRecall(
            system=self.tools.systems[unit.system],
            parts=parts,
            space_id=space_id(self.run_id, unit.dialogue_id, unit.language),
            settings=self.settings,
            progress=self.progress,
        )
