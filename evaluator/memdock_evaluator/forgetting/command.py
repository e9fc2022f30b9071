"""`memdock-eval forgetting`."""

import click

from memdock_evaluator.forgetting.modes import Mode
from memdock_evaluator.forgetting.settings import ForgettingSettings
from memdock_evaluator.forgetting.suite import forgetting_suite
from memdock_evaluator.ranges import ITEMS, K
from memdock_evaluator.run.options import model_options, pace_options
from memdock_evaluator.run.settings import RunSettings
from memdock_evaluator.suites.command import frame_options, run_suite
from memdock_evaluator.suites.options import (
    DATA_OPTIONS,
    SYSTEM_OPTIONS,
    options_of_run,
)


@options_of_run(*SYSTEM_OPTIONS, *DATA_OPTIONS, "ingest_unit", "keep")
@click.command("forgetting")
@click.option(
    "--by",
    "modes",
    multiple=True,
    type=click.Choice([mode.value for mode in Mode]),
    help="What a Forget selects; may be repeated.  [default: all three]",
)
@click.option("--k", type=K, metavar="N", default=10, show_default=True, help="Memories a question.")
@click.option(
    "--targets",
    type=ITEMS,
    metavar="N",
    default=5,
    show_default=True,
    help="Questions of a dialogue whose evidence is forgotten; the others are their neighbours.",
)
@frame_options(seed="Seed that draws them, a sample of dialogues, and the models' seed.")
@model_options
@pace_options
@click.pass_context
def forgetting(context: click.Context, /, modes: tuple[str, ...], targets: int, **_: object) -> None:
    """Check that what a system was told to forget is gone, and nothing else.

    Each dialogue is stored once for each way of forgetting (by memory, by turn, by session), in a space of its own.
    All questions are asked; the evidence of some of them is forgotten; all are asked again, at k and as deep as the
    system goes (100). Then the forgotten turns are sent once more, as a late retry would: they must not come back.

    \b
    Looked for are
      turns   that memories, retrieved or listed, name as their sources
      words   of the evidence that are in nothing which is to stay (at least 2, and half of those seen before)
      answer  all words of the right answer that are in nothing which is to stay
      state   a forgotten turn that ListTurns does not give as FORGOTTEN
    What was not there before counts nowhere. The questions of whose evidence nothing was forgotten are the neighbours:
    what they lose at k is told, and turns of theirs that are gone are an error.

    \b
    The bundled data, on a system behind a gateway:
      memdock-eval forgetting --url grpc://127.0.0.1:7450 --key-file key.txt --system rag-hybrid \\
        --data own --out runs/forgetting
    \b
    By turn alone, every question of one dialogue, with the answer model asked before and after:
      memdock-eval forgetting --url grpc://127.0.0.1:7450 --key-file key.txt --system rag-hybrid --data own \\
        --dialogue 0 --by turn --targets 100 --answer-url http://host/v1 --answer-model m --out runs/forgetting-0

    DIR gets manifest.json, targets.jsonl, neighbours.jsonl and summary.json. Spaces are reset at the end. A suite that
    was stopped or killed goes on behind the dialogues and modes that are done when the same command is given again.

    Exit code 0: nothing is left, nothing came back, nothing else was taken; 1: something is, did or was; 2: the command
    line is wrong; 3: it could not be measured, or not all of it.
    """

    def settings(run: RunSettings) -> ForgettingSettings:
        return ForgettingSettings(
            run=run,
            modes=tuple(map(Mode, dict.fromkeys(modes))) or tuple(Mode),
            targets=targets,
            replies=run.answerer.endpoint is not None,
        )

    run_suite(context, settings, forgetting_suite)
