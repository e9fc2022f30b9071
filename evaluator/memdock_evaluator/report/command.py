"""`memdock-eval report`: the summary and the page of a run, made again from its rows."""

import click
from rich.console import Console

from memdock_evaluator.report.writing import write_report
from memdock_evaluator.results.folder import FolderError
from memdock_evaluator.results.manifest import ManifestError
from memdock_evaluator.summary import RunFilesError, print_summary, write_summary


@click.command("report")
@click.argument("run_dir")
def report(run_dir: str) -> None:
    """Compute the figures of RUN_DIR (a path, or an address such as s3://bucket/run) from its rows.

    Writes RUN_DIR/summary.json and RUN_DIR/report.html, and prints the summary. No system and no model is asked.

    \b
      memdock-eval report runs/demo
    """
    try:
        summary = write_summary(run_dir)
        write_report(run_dir)
    except (RunFilesError, ManifestError, FolderError) as error:
        raise click.ClickException(str(error)) from error
    print_summary(summary, Console())
    click.echo(f"open {run_dir}/report.html")
