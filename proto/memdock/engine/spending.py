"""Adds what reads have cost to the space's total, without making a read wait for a disk."""

import asyncio
from collections.abc import Sequence

from memdock.engine.background import Background
from memdock.ledger import Ledger
from memdock.log import log_fault
from memdock.types import ModelUsage
from memdock.usage import merge


class Spending:
    """Gathers usage and writes it in rounds; what one round cannot write, the next one tries again."""

    def __init__(self, ledger: Ledger, background: Background) -> None:
        self._ledger = ledger
        self._background = background
        self._waiting: dict[str, list[ModelUsage]] = {}
        self._round: asyncio.Task[None] | None = None

    def add(self, space: str, usage: Sequence[ModelUsage]) -> None:
        """Takes note of usage."""
        if usage:
            self._waiting.setdefault(space, []).extend(usage)
            self._begin_round()

    async def written(self) -> None:
        """Returns when all that was noted before is in the ledger, or could not be written now."""
        for _ in range(2):  # the round under way, and the one with what came meanwhile
            if self._waiting:
                self._begin_round()
            if self._round is not None:
                await asyncio.wait({self._round})

    def _begin_round(self) -> None:
        if self._round is None:
            self._round = self._background.spawn(self._write())

    async def _write(self) -> None:
        noted, self._waiting = self._waiting, {}
        try:
            while noted:
                space, usage = next(iter(noted.items()))
                await self._ledger.spend(space, merge(usage))
                del noted[space]
        except Exception as fault:  # noqa: BLE001 - whatever it is, nothing that was noted is dropped
            log_fault("usage_not_written", fault)
            for space, usage in noted.items():
                self._waiting.setdefault(space, []).extend(usage)
            self._round = None
            return
        self._round = None
        if self._waiting:
            self._begin_round()
