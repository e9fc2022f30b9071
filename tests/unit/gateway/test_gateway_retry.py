"""Which errors are tried again, and after how long."""

import pytest

from memdock.errors import REASONS, error
from memdock_gateway.retry import pause_s

AT_ANY_TIME = {"ADAPTER_UNREACHABLE", "STORE_UNREACHABLE", "PROVIDER_UNREACHABLE", "DRAINING"}
WHEN_TOLD = {"IN_PROGRESS", "RATE_LIMITED", "QUEUE_FULL", "PROVIDER_RATE_LIMITED"}


def test_unavailable_is_tried_at_most_three_times_with_full_jitter() -> None:
    problem = error("ADAPTER_UNREACHABLE", "gone")
    for retries in range(3):
        bound = 0.1 * 2**retries
        tries = [pause_s(problem, retries, None) for _ in range(300)]
        pauses = [pause for pause in tries if pause is not None]
        assert len(pauses) == len(tries)
        assert all(0 <= pause <= bound for pause in pauses)
        assert min(pauses) < bound * 0.1, "full jitter reaches down to nothing"
        assert max(pauses) > bound * 0.9
    assert pause_s(problem, 3, None) is None


@pytest.mark.parametrize("reason", sorted(WHEN_TOLD))
def test_aborted_and_rate_limits_wait_for_what_the_system_said(reason: str) -> None:
    pause = pause_s(error(reason, "later", retry_after_s=0.7), 0, 10)
    assert pause is not None
    assert 0.7 <= pause <= 0.8
    assert pause_s(error(reason, "later"), 0, 10) is None


def test_nothing_begins_after_the_deadline() -> None:
    assert pause_s(error("IN_PROGRESS", "later", retry_after_s=2), 0, 1.5) is None
    assert pause_s(error("DRAINING", "gone", retry_after_s=2), 0, 1.5) is None


def test_everything_else_is_never_tried_again() -> None:
    for reason in set(REASONS) - AT_ANY_TIME - WHEN_TOLD:
        assert pause_s(error(reason, "no", retry_after_s=0.1), 0, None) is None, reason
