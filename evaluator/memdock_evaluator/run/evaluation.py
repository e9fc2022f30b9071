"""A run from its settings to its files."""

import asyncio
import gc
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from memdock_evaluator.cost.bill import bill
from memdock_evaluator.cost.budget import Budget, BudgetSpentError
from memdock_evaluator.cost.prices import Prices, read_prices
from memdock_evaluator.cost.spending import budget_of, check_prices, left_out, on_the_bill, paid_replies_of
from memdock_evaluator.faults import RunStoppedError
from memdock_evaluator.isolation.watch import watching
from memdock_evaluator.results.finalise import MANIFEST, totals, write_outcomes, write_timings
from memdock_evaluator.results.folder import Folder
from memdock_evaluator.results.manifest import Manifest
from memdock_evaluator.results.parts import Parts
from memdock_evaluator.results.records import ANSWER, INGEST, RETRIEVE, ROWS, Kind
from memdock_evaluator.results.stored import ingested_in
from memdock_evaluator.run.asking_again import ask_again_on_demand, ended
from memdock_evaluator.run.beginning import begin, earlier, held, now
from memdock_evaluator.run.loop import Loop
from memdock_evaluator.run.progress import Progress
from memdock_evaluator.run.recorded import RecordedRun
from memdock_evaluator.run.selection import Selection
from memdock_evaluator.run.settings import RunSettings, SettingsError
from memdock_evaluator.run.settling import settled
from memdock_evaluator.run.tools import open_tools, plan_of, refuse_unknown_systems, try_models
from memdock_evaluator.words import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """How a run ended. `stopped`: why it could not go on; "": it went through all that there is.

    `has_rows`: every question has a row, so that `outcomes.jsonl` and `timings.jsonl` were written. `lacking`: the
    systems with dialogues of which more turns failed than are allowed. `stopped_after`: the stage that was asked to be
    the last, "" where all were.
    """

    manifest: Manifest
    has_rows: bool
    kept: bool
    lacking: tuple[str, ...] = ()
    stopped: str = ""
    stopped_after: str = ""
    budget_spent: bool = False

    @property
    def expected(self) -> int:
        """Rows that there will be."""
        return sum(each.coverage.expected for each in self.manifest.totals.values())

    @property
    def unanswered(self) -> int:
        """Questions without a row, or with one that is to be asked again."""
        found = (each.coverage for each in self.manifest.totals.values())
        return sum(each.expected - each.answered - each.refused - each.system_error for each in found)

    @property
    def spaces_not_reset(self) -> tuple[str, ...]:
        """Spaces that still hold data though nobody asked to keep them."""
        if self.kept:
            return ()
        return tuple(space for each in self.manifest.totals.values() for space in each.spaces_not_reset)

    @property
    def complete(self) -> bool:
        """Nothing is left to do."""
        return not (self.stopped or self.unanswered or self.lacking or self.spaces_not_reset)

    @property
    def only_lacks_turns(self) -> bool:
        """All that is left to do is to send failed turns again."""
        return bool(self.lacking) and not (self.stopped or self.unanswered)


async def evaluate(settings: RunSettings, progress: Progress) -> RunEnd:
    """Runs what the settings say, or goes on with it, and writes the files of `settings.out`.

    Raises `SettingsError`, `DatasetError`, `PromptError`, `ManifestError`, `FolderError`,
    `PartError` or `RunStoppedError` where the run cannot begin; what stops it later is told by the `RunEnd`.
    """
    with _rarely_collected():
        return await _evaluated(settings, progress)


