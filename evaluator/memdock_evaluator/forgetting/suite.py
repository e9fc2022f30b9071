"""The suite from its settings to its files: every system, dialogue and mode, each in a space of its own."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from random import Random

from rich.console import Console

from memdock_evaluator.answer.reply_cache import CacheError
from memdock_evaluator.dataset import Dialogue, Question
from memdock_evaluator.faults import Fault, RunStoppedError
from memdock_evaluator.forgetting.measuring import Measuring, gone, scope_of
from memdock_evaluator.forgetting.modes import Mode, evidence_of
from memdock_evaluator.forgetting.replies import Replying
from memdock_evaluator.forgetting.rows import CASES, NEIGHBOURS, TARGETS, CaseRows, NeighbourRow, TargetRow
from memdock_evaluator.forgetting.settings import ForgettingSettings
from memdock_evaluator.forgetting.space import Space
from memdock_evaluator.forgetting.summary import Summary, conclusion, summarise
from memdock_evaluator.forgetting.terminal import print_summary
from memdock_evaluator.forgetting.traces import Speech
from memdock_evaluator.results.folder import Folder
from memdock_evaluator.results.names import safe_name
from memdock_evaluator.results.parts import Parts, Unit
from memdock_evaluator.run.beginning import held
from memdock_evaluator.run.parallel import for_each
from memdock_evaluator.run.progress import Progress, Work, show_progress
from memdock_evaluator.run.selection import Selection
from memdock_evaluator.run.settling import blame_of
from memdock_evaluator.run.tools import plan_of, try_models
from memdock_evaluator.suites.ending import SuiteEnd
from memdock_evaluator.suites.folder import begin, earlier, finish, refuse_something_else, write_rows
from memdock_evaluator.suites.system import ErasableSystem, Opened, give_back, open_systems

LOOKS = 3
"""Before, after, and after the late retry; the last at the targets alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One dialogue in one system, forgotten in one mode."""

    system: ErasableSystem
    dialogue: Dialogue
    mode: Mode

    @property
    def unit(self) -> Unit:
        """Where its part is kept."""
        return Unit(system=self.system.name, language=self.dialogue.language, dialogue_id=self.dialogue.dialogue_id)


@dataclass(slots=True, kw_only=True)
class Suite:
    """The cases in work and what came of them."""

    settings: ForgettingSettings
    opened: Opened
    folder: Folder
    run_id: str
    progress: Progress
    done: list[CaseRows] = field(default_factory=list)
    spaces_not_reset: list[str] = field(default_factory=list)
    _open: list[Space] = field(default_factory=list)

    async def run(self, selection: Selection) -> None:
        """Every case; raises `RunStoppedError` where it cannot go on."""
        await for_each(self._cases(selection), self._case, limit=self.settings.run.concurrency)

    @property
    def targets(self) -> list[TargetRow]:
        """All of them so far, in their order."""
        return sorted((row for case in self.done for row in case.targets), key=lambda row: row.key)

    @property
    def neighbours(self) -> list[NeighbourRow]:
        """All of them so far, in their order."""
        return sorted((row for case in self.done for row in case.neighbours), key=lambda row: row.key)

    async def close(self) -> None:
        """Gives back what is left where the suite was stopped or cancelled in between; raises nothing."""
        await asyncio.gather(*map(self._give_back, tuple(self._open)))

    async def _give_back(self, space: Space) -> None:
        try:
            self._purge(space)
        except RunStoppedError as stop:
            self.progress.say(str(stop))
        if not self.settings.run.keep and not await space.close():
            self.spaces_not_reset.append(f"{space.system.name}/{space.space_id}")
        self._open.remove(space)

    def _purge(self, space: Space) -> None:
        """What models said of the space's memories goes with them, and does not come into the cache again."""
        cache = self.opened.tools.providers.cache
        try:
            if cache is not None:
                cache.purge(space.space_id)
        except CacheError as error:
            raise RunStoppedError(str(error)) from error

    async def _cases(self, selection: Selection) -> AsyncIterator[Case]:
        dialogues = selection.dialogues()
        while (dialogue := await asyncio.to_thread(next, dialogues, None)) is not None:
            if drawn(dialogue, self.settings)[0]:
                for system in self.opened.systems.values():
                    for mode in self.settings.modes:
                        if system.declares(mode.feature):
                            yield Case(system=system, dialogue=dialogue, mode=mode)

    async def _case(self, case: Case) -> None:
        dialogue, parts = case.dialogue, Parts(self.folder, case.unit)
        if (kept := parts.newest(CASES[case.mode])) and kept[-1].settled:
            self._tell_done(dialogue)
            self.done += kept
            return
        space = Space(
            system=case.system,
            space_id=space_id(self.run_id, dialogue, case.mode),
            dialogue=dialogue,
            settings=self.settings.run,
            progress=self.progress,
        )
        self._open.append(space)
        try:
            rows = await self._measure(space, case)
        except Fault as fault:
            self.progress.say(f"{space.place}, by {case.mode}: {fault.detail} ({fault.reason})")
            targets = drawn(dialogue, self.settings)[0]
            rows = CaseRows(targets=tuple(_unmeasured(question, case, fault) for question in targets))
        parts.write(CASES[case.mode], [rows])
        self.done.append(rows)
        await self._give_back(space)

    def _tell_done(self, dialogue: Dialogue) -> None:
        """Counts a case that an earlier attempt has measured."""
        targets, others = drawn(dialogue, self.settings)
        for work in (Work.ACCEPTED, Work.PROCESSED):
            self.progress.advance(work, sum(1 for _ in dialogue.turns))
        self.progress.advance(Work.RETRIEVALS, LOOKS * len(targets) + (LOOKS - 1) * len(others))

    async def _measure(self, space: Space, case: Case) -> CaseRows:
        dialogue, mode = case.dialogue, case.mode
        targets, others = drawn(dialogue, self.settings)
        speech = Speech(dialogue)
        await space.fill()
        before = await space.look(targets, others)
        scopes = {each.question_id: scope_of(mode, each, dialogue, before, speech) for each in targets}
        erased = {each.question_id: await space.forget(mode, scopes[each.question_id]) for each in targets}
        self._purge(space)
        taken = gone(scopes, erased, targets, dialogue)
        after = await space.look(targets, others)
        await space.send_again(taken & {turn_id for each in targets for turn_id in evidence_of(each, dialogue)})
        measuring = Measuring(
            system=case.system.name,
            mode=mode,
            dialogue=dialogue,
            speech=speech,
            gone=taken,
            before=before,
            after=after,
            retried=await space.look(targets),
        )
        rows = [
            await self._with_replies(
                measuring.target(question, erased[question.question_id]), question, measuring, space.space_id
            )
            for question in targets
        ]
        return CaseRows(targets=tuple(rows), neighbours=tuple(measuring.neighbours(others)))

    async def _with_replies(self, row: TargetRow, question: Question, measuring: Measuring, space_id: str) -> TargetRow:
        if not self.settings.replies or row.blame is not None or not row.wanted.turns:
            return row
        tools = self.opened.tools
        replying = Replying(answerer=tools.answerer, judge=tools.judge, progress=self.progress, space_id=space_id)
        before, after = (seen.at_k[question.question_id] for seen in (measuring.before, measuring.after))
        return replace(row, replies=await replying.before_and_after(measuring.dialogue, question, before, after))


