"""The names of the systems behind the gateway, asked now and then."""

import asyncio
import time

from memdock.client import connect_async
from memdock.errors import MemdockError
from memdock.log import log_fault

HOLDS_S = 10.0
TIMEOUT_S = 3.0


class Systems:
    """`names` is what the gateway listed within the last ten seconds; empty where it does not answer."""

    def __init__(self, gateway: str, key: str) -> None:
        self._gateway, self._key = gateway, key
        self._names: tuple[str, ...] = ()
        self._asked_s = -HOLDS_S
        self._one_at_a_time = asyncio.Lock()

    async def names(self) -> tuple[str, ...]:
        """The systems' names, sorted."""
        if not self._gateway:
            return ()
        async with self._one_at_a_time:
            if time.monotonic() - self._asked_s >= HOLDS_S:
                self._names = await self._ask()
                self._asked_s = time.monotonic()
            return self._names

    async def _ask(self) -> tuple[str, ...]:
        try:
            async with connect_async(self._gateway, key=self._key, timeout_s=TIMEOUT_S) as client:
                return tuple(sorted(each.system for each in await client.list_systems()))
        except MemdockError as fault:
            log_fault("systems_not_listed", fault)
            return ()
