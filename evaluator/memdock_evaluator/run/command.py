"""`memdock-eval run`: flags and environment into settings, the end of the run into sentences and an exit code."""

import os
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from rich.console import Console

from memdock.variables import unknown_variables
from memdock_evaluator.answer.endpoint import ModelEndpoint, ModelSettings, NamedJudge
from memdock_evaluator.answer.prompts import PromptError
from memdock_evaluator.cost.bill import told
from memdock_evaluator.cost.estimate import estimate, in_words
from memdock_evaluator.cost.prices import PriceError, Prices, read_prices
from memdock_evaluator.dataset import DatasetError
from memdock_evaluator.dataset.shipped import OWN
from memdock_evaluator.faults import RunStoppedError
from memdock_evaluator.interrupting import run_until_told
from memdock_evaluator.report.terminal import print_overview
from memdock_evaluator.report.writing import write_report
from memdock_evaluator.results.folder import Folder, FolderError
from memdock_evaluator.results.manifest import ManifestError, SystemTotals
from memdock_evaluator.results.parts import PartError
from memdock_evaluator.results.plan import Sample, Track
from memdock_evaluator.run.comparing import compare_options, compared_of
from memdock_evaluator.run.evaluation import RunEnd, evaluate
from memdock_evaluator.run.options import (
    choice_options,
    cost_options,
    how_options,
    model_options,
    pace_options,
    progress_option,
    what_options,
)
from memdock_evaluator.run.paper_profile import like_the_paper
from memdock_evaluator.run.plan_file import located
from memdock_evaluator.run.progress import Progress, show_progress
from memdock_evaluator.run.progress_lines import ProgressLines
from memdock_evaluator.run.settings import DataSource, RunSettings, SettingsError
from memdock_evaluator.run.tracks import read_vendor_settings
from memdock_evaluator.summary import RunFilesError, print_summary
from memdock_evaluator.words import counted

_SECRETS = ("--key", "--answer-key", "--judge-key")
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


def without_secrets(words: Sequence[str]) -> tuple[str, ...]:
    """A command line with "***" for every key that was typed."""
    shown: list[str] = []
    for word in words:
        flag, equals, _ = word.partition("=")
        if shown and shown[-1] in _SECRETS:
            shown.append("***")
        elif equals and flag in _SECRETS:
            shown.append(f"{flag}=***")
        else:
            shown.append(word)
    return tuple(shown)


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


def settings_of(context: click.Context, given: Mapping[str, Any]) -> RunSettings:
    """What the options of `run` ask for; raises `SettingsError`."""
    plain = {
        name: given[name]
        for name in (
            *("url", "systems", "baselines", "languages", "dialogues", "zone", "out"),
            *("ks", "ingest_unit", "repeats", "ingest_repeats", "judge_repeats", "seed", "reference_time", "as_of"),
            *("keep", "trial", "cache", "docker"),
            *("concurrency", "parallel_questions"),
        )
    }
    settings = RunSettings(
        **plain,
        key=secret_of(context, "key"),
        data=tuple(map(source_of, given["data"])),
        format=given["format_"],
        stop_after=given["stop_after"] or "",
        again=given["again"],
        context_tokens=given["context_tokens"],
        track=Track(given["track"]) if given["track"] else None,
        vendor_settings=read_vendor_settings(given["vendor_settings"]),
        compared=compared_of(given),
        prices=prices_of(context),
        budget=given["budget"],
        sample=_sample(given),
        shard=given["shard"],
        answerer=answerer_of(context),
        judge=judge_of(context),
        judges=judges_of(context),
        allowed_failed_turns=given["allow_failed_turns"] / 100,
        flush_timeout_s=given["flush_timeout"],
        call_timeout_s=given["call_timeout"],
        patience_s=given["patience"],
        profile=given["profile"] or "",
        command=without_secrets(("memdock-eval", *sys.argv[1:])),
    )
    return like_the_paper(settings) if settings.profile else settings


def prices_of(context: click.Context) -> Prices:
    """The price table of `--prices`, or the shipped one; raises `SettingsError`."""
    try:
        return read_prices(context.params["prices"])
    except PriceError as error:
        raise SettingsError(str(error)) from error


def answerer_of(context: click.Context) -> ModelSettings:
    """The answerer of the `--answer-...` options; raises `SettingsError`."""
    return ModelSettings(endpoint=_endpoint("answer", context), prompt=str(context.params["answer_prompt"] or ""))


def judge_of(context: click.Context) -> ModelSettings:
    """The judge of the `--judge-...` options; the offline one where `--judges` counts. Raises `SettingsError`."""
    if _takes_judges(context):
        return ModelSettings()
    given = context.params
    return ModelSettings(
        endpoint=_endpoint("judge", context),
        prompt=str(given["judge_prompt"] or ""),
        rubric=str(given["rubric"] or ""),
        form=given["judge_form"],
        seed=given["judge_seed"],
        verdict_tries=given["judge_tries"],
    )


