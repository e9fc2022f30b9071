"""Several at once, and no more than that."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import TypeVar

from memdock_evaluator.ending import ended

T = TypeVar("T")


async def for_each(items: AsyncIterator[T], work: Callable[[T], Awaitable[None]], *, limit: int) -> None:
    """`work` on every item, `limit` at a time, items taken as places become free.

    The first exception cancels what is going on, waits for it to end, and is raised as it is. An item's work is
    cancelled once at the most, so that it can keep what it has got.
    """
    taking = asyncio.Lock()

    async def worker() -> None:
        while True:
            async with taking:
                try:
                    item = await anext(items)
                except StopAsyncIteration:
                    return
            await work(item)

    workers = [asyncio.create_task(worker()) for _ in range(limit)]
    if not workers:
        return
    try:
        done, _ = await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
        for each in done:
            each.result()
    finally:
        for each in workers:
            each.cancel()
        await ended(workers)


async def stream(items: Iterable[T]) -> AsyncIterator[T]:
    """Items that are at hand, for `for_each`."""
    for item in items:
        yield item
