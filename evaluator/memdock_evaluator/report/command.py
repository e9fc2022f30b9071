"""`memdock-eval report`: the figures, comparisons and the page of a run, made again from its rows."""

from collections.abc import Sequence

import click
from rich.console import Console

from memdock_evaluator.report.writing import write_report
from memdock_evaluator.results.folder import FolderError
from memdock_evaluator.results.manifest import ManifestError
from memdock_evaluator.summary import RunFilesError, print_summary


def _families(_: click.Context, __: click.Parameter, written: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """ "rag=rag-dense,rag-hybrid" -> {"rag": ("rag-dense", "rag-hybrid")}."""
    found: dict[str, tuple[str, ...]] = {}
    for each in written:
        name, equals, systems = each.partition("=")
        members = tuple(system.strip() for system in systems.split(",") if system.strip())
        if not (name.strip() and equals and members):
            raise click.BadParameter(f"{each!r}: write NAME=SYSTEM,SYSTEM, such as rag=rag-dense,rag-hybrid")
        if name.strip() in found:
            raise click.BadParameter(f"the family {name.strip()!r} is given twice: name all its systems at once")
        found[name.strip()] = members
    return found


@click.command("report")
@click.argument("run_dirs", nargs=-1, required=True, metavar="RUN_DIR...")
@click.option(
    "--family",
    "families",
    multiple=True,
    callback=_families,
    metavar="NAME=SYSTEMS",
    help="Systems whose mean is compared, with commas between; may be repeated, the first minus the later ones.  "
    "[default: all memory systems, and full context]",
)
@click.option(
    "--atemporal",
    multiple=True,
    metavar="SYSTEM",
    help="A system without times, which leaves the slices of time; may be repeated.",
)
def report(run_dirs: tuple[str, ...], families: dict[str, tuple[str, ...]], atemporal: tuple[str, ...]) -> None:
    """Compute the figures of each RUN_DIR (a path, or an address such as s3://bucket/run) from its rows.

    Writes summary.json, statistics.json, tables/ and report.html into it, and prints the summary. No system and no
    model is asked.

    \b
      memdock-eval report runs/demo
      memdock-eval report runs/x --family "full context=baseline:full-context" --family "rag=rag-dense,rag-hybrid"
    """
    for run_dir in run_dirs:
        try:
            summary = write_report(run_dir, families=families or None, atemporal=atemporal)
        except (RunFilesError, ManifestError, FolderError) as error:
            raise click.ClickException(str(error)) from error
        print_summary(summary, Console())
        click.echo(f"open {run_dir}/report.html")
