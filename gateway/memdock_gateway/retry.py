"""Which errors of a system are worth another try, and when. Every call of the protocol is safe to repeat."""

from memdock.errors import AbortedError, MemdockError, PayloadTooLargeError, ResourceExhaustedError, UnavailableError
from memdock.retrying import MAX_RETRIES, retry_delay_s


def pause_s(problem: MemdockError, retries: int, left_s: float | None) -> float | None:
    """Seconds to wait before the next try, after `retries` of them; `None`: do not try again.

    UNAVAILABLE is tried again with full jitter; ABORTED and rate limits only where the system said when. Nothing is
    tried again that would begin after the `left_s` seconds of the call.
    """
    if retries >= MAX_RETRIES or not _may_pass(problem):
        return None
    pause = retry_delay_s(problem, retries)
    return None if pause is None or (left_s is not None and pause >= left_s) else pause


def _may_pass(problem: MemdockError) -> bool:
    passing = isinstance(problem, UnavailableError | AbortedError | ResourceExhaustedError)
    return passing and not isinstance(problem, PayloadTooLargeError)
