"""The frame of a suite's command: its seed, where it writes, its options as settings, its end as an exit code."""

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import click
from rich.console import Console

from memdock_evaluator.ranges import SEED
from memdock_evaluator.run.options import lasting
from memdock_evaluator.run.settings import RunSettings, SettingsError
from memdock_evaluator.suites.ending import SuiteEnd, carry_out
from memdock_evaluator.suites.options import Decorator, settings_of

SettingsT = TypeVar("SettingsT")
CommandT = TypeVar("CommandT", bound=Callable[..., Any])


def frame_options(*, seed: str) -> Callable[[CommandT], CommandT]:
    """`--seed`, whose help is `seed`, and `--out`."""
    options: tuple[Decorator, ...] = (
        click.option("--seed", type=SEED, metavar="N", default=0, show_default=True, help=seed),
        click.option(
            "--out",
            required=True,
            callback=lasting,
            metavar="DIR",
            help="Folder of the results, or an address such as s3://bucket/x. A suite that was stopped goes on in its "
            "folder.",
        ),
    )

    def decorate(command: CommandT) -> CommandT:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def run_suite(
    context: click.Context,
    settings: Callable[[RunSettings], SettingsT],
    suite: Callable[[SettingsT, Console, Console], Coroutine[Any, Any, SuiteEnd]],
) -> None:
    """Makes `settings` of what the options share with `run`, and carries the suite out, as click shows its end."""
    try:
        made = settings(settings_of(context))
    except SettingsError as error:
        raise click.UsageError(str(error)) from error
    carry_out(suite(made, Console(stderr=True), Console()))
