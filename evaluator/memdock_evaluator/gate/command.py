"""`memdock-eval gate`: whether a build may go on."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from memdock_evaluator.gate.holding import hold
from memdock_evaluator.gate.shape import MEASURES, Gate, GateError, GateSettings, Margins, Verdict
from memdock_evaluator.gate.told import sentence, table, to_json, to_junit
from memdock_evaluator.ranges import MAX_ITEMS, Number
from memdock_evaluator.results.folder import FolderError
from memdock_evaluator.results.manifest import ManifestError
from memdock_evaluator.results.parts import PartError
from memdock_evaluator.results.rows import Stage
from memdock_evaluator.run.options import Decorator
from memdock_evaluator.summary import RunFilesError
from memdock_evaluator.terminal import print_table
from memdock_evaluator.words import counted

_CODES = {Verdict.PASSED: 0, Verdict.REGRESSION: 1, Verdict.INCONCLUSIVE: 3}
_MARGIN = Number(min=0, min_open=True, max=1000)
_GATE = GateSettings()


def _margin(name: str, what: str) -> Decorator:
    """An option of one margin, in points of a hundred or percent."""
    default = round(100 * getattr(_GATE.margins, name), 6)
    return click.option(
        f"--{name}-margin", type=_MARGIN, metavar="POINTS", default=default, show_default=True, help=what
    )


@click.command("gate")
@click.argument("results")
@click.option(
    "--baseline", "baselines", multiple=True, required=True, metavar="RUN", help="A run to be held to; may be repeated."
)
@click.option(
    "--system",
    "systems",
    multiple=True,
    metavar="NAME",
    help="Only this one.  [default: the baseline's memory systems]",
)
@click.option(
    "--slice",
    "slices",
    multiple=True,
    metavar="AXIS",
    help="Hold the accuracy of each value of this axis, such as temporality; may be repeated.",
)
@click.option("--without", multiple=True, type=click.Choice(MEASURES), help="Do not hold this; may be repeated.")
@_margin("accuracy", "How much lower accuracy may be.")
@_margin("slices", "The same of a slice.")
@_margin("recall", "How much lower recall by session may be.")
@_margin("coverage", "How many fewer of the questions may have a score.")
@_margin("latency", "By how many percent the p95 may be longer.")
@_margin("cost", "By how many percent answers and the memory system's own calls may cost more.")
@_margin("leaks", "What silence must rule out: pairs of users with a leak, beyond the baseline's.")
@_margin("residue", "The same of dialogues of which something is left after Forget.")
@click.option(
    "--stage",
    type=click.Choice([stage.value for stage in Stage]),
    default=_GATE.stage,
    show_default=True,
    help="Whose latency is held.",
)
@click.option(
    "--least-dialogues",
    type=click.IntRange(min=2, max=MAX_ITEMS),
    metavar="N",
    default=_GATE.least_dialogues,
    show_default=True,
    help="Fewer prove nothing.",
)
@click.option(
    "--alpha",
    type=Number(min=0, min_open=True, max=0.5, max_open=True),
    default=_GATE.alpha,
    show_default=True,
    help="The chance to pass what is worse by the margin.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON in place of the table.")
@click.option("--junit", type=click.Path(dir_okay=False, path_type=Path), help="Also write JUnit's XML to this file.")
def gate(results: str, baselines: tuple[str, ...], as_json: bool, junit: Path | None, **given: Any) -> None:
    """Hold the run RESULTS against stored ones: is it no worse, by a margin, in anything that counts?

    A check passes where it is shown, one-sided and by dialogue, that the results are not worse by the margin. Leaks and
    residue of forgetting are held where the baseline has them (report --with). RESULTS and RUN are folders or any
    address that fsspec knows. Every baseline must be passed. Other data, another answerer or judge are refused.

    \b
      memdock-eval gate runs/new --baseline s3://bucket/baselines/1.4 --slice temporality --junit gate.xml

    Exit code 0: passed; 1: a regression; 2: the command line is wrong, or the runs cannot be compared; 3: inconclusive:
    what was found is within the margins, but it could still be beyond one, or something was not measured.
    """
    try:
        found = hold(results, baselines, _settings(given))
    except (GateError, RunFilesError, ManifestError, FolderError, PartError) as error:
        raise click.UsageError(str(error)) from error
    if junit is not None:
        try:
            junit.write_bytes(to_junit(found))
        except OSError as error:
            raise click.UsageError(f"--junit {junit} cannot be written ({error.strerror})") from error
    if as_json:
        click.echo(to_json(found), nl=False)
    else:
        _print(found)
    sys.exit(_CODES[found.verdict])


def _settings(given: dict[str, Any]) -> GateSettings:
    margins = {name: given[f"{name}_margin"] / 100 for name in Margins.__dataclass_fields__}
    names = ("systems", "slices", "without", "stage", "least_dialogues", "alpha")
    return replace(_GATE, margins=Margins(**margins), **{name: given[name] for name in names})


def _print(found: Gate) -> None:
    if found.plan:
        click.echo("the plans differ in")
    for line in found.plan:
        click.echo(f"  {line}")
    for address in found.baselines:
        click.echo(f"{found.results} against {address}, in points of a hundred or percent of the baseline")
        print_table(table(check for check in found.checks if check.baseline == address), Console())
    for verdict in (Verdict.REGRESSION, Verdict.INCONCLUSIVE):
        for check in found.checks:
            if check.verdict is verdict:
                click.echo(sentence(check))
    counts = [f"{sum(check.verdict is verdict for check in found.checks)} {verdict}" for verdict in Verdict]
    click.echo(f"{found.verdict}: of {counted(len(found.checks), 'check')} {', '.join(counts)}")
