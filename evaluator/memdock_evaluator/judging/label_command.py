"""`memdock-eval label`: a random sample for people to judge, and what their labels say of the run."""

from pathlib import Path

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from memdock_evaluator.answer.prompts import bundled, rubric
from memdock_evaluator.judging.people import PeoplesView, peoples_view
from memdock_evaluator.judging.sheet import SheetError, items, read_sheet, sample, written
from memdock_evaluator.judging.terminal import print_agreement
from memdock_evaluator.ranges import ITEMS, SEED
from memdock_evaluator.report.writing import write_report
from memdock_evaluator.results.folder import Folder, FolderError
from memdock_evaluator.results.labels import LABELS
from memdock_evaluator.results.manifest import ManifestError
from memdock_evaluator.statistics.labels import CorrectedAccuracy
from memdock_evaluator.summary.ranking import display_name
from memdock_evaluator.summary.source import RunFiles, RunFilesError, read_run
from memdock_evaluator.terminal import print_table
from memdock_evaluator.words import counted

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.group("label")
def label() -> None:
    """Let people judge a random sample of a run, and correct its accuracy by them."""


@label.command("export")
@click.argument("run_dir")
@click.option("--n", type=ITEMS, default=100, show_default=True, help="Answers a system and language.")
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of the sample.")
@click.option("--out", type=_FILE, default=Path("labels.csv"), show_default=True, help="The sheet, a new file.")
@click.option(
    "--delimiter",
    type=click.Choice([",", ";"]),
    default=",",
    show_default=True,
    help="Between cells; a spreadsheet program set to Russian opens the semicolon.",
)
def export(run_dir: str, n: int, seed: int, out: Path, delimiter: str) -> None:
    """Draw answers of RUN_DIR for people to label, into a sheet that shows neither system nor verdict.

    Each person fills in the column "label" (0 to 3, or nothing) of a copy; its name is the person's. Then
    `memdock-eval label import`.

    \b
      memdock-eval label export runs/x --n 100 --seed 1 --out labels.csv
    """
    run = _read(run_dir)
    of_run = items(run.rows, run.manifest.run_id)
    names = sample(of_run, n=n, seed=seed)
    if not names:
        raise click.ClickException(f"{run_dir}: no answer has a verdict, there is nothing to label")
    try:
        with out.open("xb") as file:
            file.write(written(of_run, names, delimiter=delimiter))
    except FileExistsError as error:
        raise click.ClickException(f"{out} is there already and may hold labels: give another --out") from error
    except OSError as error:
        raise click.ClickException(f"{out}: cannot be written ({error.strerror})") from error
    click.echo(f"{counted(len(names), 'answer')} to label in {out}. The labels:")
    for language in sorted({of_run[name].language for name in names}):
        click.echo(rubric(bundled("rubric", language, "yaml")).scale_lines)


@label.command("import")
@click.argument("run_dir")
@click.argument("sheets", nargs=-1, required=True, type=_FILE, metavar="FILE...")
def import_command(run_dir: str, sheets: tuple[Path, ...]) -> None:
    """Read the labels of one person a FILE, and write RUN_DIR/labels.json from them.

    It holds how far the people agree and, by system and language, the accuracy as they would have judged it, with its
    95 % interval: the judge's on all answers, less its mean error on the labelled ones. Where people are of two halves,
    the first FILE decides. The summary and the report are made anew: a wrong answer that people call right counts as
    misjudged there.

    \b
      memdock-eval label import runs/x anna.csv boris.csv

    Exit code 0: written; 1: a sheet or the run cannot be used, the message names row and column.
    """
    stems = [path.stem for path in sheets]
    if twice := next((stem for stem in stems if stems.count(stem) > 1), None):
        raise click.UsageError(f"two sheets are of {twice}: name each after the person who filled it in")
    run = _read(run_dir)
    of_run = items(run.rows, run.manifest.run_id)
    try:
        view = peoples_view(run.manifest.run_id, of_run, [read_sheet(path, of_run) for path in sheets])
        Folder(run_dir).write(LABELS, view.to_json())
        write_report(run_dir)
    except (SheetError, FolderError) as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise click.ClickException(f"{run_dir}/{LABELS}: cannot be written ({error.strerror})") from error
    _print(view, Console())
    click.echo(f"{counted(len(view.items), 'labelled answer')} in {run_dir}/{LABELS}")


def _read(run_dir: str) -> RunFiles:
    try:
        return read_run(Folder(run_dir))
    except (RunFilesError, ManifestError, FolderError) as error:
        raise click.ClickException(str(error)) from error


def _print(view: PeoplesView, console: Console) -> None:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("system", no_wrap=True)
    table.add_column("", no_wrap=True)
    for heading in ("judged", "corrected", "95 %", "labels", "too\nkind", "too\nstrict"):
        table.add_column(heading, justify="right", no_wrap=True)
    for system, languages in view.corrected.items():
        for language, found in languages.items():
            table.add_row(display_name(system), language, *_cells(found))
    print_table(table, console)
    if any(found and found.cut for languages in view.corrected.values() for found in languages.values()):
        console.print("(cut): the estimate lay beyond 0 or 100 %", highlight=False, soft_wrap=True)
    kappa = "not defined" if view.judge_kappa is None else f"{view.judge_kappa:.3f}"
    console.print(f"Judge and people: kappa of right and wrong {kappa}", highlight=False, soft_wrap=True)
    print_agreement(view.agreement, console)
    for rater, count in view.unlabelled.items():
        if count:
            said = f"{rater} left {counted(count, 'item')} empty: unless at random, the interval does not hold"
            console.print(said, highlight=False, markup=False, soft_wrap=True)


def _cells(found: CorrectedAccuracy | None) -> tuple[str, ...]:
    if found is None:
        return ("-", "-", "-", "0", "-", "-")
    interval = "-" if found.low is None or found.high is None else f"{100 * found.low:.1f} to {100 * found.high:.1f}"
    return (
        f"{found.judged:.1%}",
        f"{found.accuracy:.1%}" + " (cut)" * found.cut,
        interval,
        str(found.labelled),
        str(found.too_kind),
        str(found.too_strict),
    )
