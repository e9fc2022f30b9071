"""`memdock-eval judge`: judges against answers whose verdict is known, and against each other."""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import orjson
from rich.console import Console

from memdock_evaluator.answer.endpoint import NamedJudge
from memdock_evaluator.answer.offline import OVERLAP
from memdock_evaluator.answer.prompts import PromptError
from memdock_evaluator.interrupting import run_until_told
from memdock_evaluator.judging.agreement import Agreement
from memdock_evaluator.judging.audit import Audit, audit
from memdock_evaluator.judging.panel import open_members
from memdock_evaluator.judging.probes import Probe, ProbesError, read_probes
from memdock_evaluator.judging.rows import agreement_by_language
from memdock_evaluator.judging.terminal import print_agreement, print_audit
from memdock_evaluator.ranges import PERCENT
from memdock_evaluator.results.folder import Folder, FolderError
from memdock_evaluator.results.manifest import ManifestError
from memdock_evaluator.run.command import refuse_unknown_variables
from memdock_evaluator.run.given import judge_of, judges_of
from memdock_evaluator.run.options import call_options, judge_options
from memdock_evaluator.run.settings import SettingsError
from memdock_evaluator.run.tools import open_providers
from memdock_evaluator.summary.source import RunFilesError, read_run
from memdock_evaluator.waiting import unheard

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


class _TooFewRight(click.ClickException):
    """A judge that is not as good as was asked for."""

    exit_code = 3


@click.group("judge")
def judge() -> None:
    """Compare judges with known verdicts and with each other."""


@judge.command("audit")
@judge_options
@call_options
@click.option("--probes", type=click.Path(dir_okay=False, path_type=Path), help="Your probes in place of the bundled.")
@click.option("--language", "languages", multiple=True, metavar="CODE", help="Only these languages.  [default: all]")
@click.option("--at-least", type=PERCENT, metavar="PERCENT", help="Exit code 3 where a judge is right less often.")
@json_option
@click.pass_context
def audit_command(context: click.Context, /, **given: Any) -> None:
    """Ask each judge about answers whose verdict is known, and print its errors.

    Long-winded right answers, wrong facts of the same topic, parts of lists, right answers with an unsupported detail,
    refusals where there is an answer and where there is none, facts made up where there is none; the same in English
    and Russian. The judges are those of `run`: --judge-url and --judge-model, or several by --judges.

    \b
      memdock-eval judge audit --judges judges.yaml
      memdock-eval judge audit --judge-url http://127.0.0.1:8000/v1 --judge-model pollux --judge-form pollux --json

    Exit code 0: all were asked; 1: a judge could not be asked about every probe; 2: the command line or a file is
    wrong; 3: a judge is on the right side of right and wrong less often than --at-least.
    """
    refuse_unknown_variables()
    try:
        judges = judges_of(context) or (_only(context),)
        probes = _probes(given["probes"], given["languages"])
        found = run_until_told(_audited(judges, probes, given["cache"]))
    except (SettingsError, ProbesError, PromptError) as error:
        raise click.UsageError(str(error)) from error
    except KeyboardInterrupt as error:
        raise click.ClickException("interrupted; nothing is kept of an audit") from error
    if given["as_json"]:
        click.echo(orjson.dumps(asdict(found), option=orjson.OPT_INDENT_2).decode())
    else:
        print_audit(found, Console())
    _judge_judges(found, given["at_least"])


@judge.command("agreement")
@click.argument("run_dir")
@json_option
def agreement_command(run_dir: str, as_json: bool) -> None:
    """Print how far the judges of RUN_DIR agree, by language: alpha over the labels, kappa of right and wrong.

    Only what more than one judge was asked about counts. No model is asked.
    """
    try:
        files = read_run(Folder(run_dir))
    except (RunFilesError, ManifestError, FolderError) as error:
        raise click.ClickException(str(error)) from error
    found = agreement_by_language(files.rows, files.manifest.plan)
    if not found:
        raise click.ClickException(f"{run_dir} was judged by one judge alone: give several with --judges")
    if as_json:
        click.echo(orjson.dumps({code: asdict(each) for code, each in found.items()}, option=orjson.OPT_INDENT_2))
    else:
        _print_by_language(found)


def _print_by_language(found: dict[str, Agreement]) -> None:
    console = Console()
    for language, each in found.items():
        console.print(f"\n[bold]{language}[/bold]", end="")
        print_agreement(each, console)


async def _audited(judges: Sequence[NamedJudge], probes: Sequence[Probe], cache: str) -> Audit:
    languages = tuple(dict.fromkeys(probe.item.language for probe in probes))
    async with AsyncExitStack() as stack:
        members = open_members(judges, languages, seed=0, providers=open_providers(cache, stack, unheard))
        for member in members:
            stack.push_async_callback(member.judge.close)
        if not members:
            raise SettingsError(f"no judge serves {', '.join(languages)}")
        return await audit(members, probes)


def _only(context: click.Context) -> NamedJudge:
    settings = judge_of(context)
    return NamedJudge(name=OVERLAP if settings.endpoint is None else settings.endpoint.model, settings=settings)


def _probes(path: Path | None, languages: Sequence[str]) -> Sequence[Probe]:
    probes = [probe for probe in read_probes(path) if not languages or probe.item.language in languages]
    if not probes:
        raise ProbesError(f"there are no probes in {', '.join(languages)}")
    return probes


def _judge_judges(found: Audit, at_least: float | None) -> None:
    if failed := [f"{name}: {each.failed}" for name, each in found.judges.items() if each.failed]:
        raise click.ClickException("; ".join(failed))
    if at_least is None:
        return
    shares = {name: 100 * f.same_side / f.probes for name, each in found.judges.items() if (f := each.figures)}
    if bad := [f"{name} is right {share:.1f} %" for name, share in shares.items() if share < at_least]:
        raise _TooFewRight(f"{'; '.join(bad)} of the time, less than {at_least:g} %")
