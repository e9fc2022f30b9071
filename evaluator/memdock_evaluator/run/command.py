"""`memdock-eval run`: the command itself, and the end of a run in sentences and an exit code."""

import os
import sys
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

import click
from rich.console import Console

from memdock.variables import unknown_variables
from memdock_evaluator.answer.prompts import PromptError
from memdock_evaluator.cost.bill import told
from memdock_evaluator.cost.estimate import estimate, in_words
from memdock_evaluator.cost.prices import PriceError
from memdock_evaluator.dataset import DatasetError
from memdock_evaluator.faults import RunStoppedError
from memdock_evaluator.interrupting import run_until_told
from memdock_evaluator.report.terminal import print_overview
from memdock_evaluator.report.writing import write_report
from memdock_evaluator.results.folder import Folder, FolderError
from memdock_evaluator.results.manifest import ManifestError, SystemTotals
from memdock_evaluator.results.parts import PartError
from memdock_evaluator.run.comparing import compare_options
from memdock_evaluator.run.evaluation import RunEnd, evaluate
from memdock_evaluator.run.given import settings_of
from memdock_evaluator.run.options import (
    choice_options,
    cost_options,
    how_options,
    model_options,
    pace_options,
    progress_option,
    what_options,
)
from memdock_evaluator.run.plan_file import located
from memdock_evaluator.run.progress import Progress, show_progress
from memdock_evaluator.run.progress_lines import ProgressLines
from memdock_evaluator.run.settings import RunSettings, SettingsError
from memdock_evaluator.summary import RunFilesError, print_summary
from memdock_evaluator.words import counted

_SERVERS = "MEMDOCK_EVAL_SERVE_"
"""The variables of `serve`."""
_AGAIN = "the same command goes on from here"


class _BudgetSpent(click.ClickException):
    """The budget is spent; what was paid for is kept."""

    exit_code = 4


class _TurnsFailed(click.ClickException):
    """Every question has its outcome, but turns that a system was given are not stored."""

    exit_code = 3


@click.command("run")
@what_options
@how_options
@model_options
@pace_options
@choice_options
@cost_options
@compare_options
@progress_option
@click.pass_context
def run(context: click.Context, /, **given: Any) -> None:
    """Evaluate memory systems on conversations, and write DIR.

    Every dialogue is stored in a space of its own, turn by turn with its times; then each question is asked, answered
    from what the system retrieved, and judged. DIR gets manifest.json, outcomes.jsonl, timings.jsonl, summary.json and
    report.html. A run that was stopped or killed goes on when the same command is given again.

    \b
    Two systems behind a gateway, on the bundled data, without a model:
      memdock-eval run --url grpc://127.0.0.1:7450 --key-file key.txt \\
        --system rag-dense --system rag-hybrid --data own --out runs/first
    \b
    RUMBA, answered and judged by models of yours:
      export MEMDOCK_EVAL_ANSWER_URL=https://api.openai.com/v1 MEMDOCK_EVAL_ANSWER_MODEL=gpt-4.1-mini
      export MEMDOCK_EVAL_ANSWER_KEY=... MEMDOCK_EVAL_JUDGE_URL=... MEMDOCK_EVAL_JUDGE_MODEL=...
      memdock-eval run --url grpc://127.0.0.1:7450 --key-file key.txt --system rag-hybrid \\
        --baseline full-context --baseline oracle --data ru=rumba_ru.jsonl --data en=rumba_en.jsonl --out runs/rumba
    \b
    A system that speaks the protocol itself needs no gateway; a baseline needs no system:
      memdock-eval run --url http://127.0.0.1:8080 --system my-memory --data my.jsonl --out runs/mine
      memdock-eval run --baseline oracle --baseline refusal --data own --language ru --out runs/bounds

    Exit code 0: complete; 1: incomplete or failed, the message says why; 2: the command line is wrong; 3: complete but
    for turns that a system failed to store; 4: the budget is spent.
    """
    settings = partial(settings_of, context, given)
    try:
        if given["estimate"]:
            _tell_estimate(settings)
        elif not given["out"]:
            raise click.UsageError("--out is missing: name the folder of the results", context)
        else:
            begin_run(settings, ProgressLines(sys.stderr) if given["progress"] == "json" else None)
    except click.UsageError as error:
        raise located(context, error) from error


