"""`memdock-eval merge`: the shards of a run into one folder."""

import sys

import click
from rich.console import Console

from memdock_evaluator.report.writing import write_report
from memdock_evaluator.results.folder import Folder, FolderError
from memdock_evaluator.results.manifest import ManifestError
from memdock_evaluator.results.parts import PartError
from memdock_evaluator.run.merging import MergeError
from memdock_evaluator.run.merging import merge as merge_runs
from memdock_evaluator.summary import RunFilesError, print_summary


@click.command("merge")
@click.argument("out")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
def merge(out: str, runs: tuple[str, ...]) -> None:
    """Make one run in OUT of its shards, each a RUN made with --shard.

    The rows are the same as those of one run without shards, byte for byte.

    \b
      memdock-eval merge runs/whole runs/shard-1 runs/shard-2 runs/shard-3
    """
    try:
        merge_runs(Folder(out), [Folder(run) for run in runs], ("memdock-eval", *sys.argv[1:]))
        summary = write_report(out)
    except (MergeError, PartError, RunFilesError, ManifestError, FolderError) as error:
        raise click.ClickException(str(error)) from error
    print_summary(summary, Console())
    click.echo(f"open {out}/report.html")
