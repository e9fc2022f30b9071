"""The suite from its settings to its files: every system through every moment."""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace

from rich.console import Console

from memdock_evaluator.faults import RunStoppedError
from memdock_evaluator.leaks.moments import SystemUnderTest
from memdock_evaluator.leaks.restarting import restart
from memdock_evaluator.leaks.rows import TRIALS, Moment
from memdock_evaluator.leaks.settings import LeakSettings
from memdock_evaluator.leaks.summary import conclusion, summarise
from memdock_evaluator.leaks.terminal import print_summary
from memdock_evaluator.leaks.trials import Canaries
from memdock_evaluator.leaks.twins import Pair, make_pairs
from memdock_evaluator.results.folder import Folder
from memdock_evaluator.results.plan import DataCounts, DataFacts
from memdock_evaluator.run.beginning import held
from memdock_evaluator.run.progress import Progress, Work, show_progress
from memdock_evaluator.run.settling import settled
from memdock_evaluator.run.tools import plan_of
from memdock_evaluator.suites.ending import SuiteEnd
from memdock_evaluator.suites.folder import begin, earlier, finish, refuse_something_else, write_rows
from memdock_evaluator.suites.system import give_back, open_systems

NO_RESTART = "no --restart-command was given"
NO_FORGET = "it declares no Forget by turn or by session"


async def leak_suite(settings: LeakSettings, console: Console, printed: Console) -> SuiteEnd:
    """Runs everything, writes the folder, prints the figures to `printed`; progress goes to `console`.

    Raises `SettingsError`, `FolderError` or `RunStoppedError` where the suite cannot begin.
    """
    folder = Folder(settings.run.out)
    refuse_something_else(folder)
    pairs = make_pairs(settings.languages, settings.pairs, seed=settings.run.seed)
    progress = show_progress(console)
    async with AsyncExitStack() as stack:
        opened = await open_systems(settings.run, settings.languages, stack, progress.say)
        plan = plan_of(settings.run, _facts(pairs), opened.tools)
        options = {"pairs": settings.pairs, "restart_command": settings.restart_command}
        found = earlier(folder, "leaks", plan, options)
        stack.enter_context(held(folder))
        manifest = found or begin(folder, "leaks", plan, options, settings.run.command)
        canaries = Canaries(pairs)
        tested = [
            SystemUnderTest(
                system=system,
                pairs=pairs,
                canaries=canaries,
                settings=settings.run,
                progress=progress,
                run_id=manifest.run_id,
                folder=folder,
                goes_on=found is not None,
                restarts=bool(settings.restart_command),
            )
            for system in opened.systems.values()
        ]
        stopped, not_reset = "", await give_back(opened.systems, manifest.spaces_not_reset, progress.say)
        with progress:
            _expect(progress, settings, tested)
            try:
                await _all_moments(settings, tested)
            except RunStoppedError as stop:
                stopped = str(stop)
            finally:
                for each in tested if not settings.run.keep else ():
                    not_reset += await each.close()
        rows = sorted((row for each in tested for row in each.rows), key=lambda row: row.key)
        skipped = {each.system.name: _skipped(settings, each) for each in tested}
        summary = summarise(rows, list(opened.systems), skipped, stopped)
        whole = not (stopped or not_reset) and all(settled(row.blame) for row in rows)
        write_rows(folder, TRIALS, rows)
        finish(folder, manifest, summary, not_reset, whole=whole)
    print_summary(summary, printed)
    return replace(conclusion(summary, not_reset), unfinished=not whole)


async def _all_moments(settings: LeakSettings, tested: list[SystemUnderTest]) -> None:
    """Moment by moment, so that one restart serves all systems."""
    await _each(tested, SystemUnderTest.at_rest)
    await _each(tested, SystemUnderTest.under_concurrency)
    if any(each.lacks(Moment.RESTART) for each in tested):
        await restart(settings.restart_command, settings.restart_timeout_s)
    if settings.restart_command:
        await _each(tested, SystemUnderTest.after_restart)
    await _each([each for each in tested if each.can_forget], SystemUnderTest.after_forget)
    await _each(tested, SystemUnderTest.after_reset)


async def _each(tested: list[SystemUnderTest], moment: Callable[[SystemUnderTest], Awaitable[None]]) -> None:
    for each in tested:
        await moment(each)


def _skipped(settings: LeakSettings, tested: SystemUnderTest) -> dict[Moment, str]:
    skipped = {} if settings.restart_command else {Moment.RESTART: NO_RESTART}
    return skipped if tested.can_forget else skipped | {Moment.FORGET: NO_FORGET}


def _facts(pairs: tuple[Pair, ...]) -> DataFacts:
    """The twins as the manifest counts data; they are made up from the seed, so there is no file."""
    counts: dict[str, DataCounts] = {}
    for pair in pairs:
        dialogues = [pair.first.dialogue, pair.second.dialogue]
        before = counts.get(pair.first.language, DataCounts())
        counts[pair.first.language] = DataCounts(
            dialogues=before.dialogues + 2,
            sessions=before.sessions + sum(len(each.sessions) for each in dialogues),
            turns=before.turns + sum(1 for each in dialogues for _ in each.turns),
            characters=before.characters + sum(each.characters for each in dialogues),
        )
    return DataFacts(files=(), format="twins", zone="UTC", dialogues=(), languages=counts, oddities={})


def _expect(progress: Progress, settings: LeakSettings, tested: list[SystemUnderTest]) -> None:
    turns = asked = 0
    for each in tested:
        twins = [twin for pair in each.pairs for twin in (pair.first, pair.second)]
        moments = len(Moment) - len(_skipped(settings, each))
        turns += 2 * sum(1 for twin in twins for _ in twin.dialogue.turns)
        asked += moments * 2 * sum(len(twin.facts) for twin in twins) + each.reads_under_concurrency
    for work in (Work.ACCEPTED, Work.PROCESSED):
        progress.expect(work, turns)
    progress.expect(Work.RETRIEVALS, asked)
