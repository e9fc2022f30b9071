"""How many calls of a provider are under way at once: as many as it bears, found as TCP finds it (RFC 5681).

The limit grows by one a reply until the provider is overloaded for the first time (slow start), from then on by one
for as many replies as are under way (additive increase); an overload halves it (multiplicative decrease), once for all
the calls that were under way by then. While the provider asks to wait, no call begins.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

FIRST_AT_ONCE = 16
"""Where the slow start begins."""

LONGEST_WAIT_S = 120.0
"""A provider that asks for more than this is not waited for."""


class AskedToWaitError(Exception):
    """The provider asks to wait for longer than anybody would; `wait_s` seconds from now."""

    def __init__(self, wait_s: float) -> None:
        self.wait_s = wait_s
        super().__init__(f"asked to wait {wait_s:.0f} s")


@dataclass(slots=True, kw_only=True)
class Slot:
    """The leave to send one request. `number`: it is the nth that was given."""

    number: int


class Limiter:
    """The calls of one provider, in the order in which they came; for one event loop."""

    def __init__(self, most: int) -> None:
        """`most`: calls at once that are never exceeded."""
        self.most = most
        self.limit: float = min(FIRST_AT_ONCE, most)
        self._steep = True
        self._begun = self._fell_at = self._under_way = 0
        self._closed_until = 0.0
        self._queue: deque[asyncio.Future[int]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[Slot]:
        """Waits for its turn; raises `AskedToWaitError` where that would take longer than `LONGEST_WAIT_S`."""
        place: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._queue.append(place)
        self._admit()
        try:
            number = await place
        except asyncio.CancelledError:
            if not place.cancelled() and place.exception() is None:
                self._leave()  # it was let in and cancelled in the same turn of the loop
            raise
        try:
            yield Slot(number=number)
        finally:
            self._leave()

    def went_well(self) -> None:
        """A reply came; the limit grows where it is what keeps calls waiting."""
        if self._under_way >= int(self.limit):
            self.limit = min(self.most, self.limit + (1 if self._steep else 1 / self.limit))

    def overloaded(self, slot: Slot) -> None:
        """The request of this slot was too much for the provider."""
        if slot.number > self._fell_at:
            self.limit = max(1.0, self.limit / 2)
            self._steep = False
            self._fell_at = self._begun

    def close_for(self, wait_s: float) -> None:
        """The provider asks to wait: no call begins for so many seconds."""
        self._closed_until = max(self._closed_until, asyncio.get_running_loop().time() + wait_s)

    def _leave(self) -> None:
        self._under_way -= 1
        self._admit()

    def _admit(self) -> None:
        """Lets in whom it can; when the provider is to be left alone, looks again at the end of that."""
        loop = asyncio.get_running_loop()
        closed_s = self._closed_until - loop.time()
        if closed_s > LONGEST_WAIT_S:
            while (place := self._next()) is not None:
                place.set_exception(AskedToWaitError(closed_s))
        elif closed_s > 0:
            if self._timer is None and self._queue:
                self._timer = loop.call_later(closed_s, self._open)
        else:
            while self._under_way < int(self.limit) and (place := self._next()) is not None:
                self._under_way += 1
                self._begun += 1
                place.set_result(self._begun)

    def _next(self) -> asyncio.Future[int] | None:
        """Who has waited longest; those that were cancelled meanwhile wait no more."""
        while self._queue:
            if not (place := self._queue.popleft()).done():
                return place
        return None

    def _open(self) -> None:
        self._timer = None
        self._admit()
