"""Whether each system can serve: asked when somebody wants to know, at most once a second for each."""

import asyncio
import time
from collections.abc import Mapping
from typing import Protocol

from memdock.errors import MemdockError

ANSWER_HOLDS_S = 1.0
TIMEOUT_S = 2.0


class Checked(Protocol):
    """What can be asked whether it is ready."""

    async def check_ready(self, timeout_s: float) -> None:
        """Returns when it is; else raises `MemdockError`."""


class Readiness:
    """Asks the systems' own readiness checks."""

    def __init__(self, systems: Mapping[str, Checked]) -> None:
        self._probes = {name: _Probe(system) for name, system in systems.items()}

    async def of(self, names: list[str]) -> dict[str, bool]:
        """The readiness of each of these systems, all asked at once; the answer takes 2 s at most."""
        answers = await asyncio.gather(*(self._probes[name].ready() for name in names))
        return dict(zip(names, answers, strict=True))

    async def of_all(self) -> dict[str, bool]:
        """The readiness of every system."""
        return await self.of(list(self._probes))


class _Probe:
    """One system's last answer; those who ask at the same time share one question."""

    def __init__(self, system: Checked) -> None:
        self._system = system
        self._one_at_a_time = asyncio.Lock()
        self._ready = False
        self._asked_s = -ANSWER_HOLDS_S

    async def ready(self) -> bool:
        async with self._one_at_a_time:
            if time.monotonic() - self._asked_s >= ANSWER_HOLDS_S:
                self._ready = await self._ask()
                self._asked_s = time.monotonic()
            return self._ready

    async def _ask(self) -> bool:
        try:
            await self._system.check_ready(TIMEOUT_S)
        except MemdockError:
            return False
        return True
