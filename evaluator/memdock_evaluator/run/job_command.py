"""`memdock-eval job`: one index of a run that many processes share."""

import os
import sys
from typing import Any

import click

from memdock_evaluator.results.folder import FolderError
from memdock_evaluator.results.manifest import ManifestError
from memdock_evaluator.results.parts import PartError
from memdock_evaluator.run.choice import Shard
from memdock_evaluator.run.command import begin_run
from memdock_evaluator.run.comparing import compare_options
from memdock_evaluator.run.given import settings_of, without_secrets
from memdock_evaluator.run.job import folder_of, merge_when_last, refuse_another_run
from memdock_evaluator.run.options import (
    choice_options,
    cost_options,
    how_options,
    model_options,
    pace_options,
    progress_option,
    what_options,
)
from memdock_evaluator.run.pieces import MergeError
from memdock_evaluator.run.plan_file import located
from memdock_evaluator.run.progress_lines import ProgressLines
from memdock_evaluator.run.settings import RunSettings
from memdock_evaluator.summary import RunFilesError

KUBERNETES = "JOB_COMPLETION_INDEX"
_MOST = 999_999
_NOT_HERE = ("estimate", "shard", "again", "stop_after")
"""Options of `run` that a job has no use for: each is of one folder, or of a run that is not complete."""


@click.command("job")
@click.option(
    "--of",
    type=click.IntRange(min=1, max=_MOST),
    required=True,
    metavar="N",
    help="Indexes of the job; at most as many as there are dialogues.",
)
@click.option(
    "--index",
    type=click.IntRange(min=0, max=_MOST - 1),
    default=lambda: os.environ.get(KUBERNETES),
    show_default=KUBERNETES,
    metavar="I",
    help="Which of them this is, from 0; an Indexed Job of Kubernetes sets that variable.",
)
@what_options
@how_options
@model_options
@pace_options
@choice_options
@cost_options
@compare_options
@progress_option
@click.pass_context
def job(context: click.Context, /, of: int, index: int | None, **given: Any) -> None:
    """Run one index of a run that N processes share, anywhere; the one that ends last merges and writes the report.

    Every index gets the same command with the options of `run`, and takes every Nth dialogue into a folder below DIR,
    in spaces of its own. An index that was killed, or evicted, goes on when it is begun again, and does nothing twice.
    --budget is that of the whole job: each index may spend an Nth of it. DIR must be an address that all reach.

    \b
      JOB_COMPLETION_INDEX=0 memdock-eval job --of 2 --plan plan.yaml --out s3://bucket/runs/x &
      JOB_COMPLETION_INDEX=1 memdock-eval job --of 2 --plan plan.yaml --out s3://bucket/runs/x

    Exit codes are those of `run`, for the index; with 0 it is complete, and merged where all the others are, too.
    """
    try:
        _carry_out(context, of, index, given)
    except click.UsageError as error:
        raise located(context, error) from error


def _carry_out(context: click.Context, of: int, index: int | None, given: dict[str, Any]) -> None:
    if index is None:
        raise click.UsageError(f"--index is missing, and {KUBERNETES} is not set", context)
    if not given["out"]:
        raise click.UsageError("--out is missing: name the address of the results", context)
    if index >= of:
        raise click.UsageError(f"--index {index}: of {of} indexes the last is {of - 1}", context)
    if unfit := [name for name in _NOT_HERE if given[name]]:
        raise click.UsageError(f"--{unfit[0].replace('_', '-')} is for `memdock-eval run`, not for a job", context)
    shard, out = Shard(number=index + 1, of=of), given["out"]
    share = None if given["budget"] is None else given["budget"] / of
    mine = {**given, "shard": shard, "out": folder_of(out, shard), "budget": share}
    progress = ProgressLines(sys.stderr) if given["progress"] == "json" else None

    def settings() -> RunSettings:
        made = settings_of(context, mine)
        refuse_another_run(out, shard)
        return made

    try:
        begin_run(settings, progress)
        merge_when_last(out, of, without_secrets(("memdock-eval", *sys.argv[1:])), click.echo)
    except MergeError as error:
        raise click.UsageError(str(error), context) from error  # no other try mends that
    except (PartError, RunFilesError, ManifestError, FolderError) as error:
        raise click.ClickException(str(error)) from error
