"""How a suite ends: 0 nothing found, 1 found, 2 the command line is wrong, 3 it could not be measured."""

from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

import click

from memdock_evaluator.answer.prompts import PromptError
from memdock_evaluator.dataset import DatasetError
from memdock_evaluator.faults import RunStoppedError
from memdock_evaluator.interrupting import run_until_told
from memdock_evaluator.results.folder import FolderError
from memdock_evaluator.results.parts import PartError
from memdock_evaluator.run.settings import SettingsError

_AGAIN = "the same command goes on from here"


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteEnd:
    """Sentences: what was `found`, and what could not be measured. What was found counts, however little was asked."""

    found: tuple[str, ...] = ()
    unmeasured: tuple[str, ...] = ()
    unfinished: bool = False
    """Whether something is left to do that the same command would do."""


class FoundError(click.ClickException):
    """The suite found what it looks for."""

    exit_code = 1


class UnmeasuredError(click.ClickException):
    """The suite cannot say: silence is not a clean bill."""

    exit_code = 3


def carry_out(suite: Coroutine[Any, Any, SuiteEnd]) -> None:
    """Runs a suite to its end; returns where nothing was found, else raises the error that click shows."""
    try:
        end = run_until_told(suite)
    except (SettingsError, PromptError) as error:
        raise click.UsageError(str(error)) from error
    except (DatasetError, FolderError, PartError, RunStoppedError) as error:
        raise UnmeasuredError(str(error)) from error
    except KeyboardInterrupt as error:
        raise UnmeasuredError(f"interrupted: nothing was concluded; {_AGAIN}") from error
    sentences = (*end.found, *end.unmeasured, *((_AGAIN,) if end.unfinished else ()))
    if end.found:
        raise FoundError("; ".join(sentences))
    if end.unmeasured:
        raise UnmeasuredError("; ".join(sentences))
