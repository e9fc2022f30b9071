"""Which errors of a system are worth another try, and when. Every call of the protocol is safe to repeat."""

import random

from memdock.errors import AbortedError, MemdockError, PayloadTooLargeError, ResourceExhaustedError, UnavailableError

MAX_RETRIES = 3
FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 2.0


def pause_s(problem: MemdockError, retries: int, left_s: float | None) -> float | None:
    """Seconds to wait before the next try, after `retries` of them; `None`: do not try again.

    UNAVAILABLE: full jitter (uniform between 0 and a bound that doubles), never sooner than the system asked for.
    ABORTED and rate limits: exactly when the system asked for, else never. Nothing is tried again that would begin
    after the `left_s` seconds of its deadline.
    """
    if retries >= MAX_RETRIES:
        return None
    pause = _wanted_pause_s(problem, retries)
    return None if pause is None or (left_s is not None and pause >= left_s) else pause


def _wanted_pause_s(problem: MemdockError, retries: int) -> float | None:
    match problem:
        case UnavailableError():
            jittered = random.uniform(0, min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2**retries))  # noqa: S311 - no secret
            return max(jittered, problem.retry_after_s or 0.0)
        case PayloadTooLargeError():
            return None
        case AbortedError() | ResourceExhaustedError():
            return problem.retry_after_s
        case _:
            return None