async def _evaluated(settings: RunSettings, progress: Progress) -> RunEnd:
    recorded = None if settings.reuse is None else RecordedRun(settings.reuse)
    if recorded is not None:
        settings = recorded.settings(settings)
    folder, selection = Folder(settings.out), Selection(settings)
    survey = await asyncio.to_thread(selection.survey)
    if recorded is not None:
        recorded.check(survey.facts)
    async with AsyncExitStack() as stack:
        languages = tuple(survey.facts.languages)
        tools = await open_tools(settings, languages, stack, progress.say, recorded)
        plan = plan_of(settings, survey.facts, tools)
        settings = replace(settings, compared=settings.compared.among(plan.systems))
        refuse_unknown_systems(settings.compared, plan.systems)
        if recorded is not None:
            recorded.check_judges(plan)
        if settings.budget is not None:
            check_prices(plan, settings.prices or read_prices())
        found = earlier(folder, plan)
        if settings.again and found is None:
            raise SettingsError(f"--again: {folder.address} holds no run whose questions could be asked again")
        if found is not None and not settings.again:
            finished = f"the run in {folder.address} is finished already; its figures and report are made again"
            progress.say(finished if found.finished else f"going on with the run in {folder.address}")
        if settings.trial and (found is None or found.finished is None or settings.again):
            await try_models(settings, languages, tools)
        watch = stack.enter_context(watching(settings.docker, settings.systems, progress.say))
        stack.enter_context(held(folder, progress.say))  # last, so that a run that cannot begin leaves no folder
        manifest = earlier(folder, plan) or begin(folder, plan, settings.command, settings.compared)
        manifest = replace(manifest, compared=settings.compared.or_else(manifest.compared))
        loop = Loop(
            settings=settings,
            plan=plan,
            survey=survey,
            tools=tools,
            folder=folder,
            run_id=manifest.run_id,
            progress=progress,
        )
        if recorded is not None:
            recorded.copy_into(folder, loop.expected)
        if settings.again:
            manifest = ask_again_on_demand(folder, manifest, loop.expected, settings.again)
        prices = settings.prices or read_prices()
        if settings.cache:
            tools.bill_to(manifest.run_id, paid_replies_of(folder, loop.expected))
        budget: Budget | None = None
        if settings.budget is not None:
            tools.keep_to(budget := budget_of(settings.budget, prices, plan, folder, loop.expected))
            if unknown := left_out(plan, prices):
                progress.say(f"not in the budget, for they have no price: {', '.join(unknown)} (--prices FILE)")
        stopped: RunStoppedError | None = None
        with progress:
            try:
                await loop.run(selection)
            except RunStoppedError as stop:
                stopped = stop
        manifest = replace(manifest, isolation=await asyncio.to_thread(watch.record, manifest.isolation))
        end = _end(loop, manifest, _failed(loop) if stopped is None else str(stopped), prices)
        if budget is None or end.manifest.cost is None or not isinstance(stopped, BudgetSpentError):
            return end
        return replace(end, budget_spent=True, stopped=on_the_bill(end.stopped, budget, end.manifest.cost))


@contextmanager
def _rarely_collected() -> Iterator[None]:
    """A run makes and drops many records and few cycles: looking for cycles at every 700 takes a tenth of its time."""
    before = gc.get_threshold()
    gc.set_threshold(50_000, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _failed(loop: Loop) -> str:
    """Why the stage that was to be the last one is not done; "" where it is, and for a run of all stages."""
    kinds: tuple[Kind[Any], ...] = (INGEST, RETRIEVE, ANSWER)
    for kind in kinds:
        if kind.name != loop.settings.stop_after:
            continue
        failed = 0
        for unit in loop.expected:
            newest = {getattr(record, "key", None): record for record in Parts(loop.folder, unit).read(kind)}
            failed += sum(not settled(record.blame) for record in newest.values())
        if failed:
            what = counted(failed, "dialogue" if kind is INGEST else "question")
            return f"{what} failed at {kind.name} for want of infrastructure"
    return ""


def _end(loop: Loop, manifest: Manifest, stopped: str, prices: Prices) -> RunEnd:
    folder, expected = loop.folder, loop.expected
    has_rows = all(Parts(folder, unit).has(ROWS) for unit, rows in expected.items() if rows)
    if has_rows:
        write_outcomes(folder, expected)
        write_timings(folder, expected)
    found = totals(folder, expected)
    manifest = replace(manifest, totals=found, cost=bill(manifest.plan, folder, expected, prices))
    allowed = loop.settings.allowed_failed_turns
    lacking = {
        unit.system
        for unit in expected
        if not all(ingested.is_whole(allowed) for ingested in Parts(folder, unit).newest(INGEST))
    }
    end = RunEnd(
        manifest=manifest,
        has_rows=has_rows,
        kept=loop.settings.keep,
        lacking=tuple(sorted(lacking)),
        stopped=stopped,
        stopped_after=loop.settings.stop_after,
    )
    unstored = any(unit.system in loop.tools.systems and ingested_in(Parts(folder, unit)) is None for unit in expected)
    if not (end.unanswered or end.lacking or unstored):
        manifest = ended(manifest, folder, expected)
        end = replace(end, manifest=replace(manifest, finished=manifest.finished or now()))
    folder.write(MANIFEST, end.manifest.to_json())
    return end
