"""A system's bounds: calls at once, calls a minute, money."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from aiolimiter import AsyncLimiter

from memdock_meter.config import SystemConfig
from memdock_meter.wire import WireError

_MINUTE_S = 60.0


class Lane:
    """What one system may do. `spent`: the money that its calls have cost so far."""

    def __init__(self, name: str, config: SystemConfig, *, spent: float, currency: str) -> None:
        self._name = name
        self._budget = config.budget
        self._currency = currency
        self._free = asyncio.Semaphore(config.concurrency)
        rate = config.requests_per_minute
        # A tenth of a minute's calls may come at once, so that a rate is not used up in the first second.
        self._pace = (
            None
            if rate is None
            else AsyncLimiter(max(1.0, rate / 10), _MINUTE_S / 10 if rate >= 10 else _MINUTE_S / rate)
        )
        self.spent = spent

    @property
    def has_budget(self) -> bool:
        """Whether its calls must have a price."""
        return self._budget is not None

    @asynccontextmanager
    async def entered(self) -> AsyncIterator[None]:
        """Waits for its turn. Raises `WireError` where the budget is spent; calls under way may go past it."""
        async with AsyncExitStack() as held:
            await held.enter_async_context(self._free)
            if self._pace is not None:
                await self._pace.acquire()
            if self._budget is not None and self.spent >= self._budget:
                raise WireError(
                    429,
                    "insufficient_quota",
                    f"the budget of {self._name} is spent: {self.spent:.4f} of {self._budget:g} {self._currency}; "
                    "raise it in the meter's configuration",
                )
            yield
