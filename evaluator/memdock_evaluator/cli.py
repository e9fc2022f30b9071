"""`memdock-eval`: each command is loaded when it is called for, so that the others' packages cost it nothing."""

import signal
import threading
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import version
from types import MappingProxyType

import click

COMMANDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "demo": (
            "memdock_evaluator.demo:demo",
            "Evaluate the reference memory on the bundled data.",
        ),
        "stack": ("memdock_evaluator.demo:stack", "Run the reference memory behind the gateway until Ctrl-C."),
        "run": ("memdock_evaluator.run.command:run", "Evaluate memory systems on conversations."),
        "job": ("memdock_evaluator.run.job_command:job", "Run one index of a job of many; the last one merges."),
        "forgetting": ("memdock_evaluator.forgetting.command:forgetting", "Check that what was forgotten is gone."),
        "leaks": ("memdock_evaluator.leaks.command:leaks", "Check that no user is shown what another has told."),
        "report": ("memdock_evaluator.report.command:report", "Write summary, comparisons and page of a run anew."),
        "reanswer": ("memdock_evaluator.run.again_command:reanswer", "Answer again over the memories of a run."),
        "rejudge": ("memdock_evaluator.run.again_command:rejudge", "Judge the answers of a run again."),
        "merge": ("memdock_evaluator.run.merge_command:merge", "Make one run of its shards."),
        "show": ("memdock_evaluator.review.command:show", "Show one question of a run with everything."),
        "compare": ("memdock_evaluator.review.command:compare", "Compare two runs over the same data."),
        "gate": ("memdock_evaluator.gate.command:gate", "Hold a run against a stored one, for a build server."),
        "verify": ("memdock_evaluator.review.command:verify", "Check the files of a run against each other."),
        "judge": ("memdock_evaluator.judging.command:judge", "Compare judges with known verdicts and with each other."),
        "label": ("memdock_evaluator.judging.label_command:label", "Let people judge a sample of a run."),
        "cache": ("memdock_evaluator.answer.cache_command:cache", "Show and purge a cache of models' replies."),
        "serve": ("memdock_evaluator.service.command:serve", "Start, follow and read runs over HTTP."),
        "capacity": ("memdock_evaluator.capacity.command:capacity", "Simulate how time and money grow with size."),
        "dataset": ("memdock_evaluator.dataset.command:dataset", "Look into data files, check and convert them."),
    }
)
"""Name -> where the command is, and a line on it."""

EXTRAS: Mapping[str, str] = MappingProxyType({"capacity": "capacity", "serve": "service"})
"""Commands that need an extra of this distribution."""


class Commands(click.Group):
    """A group that imports a command when it is run, not when it is listed."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's
        """In the order in which one would use them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's
        """The command itself; `None` where there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        module, name = COMMANDS[cmd_name][0].split(":")
        try:
            command = getattr(import_module(module), name)
        except ModuleNotFoundError as error:
            if (extra := EXTRAS.get(cmd_name)) is None:
                raise
            said = f"{cmd_name} needs the package {error.name}: pip install 'memdock-evaluator[{extra}]'"
            raise click.ClickException(said) from error
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        """The names with their lines."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(version("memdock-evaluator"), prog_name="memdock-eval")
def main() -> None:
    """Evaluate memory systems for conversations through the Memdock protocol.

    \b
    Begin with
      memdock-eval demo            a whole evaluation on this machine, minutes
      memdock-eval run --help      your own system, your own models
      memdock-eval dataset --help  your own data
    """
    if threading.current_thread() is threading.main_thread():
        # Then what a command has started is ended, and what it has paid for is written, as after Ctrl-C.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