async def forgetting_suite(settings: ForgettingSettings, console: Console, printed: Console) -> SuiteEnd:
    """Runs everything, writes the folder, prints the figures to `printed`; progress goes to `console`.

    Raises what `evaluate` raises where the suite cannot begin.
    """
    folder, selection = Folder(settings.run.out), Selection(settings.run)
    refuse_something_else(folder)
    survey = await asyncio.to_thread(selection.survey)
    progress = show_progress(console)
    async with AsyncExitStack() as stack:
        languages = tuple(survey.facts.languages)
        opened = await open_systems(settings.run, languages, stack, progress.say)
        if settings.replies and settings.run.trial:
            await try_models(settings.run, languages, opened.tools)
        plan = plan_of(settings.run, survey.facts, opened.tools)
        options = {"modes": settings.modes, "targets": settings.targets, "replies": settings.replies}
        earlier(folder, "forgetting", plan, options)
        stack.enter_context(held(folder))
        manifest = earlier(folder, "forgetting", plan, options)
        manifest = manifest or begin(folder, "forgetting", plan, options, settings.run.command)
        suite = Suite(settings=settings, opened=opened, folder=folder, run_id=manifest.run_id, progress=progress)
        suite.spaces_not_reset += await give_back(opened.systems, manifest.spaces_not_reset, progress.say)
        await asyncio.to_thread(_expect, progress, suite, selection)
        stopped = ""
        with progress:
            try:
                await suite.run(selection)
            except RunStoppedError as stop:
                stopped = str(stop)
            finally:
                await suite.close()
        summary = _summary(suite, stopped)
        whole = not (stopped or suite.spaces_not_reset) and all(case.settled for case in suite.done)
        write_rows(folder, TARGETS, suite.targets)
        write_rows(folder, NEIGHBOURS, suite.neighbours)
        finish(folder, manifest, summary, suite.spaces_not_reset, whole=whole)
    print_summary(summary, printed)
    return replace(conclusion(summary, suite.spaces_not_reset), unfinished=not whole)


