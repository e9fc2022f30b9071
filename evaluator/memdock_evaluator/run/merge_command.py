"""`memdock-eval merge`: shards of a run, or runs over other systems, into one folder."""

import re
import sys

import click
from rich.console import Console

from memdock_evaluator.report.terminal import print_overview
from memdock_evaluator.report.writing import write_report
from memdock_evaluator.results.finalise import MANIFEST
from memdock_evaluator.results.folder import Folder, FolderError
from memdock_evaluator.results.manifest import ManifestError
from memdock_evaluator.results.parts import PartError
from memdock_evaluator.run.merging import merge as merge_runs
from memdock_evaluator.run.options import lasting
from memdock_evaluator.run.pieces import MergeError
from memdock_evaluator.summary import RunFilesError, print_summary

_NAMED = re.compile(r"([a-z0-9][a-z0-9-]{0,62})=(.+)")
"""The protocol's form of a system's name, and an address."""


def _named(word: str) -> tuple[str, Folder]:
    """ "NAME=RUN", or a run's address, which goes first where it holds a run."""
    match, folder = _NAMED.fullmatch(word), Folder(word)
    return (match[1], Folder(match[2])) if match and folder.read(MANIFEST) is None else ("", folder)


@click.command("merge")
@click.argument("out", callback=lasting)
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
def merge(out: str, runs: tuple[str, ...]) -> None:
    """Make one run in OUT of several: the shards of one, or runs over other systems.

    Shards (made with --shard) give the same rows as one run without shards, byte for byte. Runs over other systems must
    have the same data, answerer, judge, prompts and seeds, and within a track the same k, context budget and ingest
    unit; what differs is named. NAME=RUN gives the memory system of RUN another name.

    \b
      memdock-eval merge runs/whole runs/shard-1 runs/shard-2 runs/shard-3
      memdock-eval merge runs/all runs/rag runs/mem0 mem0-graph=runs/mem0-with-a-graph
    """
    try:
        merge_runs(Folder(out), [_named(run) for run in runs], ("memdock-eval", *sys.argv[1:]))
        summary = write_report(out)
    except (MergeError, PartError, RunFilesError, ManifestError, FolderError) as error:
        raise click.ClickException(str(error)) from error
    print_summary(summary, Console())
    print_overview(Folder(out), Console())
    click.echo(f"open {out}/report.html")
