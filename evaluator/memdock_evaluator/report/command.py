"""`memdock-eval report`: the figures, comparisons and the page of a run, made again from its rows."""

from typing import Any

import click
from rich.console import Console

from memdock_evaluator.report.terminal import print_overview
from memdock_evaluator.report.writing import write_report
from memdock_evaluator.results.folder import Folder, FolderError
from memdock_evaluator.results.manifest import ManifestError
from memdock_evaluator.run.comparing import compare_options, compared_of
from memdock_evaluator.summary import RunFilesError, print_summary


@click.command("report")
@click.argument("run_dirs", nargs=-1, required=True, metavar="RUN_DIR...")
@compare_options
@click.option(
    "--with",
    "suites",
    multiple=True,
    metavar="DIR",
    help="Results of `forgetting` or `leaks` on systems of the run, for its report from now on; may be repeated.",
)
def report(run_dirs: tuple[str, ...], suites: tuple[str, ...], **given: Any) -> None:
    """Compute the figures of each RUN_DIR (a path, or an address such as s3://bucket/run) from its rows.

    Writes summary.json, statistics.json, tables/, report.html and report.ru.html (the same in Russian) into it, and
    prints the summary. No system and no model is asked. What --with names is kept in suites/ of the run's folder.

    \b
      memdock-eval report runs/demo
      memdock-eval report runs/x --family "full context=baseline:full-context" --family "rag=rag-dense,rag-hybrid"
      memdock-eval report runs/x --with runs/x-forgetting --with runs/x-leaks
    """
    for run_dir in run_dirs:
        try:
            summary = write_report(run_dir, compared=compared_of(given), suites=suites)
        except (RunFilesError, ManifestError, FolderError) as error:
            raise click.ClickException(str(error)) from error
        print_summary(summary, Console())
        print_overview(Folder(run_dir), Console())
        click.echo(f"open {run_dir}/report.html")