def space_id(run_id: str, dialogue: Dialogue, mode: Mode) -> str:
    """`eval-<run>-<dialogue>-<language>-<mode>`."""
    return f"eval-{run_id}-{safe_name(dialogue.dialogue_id)}-{safe_name(dialogue.language)}-{mode}"


def drawn(dialogue: Dialogue, settings: ForgettingSettings) -> tuple[Sequence[Question], Sequence[Question]]:
    """The questions to forget, and the others with known evidence, both in the dialogue's order.

    The same in every system, mode and language. Abstentions have no evidence that would answer them.
    """
    known = [each for each in dialogue.questions if evidence_of(each, dialogue) and not each.abstention]
    random = Random(f"{settings.run.seed}/{dialogue.dialogue_id}")  # noqa: S311 - a sample, no secret
    names = sorted(each.question_id for each in known)
    chosen = set(random.sample(names, min(settings.targets, len(names))))
    return (
        [each for each in known if each.question_id in chosen],
        [each for each in known if each.question_id not in chosen],
    )


def _unmeasured(question: Question, case: Case, fault: Fault) -> TargetRow:
    return TargetRow(
        system=case.system.name,
        language=case.dialogue.language,
        dialogue_id=case.dialogue.dialogue_id,
        mode=case.mode,
        question_id=question.question_id,
        question=question.text,
        blame=blame_of(fault),
        evidence_turns=evidence_of(question, case.dialogue),
    )


def _expect(progress: Progress, suite: Suite, selection: Selection) -> None:
    turns = asked = 0
    for dialogue in selection.dialogues():
        targets, others = drawn(dialogue, suite.settings)
        turns += sum(1 for _ in dialogue.turns) if targets else 0
        asked += LOOKS * len(targets) + (LOOKS - 1) * len(others) if targets else 0
    cases = sum(
        system.declares(mode.feature) for system in suite.opened.systems.values() for mode in suite.settings.modes
    )
    for work in (Work.ACCEPTED, Work.PROCESSED):
        progress.expect(work, turns * cases)
    progress.expect(Work.RETRIEVALS, asked * cases)


def _summary(suite: Suite, stopped: str) -> Summary:
    return summarise(
        suite.targets,
        suite.neighbours,
        k=suite.settings.run.ks[0],
        systems={name: system.description for name, system in suite.opened.systems.items()},
        modes=suite.settings.modes,
        stopped=stopped,
    )
