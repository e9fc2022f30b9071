"""An earlier run whose memories, and its answers too, are taken over by a run of its own folder."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from memdock_evaluator.answer.answerer import Answer, Asked
from memdock_evaluator.dataset import Dialogue
from memdock_evaluator.results.finalise import MANIFEST
from memdock_evaluator.results.folder import Folder
from memdock_evaluator.results.manifest import Manifest, ManifestError
from memdock_evaluator.results.parts import Parts, Unit
from memdock_evaluator.results.plan import DataFacts, ModelFacts, Plan, Reused, differences
from memdock_evaluator.results.records import ANSWER, CLOSE, INGEST, JUDGE, RETRIEVE
from memdock_evaluator.run.contestants import Contestant
from memdock_evaluator.run.progress import Progress, Work
from memdock_evaluator.run.retriever import Retrievals, latest
from memdock_evaluator.run.selection import source_of, stated_format
from memdock_evaluator.run.settings import Reuse, RunSettings, SettingsError
from memdock_evaluator.run.settling import Key, known


class RecordedRun:
    """The run of a `Reuse`, complete and over data that is still the same."""

    def __init__(self, reuse: Reuse) -> None:
        """Raises `SettingsError`, `ManifestError` or `FolderError`."""
        self.reuse = reuse
        self.folder = Folder(reuse.run)
        content = self.folder.read(MANIFEST)
        if content is None:
            raise SettingsError(f"{reuse.run} holds no run")
        self.manifest = Manifest.from_json(content, place=f"{reuse.run}/{MANIFEST}")
        if self.manifest.finished is None:
            raise SettingsError(f"{reuse.run} is not complete: finish it first, with the command that began it")

    @property
    def plan(self) -> Plan:
        """What the earlier run was."""
        return self.manifest.plan

    @property
    def reused(self) -> Reused:
        """What the new manifest says of it."""
        reuse = self.reuse
        return Reused(run_id=self.manifest.run_id, through=reuse.through, only_unscored=reuse.only_unscored)

    def settings(self, settings: RunSettings) -> RunSettings:
        """`settings` with all that the earlier run fixes: its data, its systems' names and how they were asked."""
        plan = self.plan
        return replace(
            settings,
            data=tuple(map(source_of, plan.data.files)),
            format=stated_format(plan.data),
            zone=plan.data.zone,
            languages=tuple(plan.data.languages),
            dialogues=plan.data.dialogues,
            baselines=tuple(each.name.partition(":")[2] for each in plan.systems if each.baseline),
            repeats=plan.repeats,
            ingest_repeats=plan.ingest_repeats,
            judge_repeats=settings.judge_repeats or plan.judge_repeats,
            seed=plan.seed if self.reuse.through == ANSWER.name else settings.seed,
            reference_time=plan.reference_time,
            as_of=plan.as_of,
            keep=True,
            allowed_failed_turns=1.0,
            compared=settings.compared.or_else(self.manifest.compared),
        )

    def check(self, data: DataFacts) -> None:
        """Raises `SettingsError` where the data is not what the earlier run read."""
        if found := differences(self.plan, replace(self.plan, data=data)):
            listed = "\n  ".join(found)
            raise SettingsError(f"the data of {self.reuse.run} has changed since:\n  {listed}")

    def check_judges(self, plan: Plan) -> None:
        """Raises `ManifestError` where verdicts would be kept beside those of other judges."""
        same = replace(plan, judge=self.plan.judge, judges=self.plan.judges, judge_repeats=self.plan.judge_repeats)
        if self.reuse.only_unscored and (found := differences(same, plan)):
            listed = "\n  ".join(found)
            raise ManifestError(
                f"--only-unscored keeps verdicts, so the judge must be the same. It differs in\n  {listed}"
            )

    def copy_into(self, folder: Folder, units: Iterable[Unit]) -> None:
        """Copies the parts that are taken over; those that are there already are left. Raises `PartError`."""
        for unit in units:
            parts = Parts(self.folder, unit)
            parts.check()
            there = set(folder.names(unit.folder))
            for name in self.folder.names(unit.folder):
                if name.partition("-")[0] in self._stages and name not in there:
                    folder.write(f"{unit.folder}/{name}", self.folder.read(f"{unit.folder}/{name}") or b"")
            if self.reuse.only_unscored and not any(name.startswith(JUDGE.name) for name in there):
                verdicts = known(parts, JUDGE)
                Parts(folder, unit).write(
                    JUDGE, [replace(each, usage=(), paid=()) for each in verdicts.values() if each.label is not None]
                )

    @property
    def _stages(self) -> Sequence[str]:
        memories = INGEST.name, CLOSE.name, RETRIEVE.name
        return (*memories, ANSWER.name) if self.reuse.through == ANSWER.name else memories


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRetriever:
    """The memories that an earlier run retrieved; no system is asked."""

    contestants: Sequence[Contestant]
    progress: Progress

    async def store(self, dialogue: Dialogue) -> None:
        """Nothing is stored."""

    async def retrieve(self, dialogue: Dialogue, keys: Sequence[Key]) -> Retrievals:  # noqa: ARG002
        """What was retrieved then."""
        self.progress.advance(Work.RETRIEVALS, len(keys) * len(self.contestants))
        return {each.name: latest(each.parts, keys) for each in self.contestants}


class RecordedAnswerer:
    """Stands for the answerer of an earlier run whose answers are all there."""

    def __init__(self, facts: ModelFacts) -> None:
        self._facts = facts

    @property
    def facts(self) -> ModelFacts:
        """The earlier answerer's."""
        return self._facts

    async def answer(self, asked: Asked, *, repeat: int) -> Answer:
        """Is never called."""
        raise AssertionError(f"an answer is missing in a complete run: {asked.text} ({repeat})")

    async def close(self) -> None:
        """Nothing is open."""
