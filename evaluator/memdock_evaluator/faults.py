"""Who is to blame when a call fails, decided in one place from the reason.

- The run stops at once where every further call must fail too: a credential that is missing, wrong or not allowed to
  do this, or a name that is not known.
- *infrastructure*: nobody can be reached, a rate, queue or quota is used up, or time has run out. The question is run
  again when the run goes on, and never scored.
- *system*: the memory system, asked rightly, failed at its own work, broke the protocol or lacks a feature. Wrong.
"""

from memdock.errors import (
    AbortedError,
    DeadlineExceededError,
    MemdockError,
    NotFoundError,
    PayloadTooLargeError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnauthenticatedError,
    UnavailableError,
    error,
)
from memdock.types import TurnError
from memdock_evaluator.results.rows import Outcome

_STOPS = (UnauthenticatedError, PermissionDeniedError, NotFoundError)
_INFRASTRUCTURE = (UnavailableError, ResourceExhaustedError, DeadlineExceededError, AbortedError)
_PROVIDERS_KEY = "PROVIDER_AUTH_FAILED"
"""INTERNAL by its code, yet the fault of whoever configured the system's model endpoint, not of the memory."""


class RunStoppedError(Exception):
    """The run cannot go on now; the message is the sentence for the user. What is done is kept."""


class Fault(Exception):  # noqa: N818 - it is the word for both kinds, and an outcome of a question
    """Why one question (or one dialogue) has no answer. `outcome` is anything but ANSWERED."""

    def __init__(self, outcome: Outcome, reason: str, detail: str) -> None:
        self.outcome, self.reason, self.detail = outcome, reason, detail
        super().__init__(f"{reason}: {detail}")


def fault_of(failure: MemdockError) -> Fault:
    """The fault that an error of the protocol is; raises `RunStoppedError` where going on is pointless."""
    if isinstance(failure, _STOPS):
        raise RunStoppedError(f"{failure.message} ({failure.reason})") from failure
    outcome = Outcome.INFRASTRUCTURE_ERROR if is_infrastructure(failure) else Outcome.SYSTEM_ERROR
    return Fault(outcome, failure.reason, failure.message)


def is_infrastructure(failure: MemdockError) -> bool:
    """Whether the failure says nothing about the memory system."""
    return may_pass(failure) or failure.reason == _PROVIDERS_KEY


def may_pass(failure: MemdockError) -> bool:
    """Whether the same call may succeed a little later."""
    return isinstance(failure, _INFRASTRUCTURE) and not isinstance(failure, PayloadTooLargeError)


def turn_failed_by_infrastructure(failure: TurnError) -> bool:
    """The same for a turn that FAILED; a reason that the table does not know is the system's own."""
    try:
        return is_infrastructure(error(failure.reason, failure.message))
    except KeyError:
        return False


class Breaker:
    """Stops the run after `limit` faults in a row of one endpoint: a dead one must not fail a whole benchmark."""

    def __init__(self, endpoint: str, limit: int = 10) -> None:
        self._endpoint, self._limit, self._in_a_row = endpoint, limit, 0

    def succeeded(self) -> None:
        """Begins to count anew."""
        self._in_a_row = 0

    def failed(self, fault: Fault) -> None:
        """Counts an infrastructure fault; raises `RunStoppedError` at the limit."""
        self._in_a_row += 1
        if self._in_a_row >= self._limit:
            raise RunStoppedError(
                f"{self._endpoint} failed {self._limit} times in a row; the last time: {fault.detail}"
            )
