"""What a failure of the memory system becomes: an error for a caller, an error of a turn, a line in the log.

A text that came out of the system is passed on only where it was meant for callers (`MemdockError`).
"""

import asyncio
import traceback

import structlog

from memdock.errors import (
    AbortedError,
    DeadlineExceededError,
    InternalError,
    MemdockError,
    PayloadTooLargeError,
    ResourceExhaustedError,
    UnavailableError,
)
from memdock.types import TurnError

_PASSING = (AbortedError, DeadlineExceededError, ResourceExhaustedError, UnavailableError)

_log = structlog.get_logger("memdock")


def is_passing(fault: BaseException) -> bool:
    """Whether the same call may succeed later."""
    return isinstance(fault, _PASSING) and not isinstance(fault, PayloadTooLargeError)


def error_of(fault: BaseException) -> MemdockError:
    """What a caller is told of a fault of the system."""
    if isinstance(fault, MemdockError):
        return fault
    return InternalError("INTERNAL", "the memory system failed; its log says where")


def turn_error(fault: BaseException) -> TurnError:
    """Why a turn FAILED."""
    error = error_of(fault)
    return TurnError(reason=error.reason, message=error.message, retryable=is_passing(error))


def broken_interface(message: str) -> InternalError:
    """The system answered what its interface does not allow."""
    return InternalError("ADAPTER_PROTOCOL_ERROR", f"the memory system broke its interface: {message}")


def log_fault(event: str, fault: BaseException) -> None:
    """Tells what failed and where, without the exception's message: that may hold a turn's text."""
    frames = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(fault.__traceback__)]
    _log.warning(event, reason=error_of(fault).reason, kind=type(fault).__name__, frames=frames)


def must_end(fault: BaseException) -> bool:
    """Whether `fault` ends this very task: an exit, or a cancellation that is not one a system let out by itself."""
    if isinstance(fault, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is None or task.cancelling() > 0
    return not isinstance(fault, Exception)
