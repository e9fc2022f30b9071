"""What a failure of the memory system becomes: an error for a caller, an error of a turn.

A text that came out of the system is passed on only where it was meant for callers (`MemdockError`).
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from memdock.errors import (
    AbortedError,
    DeadlineExceededError,
    InternalError,
    MemdockError,
    PayloadTooLargeError,
    ResourceExhaustedError,
    UnavailableError,
)
from memdock.log import log_fault
from memdock.system import Outcome
from memdock.types import TurnError, TurnResult, TurnState

_ENDS = (TurnState.SEARCHABLE, TurnState.NO_MEMORY, TurnState.FAILED)
_PASSING = (AbortedError, DeadlineExceededError, ResourceExhaustedError, UnavailableError)


def is_passing(fault: BaseException) -> bool:
    """Whether the same call may succeed later."""
    return isinstance(fault, _PASSING) and not isinstance(fault, PayloadTooLargeError)


def error_of(fault: BaseException) -> MemdockError:
    """What a caller is told of a fault of the system."""
    if isinstance(fault, MemdockError):
        return fault
    return InternalError("INTERNAL", "the memory system failed; its log says where")


@contextmanager
def told(event: str) -> Iterator[None]:
    """A fault of the system inside the block is logged, and becomes what a caller is told."""
    try:
        yield
    except BaseException as fault:
        if must_end(fault):
            raise
        log_fault(event, fault)
        raise error_of(fault) from None


def turn_error(fault: BaseException) -> TurnError:
    """Why a turn FAILED."""
    error = error_of(fault)
    return TurnError(reason=error.reason, message=error.message, retryable=is_passing(error))


def broken_interface(message: str) -> InternalError:
    """The system answered what its interface does not allow."""
    return InternalError("ADAPTER_PROTOCOL_ERROR", f"the memory system broke its interface: {message}")


def check_end(outcome: Outcome | TurnResult) -> None:
    """Refuses a state that no turn ends in, and an error where there is none or none where there is one."""
    if outcome.state not in _ENDS:
        raise broken_interface(f"a turn that it worked on is {outcome.state}")
    if (outcome.error is not None) != (outcome.state is TurnState.FAILED):
        raise broken_interface("an error belongs to a FAILED turn, and only to one")


def must_end(fault: BaseException) -> bool:
    """Whether `fault` ends this very task: an exit, or a cancellation that is not one a system let out by itself."""
    if isinstance(fault, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is None or task.cancelling() > 0
    return not isinstance(fault, Exception)
