"""What the client tries again, how often, and how long it waits."""

import time
from typing import Any

import pytest

from memdock.errors import MemdockError, error
from memdock.retrying import MAX_RETRIES, Retrying, retry_delay_s
from memdock.service import METHODS, Call, Method
from memdock.v1 import memory_pb2 as pb


class Failing:
    """Fails with the given errors, one a call, then answers."""

    def __init__(self, *failures: MemdockError) -> None:
        self.failures = list(failures)
        self.calls = 0

    async def call(self, method: Method, request: Any, call: Call) -> Any:
        self.calls += 1
        if self.failures:
            raise self.failures.pop(0)
        return method.response()


class Clock:
    """Sleeps at once and remembers for how long."""

    def __init__(self) -> None:
        self.slept_s: list[float] = []

    async def sleep(self, delay_s: float) -> None:
        self.slept_s.append(delay_s)


def away() -> MemdockError:
    return error("ADAPTER_UNREACHABLE", "away")


async def attempt(service: Failing, clock: Clock, call: Call | None = None) -> Any:
    return await Retrying(service, sleep=clock.sleep).call(METHODS["Describe"], pb.DescribeRequest(), call or Call())


async def test_it_gives_up_after_three_retries() -> None:
    service, clock = Failing(*(away() for _ in range(9))), Clock()
    with pytest.raises(MemdockError):
        await attempt(service, clock)
    assert service.calls == 1 + MAX_RETRIES == 4
    assert all(0 <= delay_s <= bound_s for delay_s, bound_s in zip(clock.slept_s, (0.1, 0.2, 0.4), strict=True))


async def test_it_answers_when_the_service_comes_back() -> None:
    service, clock = Failing(away(), away()), Clock()
    assert await attempt(service, clock) == pb.DescribeResponse()
    assert service.calls == 3


@pytest.mark.parametrize("reason", ["VALIDATION_FAILED", "QUEUE_FULL", "INTERNAL", "DEADLINE_EXCEEDED", "IN_PROGRESS"])
async def test_what_cannot_help_is_not_tried_again(reason: str) -> None:
    service, clock = Failing(error(reason, "no")), Clock()
    with pytest.raises(MemdockError):
        await attempt(service, clock)
    assert service.calls == 1
    assert clock.slept_s == []


async def test_what_was_tried_again_on_the_way_is_not_tried_again_here() -> None:
    told = error("ADAPTER_UNREACHABLE", "away", retry_after_s=1.0)
    told.retried = True
    service, clock = Failing(told), Clock()
    with pytest.raises(MemdockError):
        await attempt(service, clock)
    assert service.calls == 1


@pytest.mark.parametrize("reason", ["QUEUE_FULL", "IN_PROGRESS", "DRAINING"])
async def test_it_comes_back_when_it_was_told_to(reason: str) -> None:
    service, clock = Failing(error(reason, "later", retry_after_s=1.5)), Clock()
    await attempt(service, clock)
    assert 1.5 <= clock.slept_s[0] <= 1.6


async def test_a_wait_past_the_deadline_is_not_begun() -> None:
    service, clock = Failing(error("QUEUE_FULL", "later", retry_after_s=5.0)), Clock()
    with pytest.raises(MemdockError) as caught:
        await attempt(service, clock, Call(deadline=time.monotonic() + 1.0))
    assert caught.value.reason == "QUEUE_FULL"
    assert clock.slept_s == []


def test_the_delay_is_spread_over_its_whole_bound() -> None:
    delays_s = [retry_delay_s(away(), 2) for _ in range(400)]
    assert all(delay_s is not None and 0 <= delay_s <= 0.4 for delay_s in delays_s)
    assert min(d for d in delays_s if d is not None) < 0.05
    assert max(d for d in delays_s if d is not None) > 0.35


class Remembering(Failing):
    """Remembers the requests that it got."""

    def __init__(self, *failures: MemdockError) -> None:
        super().__init__(*failures)
        self.requests: list[Any] = []

    async def call(self, method: Method, request: Any, call: Call) -> Any:
        self.requests.append(request)
        return await super().call(method, request, call)


@pytest.mark.parametrize(
    ("method", "request_"), [("Forget", pb.ForgetRequest(space_id="a")), ("Reset", pb.ResetRequest(space_id="a"))]
)
async def test_the_tries_of_an_erasure_are_one_and_two_calls_are_two(method: str, request_: Any) -> None:
    service, clock = Remembering(away(), error("IN_PROGRESS", "it goes on", retry_after_s=1.0)), Clock()
    retrying = Retrying(service, sleep=clock.sleep)
    await retrying.call(METHODS[method], request_, Call())
    await retrying.call(METHODS[method], request_, Call())
    names = [one.request_id for one in service.requests]
    assert len(names) == 4
    assert names[0]
    assert names[0] == names[1] == names[2] != names[3]
    assert request_.request_id == ""


async def test_an_erasures_own_request_id_stays_and_other_calls_pass_as_they_are() -> None:
    service = Remembering()
    named, read = pb.ResetRequest(space_id="a", request_id="mine"), pb.RetrieveRequest(space_id="a")
    await Retrying(service).call(METHODS["Reset"], named, Call())
    await Retrying(service).call(METHODS["Retrieve"], read, Call())
    assert service.requests[0] is named
    assert service.requests[1] is read