def _tell_estimate(settings: Callable[[], RunSettings]) -> None:
    refuse_unknown_variables()
    try:
        click.echo("\n".join(in_words(estimate(settings()))))
    except (SettingsError, PromptError) as error:
        raise click.UsageError(str(error)) from error
    except DatasetError as error:
        raise click.ClickException(str(error)) from error


def begin_run(settings: Callable[[], RunSettings], progress: Progress | None = None) -> None:
    """Carries out what the options of a command say, which `settings` makes of them; errors as click shows them."""
    refuse_unknown_variables()
    try:
        made = settings()
    except SettingsError as error:
        raise click.UsageError(str(error)) from error
    try:
        carry_out(made, progress)
    except KeyboardInterrupt as error:
        raise click.ClickException(f"interrupted; {_AGAIN}") from error


def carry_out(settings: RunSettings, progress: Progress | None = None) -> None:
    """Runs it, writes and prints its figures; an error as click shows it, and `KeyboardInterrupt` by a signal.

    `progress`: where it is told how far the run is; `None`: on standard error, for people.
    """
    try:
        end = run_until_told(evaluate(settings, progress or show_progress(Console(stderr=True))))
    except (SettingsError, PromptError, ManifestError, PriceError) as error:
        raise click.UsageError(str(error)) from error
    except (DatasetError, FolderError, PartError, RunStoppedError) as error:
        raise click.ClickException(str(error)) from error
    try:
        _tell(end, settings.out)
    except (FolderError, RunFilesError, ManifestError) as error:
        raise click.ClickException(str(error)) from error


def _tell(end: RunEnd, out: str) -> None:
    if end.stopped_after and not (end.stopped or end.has_rows):
        click.echo(f"stopped after {end.stopped_after}, as asked; the same command without --stop-after goes on")
        return
    if end.has_rows:
        summary = write_report(out)
        print_summary(summary, Console())
        print_overview(Folder(out), Console())
        if differs := end.manifest.plan.differs:
            click.echo(f"not as in the paper: {', '.join(each.field for each in differs)} (manifest.json says how)")
        click.echo(f"{counted(end.expected, 'row')}; open {out}/report.html")
    for line in told(end.manifest.cost) if end.manifest.cost else ():
        click.echo(line)
    if end.budget_spent:
        raise _BudgetSpent(f"{end.stopped}; the same command with a higher --budget goes on from here")
    if end.only_lacks_turns:
        choice = "the same command sends them again, --allow-failed-turns PERCENT takes the run as it is"
        raise _TurnsFailed(f"{_failed_turns(end)}; {choice}")
    if not end.complete:
        raise click.ClickException(f"{_unfinished(end)}; {_AGAIN}")


def _unfinished(end: RunEnd) -> str:
    found = [end.stopped] if end.stopped else []
    if end.unanswered:
        found.append(f"{end.unanswered} of {end.expected} questions have no outcome yet{_why(end)}")
    if end.lacking:
        found.append(_failed_turns(end))
    if end.spaces_not_reset and not end.stopped:
        spaces = counted(len(end.spaces_not_reset), "space")
        found.append(f"{spaces} not reset ({', '.join(end.spaces_not_reset[:3])})")
    return "; ".join(found)


def _failed_turns(end: RunEnd) -> str:
    """ "rag: 3 of 840 turns failed (PROVIDER_PROTOCOL_ERROR 3)", for each system."""
    return "; ".join(_failed_turns_of(name, end.manifest.totals[name]) for name in end.lacking)


def _failed_turns_of(name: str, totals: SystemTotals) -> str:
    reasons = ", ".join(f"{reason} {count}" for reason, count in totals.failed_turns.items())
    return f"{name}: {totals.ingest.failed} of {counted(totals.ingest.turns_read, 'turn')} failed ({reasons})"


def _why(end: RunEnd) -> str:
    failed = sum(each.coverage.infrastructure_error for each in end.manifest.totals.values())
    return f" ({failed} for want of infrastructure: their rows say why)" if failed else ""


def refuse_unknown_variables(own: Collection[str] = ()) -> None:
    """A variable that is misspelt must not turn into a default; those of `run` may stand beside any command's `own`."""
    known = {parameter.envvar for parameter in run.params if isinstance(parameter.envvar, str)} | set(own)
    names = [name for name in os.environ if own or not name.startswith(_SERVERS)]
    if unknown := unknown_variables(names, known):
        raise click.UsageError(f"there is no setting {unknown[0]}: known are {', '.join(sorted(known))}")
