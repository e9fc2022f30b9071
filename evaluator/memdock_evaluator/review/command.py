"""`memdock-eval verify`, `show` and `compare`: a run's files against each other, one question whole, two runs."""

from collections.abc import Iterable
from itertools import groupby

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from memdock_evaluator.results.folder import Folder, FolderError
from memdock_evaluator.results.manifest import ManifestError
from memdock_evaluator.results.parts import PartError
from memdock_evaluator.review.compare import CompareError, Comparison, Difference
from memdock_evaluator.review.compare import compare as compare_runs
from memdock_evaluator.review.show import ShowError
from memdock_evaluator.review.show import show as show_question
from memdock_evaluator.review.verify import VerifyError
from memdock_evaluator.review.verify import verify as verify_run
from memdock_evaluator.summary import RunFilesError
from memdock_evaluator.summary.terminal import share
from memdock_evaluator.terminal import print_table
from memdock_evaluator.words import counted


@click.command("verify")
@click.argument("run_dir", metavar="RUN")
def verify(run_dir: str) -> None:
    """Check the files of RUN against each other, from the parts to the last figure of summary.json.

    Parts by their checksums, rows and timings by the parts, the manifest's counts by the rows, and every figure
    computed from the rows again. Exit code 1: they do not agree; the message names the first difference.

    \b
      memdock-eval verify runs/demo
    """
    try:
        found = verify_run(Folder(run_dir))
    except VerifyError as error:
        raise click.ClickException(f"{run_dir}: {error}") from error
    except (RunFilesError, ManifestError, PartError, FolderError) as error:
        raise click.ClickException(str(error)) from error
    parts, rows, figures = counted(found.parts, "part"), counted(found.rows, "row"), counted(found.figures, "figure")
    click.echo(f"{run_dir}: {parts}, {rows} and {figures} agree")


@click.command("show")
@click.argument("run_dir", metavar="RUN")
@click.argument("question")
@click.option("--system", "systems", multiple=True, metavar="NAME", help="Only this system; may be repeated.")
@click.option("--language", "languages", multiple=True, metavar="CODE", help="Only this language; may be repeated.")
def show(run_dir: str, question: str, systems: tuple[str, ...], languages: tuple[str, ...]) -> None:
    """Show one question of RUN with everything: evidence, memories, answer, verdict, scores, tokens, times.

    QUESTION is its id, or DIALOGUE/ID where several dialogues have it; of "0|q3", an id of the bundled data, which a
    shell would need in quotes, also "0/q3". A "+" marks a source that is evidence. The
    evidence's texts come from the data file, as long as it is where it was and unchanged.

    \b
      memdock-eval show runs/demo 0/q3 --system rag-hybrid
    """
    try:
        lines = list(show_question(Folder(run_dir), question, languages=languages, systems=systems))
    except (ShowError, RunFilesError, ManifestError, FolderError) as error:
        raise click.ClickException(str(error)) from error
    click.echo("\n".join(lines))


@click.command("compare")
@click.argument("first")
@click.argument("second")
@click.option(
    "--system",
    "systems",
    nargs=2,
    metavar="FIRST SECOND",
    help="One system of each run.  [default: every system that both have, with itself]",
)
def compare(first: str, second: str, systems: tuple[str, str] | None) -> None:
    """Compare two runs over the same data: the second minus the first, on the questions that both have.

    Differences are paired by question; intervals and p are by dialogue. What differs between the plans stands first.
    Data files of other hashes are refused.

    \b
      memdock-eval compare runs/first runs/second
      memdock-eval compare runs/a runs/b --system rag-dense rag-hybrid
    """
    try:
        found = compare_runs(Folder(first), Folder(second), systems or ())
    except (CompareError, RunFilesError, ManifestError, FolderError) as error:
        raise click.ClickException(str(error)) from error
    _print_comparison(found)


def _print_comparison(found: Comparison) -> None:
    click.echo("the plans differ in" if found.plan else "the plans are the same")
    for line in found.plan:
        click.echo(f"  {line}")
    groups = groupby(found.differences, lambda each: (each.language, each.first_system, each.second_system))
    for (language, first, second), differences in groups:
        click.echo(f"{language}: {first}" if first == second else f"{language}: {second} minus {first}")
        print_table(_table(differences), Console())


def _table(differences: Iterable[Difference]) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("second - first", no_wrap=True)
    for name in ("n", "dialogues", "first", "second", "difference", "95 %", "p"):
        table.add_column(name, justify="right", no_wrap=True)
    for each in differences:
        table.add_row(
            each.measure,
            str(each.questions),
            str(each.dialogues),
            share(each.first),
            share(each.second),
            f"{100 * each.difference:+.1f}",
            "–" if each.low is None or each.high is None else f"{100 * each.low:+.1f} to {100 * each.high:+.1f}",
            "–" if each.p is None else f"{each.p:.3f}",
        )
    return table
