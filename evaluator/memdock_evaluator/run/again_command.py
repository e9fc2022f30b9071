"""`memdock-eval reanswer` and `rejudge`: another answerer or judge over what an earlier run has retrieved."""

import sys
from typing import Any

import click

from memdock_evaluator.answer.endpoint import ModelSettings
from memdock_evaluator.ranges import ITEMS, REPEATS, SEED
from memdock_evaluator.results.records import ANSWER, RETRIEVE
from memdock_evaluator.run.command import begin_run
from memdock_evaluator.run.given import answerer_of, judge_of, judges_of, prices_of, without_secrets
from memdock_evaluator.run.options import (
    call_options,
    cost_options,
    judge_options,
    lasting,
    model_options,
    question_options,
)
from memdock_evaluator.run.settings import Reuse, RunSettings


def _out(command: Any) -> Any:
    option = click.option(
        "--out", required=True, callback=lasting, metavar="DIR", help="Folder of the new run, or its address."
    )
    return option(command)


@click.command("reanswer")
@click.argument("source", metavar="RUN")
@_out
@model_options
@click.option("--seed", type=SEED, metavar="N", default=0, show_default=True, help="Seed of the models.")
@click.option(
    "--context-tokens",
    type=ITEMS,
    metavar="N",
    help="Give the answer model whole memories, as long as they take N tokens together.  [default: as in RUN]",
)
@question_options
@call_options
@cost_options
@click.pass_context
def reanswer(context: click.Context, /, source: str, **_: Any) -> None:
    """Answer and judge the questions of RUN again, over the memories that it retrieved.

    No memory system is asked. RUN must be complete and its data unchanged; it is left as it is, and DIR becomes a run
    of its own, whose manifest names RUN. A re-answering that was stopped goes on when the same command is given again.

    \b
      memdock-eval reanswer runs/first --out runs/other-answerer --answer-url URL --answer-model NAME
    """
    begin_run(lambda: _settings(context, Reuse(run=source, through=RETRIEVE.name), answerer_of(context)))


@click.command("rejudge")
@click.argument("source", metavar="RUN")
@_out
@click.option(
    "--only-unscored", is_flag=True, help="Keep the verdicts that could be read; the judge must be the same as RUN's."
)
@judge_options
@click.option("--judge-repeats", type=REPEATS, metavar="N", help="Verdicts on each answer.  [default: as RUN's]")
@question_options
@call_options
@cost_options
@click.pass_context
def rejudge(context: click.Context, /, source: str, only_unscored: bool, **_: Any) -> None:
    """Judge the answers of RUN again, with another judge or rubric.

    No memory system and no answerer is asked. RUN must be complete and its data unchanged; it is left as it is, and DIR
    becomes a run of its own, whose manifest names RUN.

    \b
      memdock-eval rejudge runs/first --out runs/other-judge --judge-url URL --judge-model NAME
    """
    reuse = Reuse(run=source, through=ANSWER.name, only_unscored=only_unscored)
    begin_run(lambda: _settings(context, reuse, ModelSettings()))


def _settings(context: click.Context, reuse: Reuse, answerer: ModelSettings) -> RunSettings:
    given = context.params
    return RunSettings(
        data=(),
        out=given["out"],
        reuse=reuse,
        seed=given.get("seed", 0),
        context_tokens=given.get("context_tokens"),
        judge_repeats=given.get("judge_repeats") or 0,
        answerer=answerer,
        judge=judge_of(context),
        prices=prices_of(context),
        budget=given["budget"],
        judges=judges_of(context),
        trial=given.get("trial", True),
        cache=given["cache"],
        concurrency=given["concurrency"],
        parallel_questions=given["parallel_questions"],
        command=without_secrets(("memdock-eval", *sys.argv[1:])),
    )
