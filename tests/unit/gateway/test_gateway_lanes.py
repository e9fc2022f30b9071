"""Lanes: bounded, in order, and no place is ever lost."""

import asyncio

import pytest

from memdock.errors import MemdockError
from memdock_gateway.lanes import Lane


async def test_places_are_given_in_the_order_of_waiting() -> None:
    lane = Lane(concurrency=1, queue=10)
    await lane.enter(None)
    order: list[int] = []

    async def visit(name: int) -> None:
        await lane.enter(None)
        order.append(name)
        lane.leave()

    visits = [asyncio.create_task(visit(name)) for name in range(5)]
    await asyncio.sleep(0)
    assert lane.waiting == 5
    lane.leave()
    await asyncio.gather(*visits)
    assert order == [0, 1, 2, 3, 4]
    assert (lane.inside, lane.waiting) == (0, 0)


async def test_one_more_than_the_queue_holds_is_refused_with_a_time_to_come_back() -> None:
    lane = Lane(concurrency=1, queue=1)
    await lane.enter(None)
    waiter = asyncio.create_task(lane.enter(None))
    await asyncio.sleep(0)
    with pytest.raises(MemdockError) as refused:
        await lane.enter(None)
    assert refused.value.reason == "QUEUE_FULL"
    assert refused.value.http_status == 429
    assert refused.value.retry_after_s
    lane.leave()
    await waiter


async def test_waiting_ends_with_the_deadline_and_frees_the_queue() -> None:
    lane = Lane(concurrency=1, queue=1)
    await lane.enter(None)
    with pytest.raises(MemdockError) as late:
        await lane.enter(0.01)
    assert late.value.reason == "DEADLINE_EXCEEDED"
    assert (lane.inside, lane.waiting) == (1, 0)


async def test_a_waiter_who_leaves_is_skipped() -> None:
    lane = Lane(concurrency=1, queue=5)
    await lane.enter(None)
    gone, stays = (asyncio.create_task(lane.enter(None)) for _ in range(2))
    await asyncio.sleep(0)
    gone.cancel()
    lane.leave()
    await asyncio.wait_for(stays, 1)
    with pytest.raises(asyncio.CancelledError):
        await gone
    assert (lane.inside, lane.waiting) == (1, 0)


async def test_a_place_given_to_a_waiter_who_is_cancelled_at_once_goes_on_to_the_next() -> None:
    lane = Lane(concurrency=1, queue=5)
    await lane.enter(None)
    gone, stays = (asyncio.create_task(lane.enter(None)) for _ in range(2))
    await asyncio.sleep(0)
    lane.leave()
    gone.cancel()
    await asyncio.wait_for(stays, 1)
    with pytest.raises(asyncio.CancelledError):
        await gone
    lane.leave()
    assert (lane.inside, lane.waiting) == (0, 0)


async def test_never_more_inside_than_allowed_under_a_crowd() -> None:
    lane = Lane(concurrency=3, queue=1000)
    inside = most = 0

    async def visit(number: int) -> None:
        nonlocal inside, most
        await lane.enter(5)
        inside += 1
        most = max(most, inside)
        try:
            await asyncio.sleep(0.0005 * (number % 3))
        finally:
            inside -= 1
            lane.leave()

    visits = [asyncio.create_task(visit(number)) for number in range(200)]
    await asyncio.sleep(0.003)
    for task in visits[::7]:
        task.cancel()
    await asyncio.gather(*visits, return_exceptions=True)
    assert most == 3
    assert (lane.inside, lane.waiting) == (0, 0)