def judges_of(context: click.Context) -> tuple[NamedJudge, ...]:
    """The judges of the `--judges` file; none without it, or where one judge counts. Raises `SettingsError`."""
    given = context.params
    if not _takes_judges(context):
        return ()
    _refuse_without_model("judge", context)
    from memdock_evaluator.judging.configured import read_judges

    limits = {"timeout_s": given["model_timeout"], "tries": given["model_tries"]}
    try:
        return tuple(read_judges(given["judges"], **limits, concurrency=given["model_concurrency"]))
    except SettingsError as error:
        raise SettingsError(f"--judges {error}") from error


_PRECEDENCE = (ParameterSource.DEFAULT_MAP, ParameterSource.ENVIRONMENT, ParameterSource.COMMANDLINE)
"""What goes before what stands ahead of it: a plan, a variable, what is typed."""


def _takes_judges(context: click.Context) -> bool:
    """Whether `--judges` counts, or the one judge; raises `SettingsError` where neither goes before the other."""
    given = context.params
    if given["judges"] is None:
        return False
    several = _precedence(context, "judges")
    one = max((_precedence(context, name) for name in ("judge_url", "judge_model") if given[name]), default=-1)
    if several == one:
        raise SettingsError("give --judges, or --judge-url and --judge-model, not both")
    return several > one


def _precedence(context: click.Context, name: str) -> int:
    source = context.get_parameter_source(name)
    return _PRECEDENCE.index(source) if source in _PRECEDENCE else -1


def _sample(given: Mapping[str, Any]) -> Sample | None:
    dialogues, questions = given["sample_dialogues"], given["sample_questions"]
    if dialogues is None and questions is None:
        return None
    return Sample(dialogues=dialogues, questions=questions, seed=given["sample_seed"])


def source_of(written: str) -> DataSource:
    """What a word of --data names: a file, with its language where it stands before; raises `SettingsError`."""
    language, equals, path = written.partition("=")
    declared = bool(equals) and language.isalpha() and len(language) <= 3
    source = DataSource(path=path, language=language.lower()) if declared else DataSource(path=written)
    if source.path != OWN and not Path(source.path).is_file():
        raise SettingsError(f"--data {written}: there is no file {source.path}")
    return source


def _endpoint(purpose: str, context: click.Context) -> ModelEndpoint | None:
    given = context.params
    url, model = given[f"{purpose}_url"], given[f"{purpose}_model"]
    if not url and not model:
        _refuse_without_model(purpose, context)
        return None
    if not url:
        raise SettingsError(
            f"--{purpose}-url is missing: give the address of the endpoint of {model}, like https://host/v1"
        )
    if not url.startswith(("http://", "https://")):
        raise SettingsError(f"--{purpose}-url {url!r}: give the endpoint's address, such as https://host/v1")
    if not model:
        raise SettingsError(f"--{purpose}-model is missing: name a model of {url}")
    return ModelEndpoint(
        purpose=purpose,
        url=url,
        model=model,
        key=secret_of(context, f"{purpose}_key"),
        temperature=given[f"{purpose}_temperature"],
        timeout_s=given["model_timeout"],
        tries=given["model_tries"],
        concurrency=given["model_concurrency"],
    )


def _refuse_without_model(purpose: str, context: click.Context) -> None:
    """What was typed for a model must not be dropped where no model is asked; variables may stand there unused."""
    for option in context.command.params:
        name = option.name or ""
        if _is_of_model(name, purpose) and _is_typed(context, name):
            by_file = purpose == "judge" and context.params["judges"] is not None
            do = "write it into the file of --judges" if by_file else f"give --{purpose}-url and --{purpose}-model"
            raise SettingsError(f"{option.opts[0]} is for the one model of --{purpose}-url, and none was given: {do}")


def _is_of_model(name: str, purpose: str) -> bool:
    """Whether an option is for the one model; how often answers are judged is the run's to say."""
    if name == "judge_repeats":
        return False
    return name.startswith(f"{purpose}_") or (name == "rubric" and purpose == "judge")


def secret_of(context: click.Context, name: str) -> str:
    """The key itself or the content of its file, "" without either; of both, the one that was typed, else the key."""
    key: str = context.params[name]
    file: Path | None = context.params[f"{name}_file"]
    if file is None or (key and _is_typed(context, name) >= _is_typed(context, f"{name}_file")):
        return key.strip()
    try:
        return file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file}: the key cannot be read from it") from error


def _is_typed(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is ParameterSource.COMMANDLINE


def refuse_unknown_variables(own: Collection[str] = ()) -> None:
    """A variable that is misspelt must not turn into a default; those of `run` may stand beside any command's `own`."""
    known = {parameter.envvar for parameter in run.params if isinstance(parameter.envvar, str)} | set(own)
    names = [name for name in os.environ if own or not name.startswith(_SERVERS)]
    if unknown := unknown_variables(names, known):
        raise click.UsageError(f"there is no setting {unknown[0]}: known are {', '.join(sorted(known))}")
