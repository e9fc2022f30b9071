"""A lane per system: so many calls inside at once, so many waiting in order, one more is refused.

A slow system fills its own lane and nobody else's.
"""

import asyncio
from collections import deque
from contextlib import suppress

from memdock.errors import error

RETRY_AFTER_S = 1.0


class Lane:
    """Places inside a system. First come, first served: a newcomer never overtakes one who waits."""

    def __init__(self, *, concurrency: int, queue: int) -> None:
        self._concurrency = concurrency
        self._queue = queue
        self._waiting: deque[asyncio.Future[None]] = deque()
        self.inside = 0

    @property
    def waiting(self) -> int:
        """Calls that wait for a place."""
        return len(self._waiting)

    def try_enter(self) -> bool:
        """Takes a place if one is free; each place that was taken needs one `leave`."""
        if self.inside >= self._concurrency:
            return False
        self.inside += 1
        return True

    async def enter(self, left_s: float | None) -> None:
        """Takes a place, waiting at most `left_s` seconds.

        QUEUE_FULL when too many wait already, DEADLINE_EXCEEDED when the time runs out first.
        """
        if self.try_enter():
            return
        if len(self._waiting) >= self._queue:
            raise error("QUEUE_FULL", "the system has too many calls waiting; try again", retry_after_s=RETRY_AFTER_S)
        place = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            async with asyncio.timeout(left_s):
                await place
        except (TimeoutError, asyncio.CancelledError) as end:
            self._give_up(place)
            if isinstance(end, TimeoutError):
                raise error("DEADLINE_EXCEEDED", "the time ran out while the call waited for its system") from None
            raise

    def leave(self) -> None:
        """Gives the place to whoever has waited longest."""
        while self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                return
        self.inside -= 1

    def _give_up(self, place: asyncio.Future[None]) -> None:
        # The place may have been handed over in the same turn of the loop in which the wait ended.
        if place.cancelled():
            with suppress(ValueError):
                self._waiting.remove(place)
        else:
            self.leave()
