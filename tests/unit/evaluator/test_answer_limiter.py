"""How many calls at once: slow start, one more for each round, half after an overload, none while asked to wait."""

import asyncio
import contextlib
from contextlib import AsyncExitStack

import pytest

from memdock_evaluator.answer.limiter import LONGEST_WAIT_S, AskedToWaitError, Limiter, Slot


async def round_of(limiter: Limiter) -> list[Slot]:
    """As many calls as are let in at once, all of which go well."""
    async with AsyncExitStack() as stack:
        slots = [await stack.enter_async_context(limiter.slot()) for _ in range(int(limiter.limit))]
        for _ in slots:
            limiter.went_well()
        return slots


async def test_it_doubles_until_the_first_overload_and_then_grows_by_one_a_round() -> None:
    limiter = Limiter(64)
    assert limiter.limit == 16
    await round_of(limiter)
    assert int(limiter.limit) == 17, "the limit grows while it is what keeps calls waiting"
    slots = await round_of(limiter)
    limiter.overloaded(slots[-1])
    fallen = limiter.limit
    assert fallen == 9
    for rounds in range(1, 4):
        for _ in range(int(limiter.limit)):
            async with AsyncExitStack() as stack:
                for _ in range(int(limiter.limit)):
                    await stack.enter_async_context(limiter.slot())
                limiter.went_well()
        assert limiter.limit == pytest.approx(fallen + rounds, abs=0.5)


async def test_overloads_of_one_round_count_once_and_the_limit_never_falls_below_one() -> None:
    limiter = Limiter(8)
    async with AsyncExitStack() as stack:
        slots = [await stack.enter_async_context(limiter.slot()) for _ in range(8)]
        for slot in slots:
            limiter.overloaded(slot)
        assert limiter.limit == 4
    for _ in range(5):
        async with limiter.slot() as slot:
            limiter.overloaded(slot)
    assert limiter.limit == 1


async def test_it_never_grows_past_the_most_nor_while_few_are_under_way() -> None:
    limiter = Limiter(20)
    async with limiter.slot():
        limiter.went_well()
    assert limiter.limit == 16
    for _ in range(20):
        await round_of(limiter)
    assert limiter.limit == 20


async def test_calls_begin_in_their_order_and_one_that_is_cancelled_gives_its_place_away() -> None:
    limiter = Limiter(1)
    order: list[str] = []

    async def call(name: str, held: asyncio.Event) -> None:
        async with limiter.slot():
            order.append(name)
            await held.wait()

    first, others = asyncio.Event(), asyncio.Event()
    others.set()
    tasks = [asyncio.create_task(call(name, first if name == "a" else others)) for name in "abcd"]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    tasks[1].cancel()
    first.set()
    tasks[2].cancel()  # in the same turn of the loop
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.gather(*tasks)
    await tasks[3]
    assert order == ["a", "d"]
    async with limiter.slot():
        pass


async def test_one_that_is_let_in_and_cancelled_at_once_gives_its_place_back() -> None:
    limiter = Limiter(1)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(limiter.slot())
        waiting = asyncio.create_task(stack.enter_async_context(limiter.slot()))
        await asyncio.sleep(0)
    waiting.cancel()  # its place was given to it, and it has not run yet
    with pytest.raises(asyncio.CancelledError):
        await waiting
    async with asyncio.timeout(5), limiter.slot():
        pass


async def test_while_it_is_closed_nothing_begins() -> None:
    limiter, loop = Limiter(4), asyncio.get_running_loop()
    began = loop.time()
    async with limiter.slot():
        limiter.close_for(0.2)
        limiter.close_for(0.1)
    async with limiter.slot():
        assert loop.time() - began >= 0.2


async def test_nobody_waits_for_one_that_asks_for_an_hour() -> None:
    limiter = Limiter(1)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(limiter.slot())
        waiting = asyncio.create_task(stack.enter_async_context(limiter.slot()))
        await asyncio.sleep(0)
        limiter.close_for(LONGEST_WAIT_S + 3480)
    with pytest.raises(AskedToWaitError, match="asked to wait 3600 s"):
        await waiting
    with pytest.raises(AskedToWaitError):
        await stack.enter_async_context(limiter.slot())
