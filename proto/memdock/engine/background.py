"""Work that ends by itself, whoever waits for it or leaves."""

import asyncio
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

Result = TypeVar("Result")


class Background:
    """Tasks that no caller can cancel."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self.stopping = asyncio.Event()
        """Set when the server ends: whoever pauses goes on at once, and begins nothing new."""

    def spawn(self, work: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
        """Starts work and keeps hold of it."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def finish(self, work: Coroutine[Any, Any, Result]) -> Result:
        """The result of work that goes on when the caller is cancelled."""
        return await asyncio.shield(self.spawn(work))

    async def pause(self, seconds: float) -> None:
        """Waits, but not past the start of the stop."""
        try:
            async with asyncio.timeout(seconds):
                await self.stopping.wait()
        except TimeoutError:
            return

    async def join(self) -> None:
        """Returns when nothing is running."""
        while self._tasks:
            await asyncio.wait(self._tasks)


def pauses(first_s: float, longest_s: float) -> Iterator[float]:
    """How long to wait after the first failure, the second, and so on without end: twice as long each time."""
    pause_s = first_s
    while True:
        yield pause_s
        pause_s = min(2 * pause_s, longest_s)
