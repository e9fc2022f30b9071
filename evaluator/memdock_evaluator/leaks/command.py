"""`memdock-eval leaks`."""

import shlex
from dataclasses import replace

import click

from memdock_evaluator.leaks.settings import LeakSettings
from memdock_evaluator.leaks.suite import leak_suite
from memdock_evaluator.leaks.twins import LANGUAGES
from memdock_evaluator.ranges import MAX_AT_ONCE, REPEATS, SOME_SECONDS
from memdock_evaluator.run.settings import RunSettings, SettingsError
from memdock_evaluator.suites.command import frame_options, run_suite
from memdock_evaluator.suites.options import (
    PATIENCE_OPTIONS,
    SYSTEM_OPTIONS,
    options_of_run,
)


@options_of_run(*SYSTEM_OPTIONS, "ingest_unit", "keep", *PATIENCE_OPTIONS)
@click.command("leaks")
@click.option(
    "--pairs",
    type=REPEATS,
    metavar="N",
    default=5,
    show_default=True,
    help="Pairs of twins a language; each is 12 trials at a moment.",
)
@click.option(
    "--only",
    "only",
    multiple=True,
    type=click.Choice(list(LANGUAGES)),
    help="Only twins of this language; may be repeated.  [default: all]",
)
@click.option(
    "--concurrency",
    type=click.IntRange(min=2, max=MAX_AT_ONCE),
    metavar="N",
    default=16,
    show_default=True,
    help="Calls at once while all write and are asked.",
)
@click.option(
    "--restart-command",
    default="",
    metavar="COMMAND",
    help="Restarts what is tested and ends when that is done, such as 'docker restart my-memory'; no shell reads it.  "
    "[default: nothing is asked after a restart]",
)
@click.option(
    "--restart-timeout",
    type=SOME_SECONDS,
    metavar="SECONDS",
    default=300.0,
    show_default=True,
    help="Seconds for it to end.",
)
@frame_options(seed="Seed of the canaries.")
@click.pass_context
def leaks(
    context: click.Context,
    /,
    pairs: int,
    only: tuple[str, ...],
    restart_command: str,
    restart_timeout: float,
    **_: object,
) -> None:
    """Check that no user is shown what another has told.

    Twins are made up from the seed: pairs of users, in Russian and in English, whose dialogues are the same but for
    six canaries each, numbers and names that stand nowhere else. Each has a space of its own, with the same session and
    turn ids as the twin's and nearly the same name. A trial is one canary looked for in the twin's space: by the fact's
    question, by the canary itself as the query, and among all memories where the system lists them.

    \b
    When it is looked for
      at rest            all are stored, then asked, one call after another
      under concurrency  all twins write and are asked at once; when all is stored, all are asked at once
      after a restart    by --restart-command
      after Forget       the first of each pair has forgotten its canaries; it must not see them any more either
      after Reset        the first of each pair is reset; the other must still find its own
    A canary that its own user does not find makes the trial void: it is counted as such, and never as "no leak".

    \b
    A system behind a gateway, and one that is restarted:
      memdock-eval leaks --url grpc://127.0.0.1:7450 --key-file key.txt --system rag-hybrid --out runs/leaks
      memdock-eval leaks --url http://127.0.0.1:8080 --system my-memory --pairs 25 \\
        --restart-command "docker restart my-memory" --out runs/leaks-2

    Of 300 trials without a leak up to 1 % may leak all the same, at 95 %: the table has the exact bound, by trial and
    by pair. DIR gets manifest.json, trials.jsonl and summary.json. Spaces are reset at the end. A suite that was
    stopped or killed goes on behind the pairs and moments that are done when the same command is given again.

    Exit code 0: nothing leaked and nothing of another user's was taken; 1: something did or was; 2: the command line is
    wrong; 3: it could not be measured, or not all of it.
    """

    def settings(run: RunSettings) -> LeakSettings:
        return LeakSettings(
            run=replace(run, ks=(1,)),  # it asks as deep as each system goes
            languages=tuple(dict.fromkeys(only)) or tuple(LANGUAGES),
            pairs=pairs,
            restart_command=_words(restart_command),
            restart_timeout_s=restart_timeout,
        )

    run_suite(context, settings, leak_suite)


def _words(command: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(command))
    except ValueError as error:
        raise SettingsError(f"--restart-command {command!r}: {error}") from error
