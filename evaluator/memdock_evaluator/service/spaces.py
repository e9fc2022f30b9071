"""The spaces of a run that is to be removed: given back, also where the run ended in their middle."""

import asyncio
from collections.abc import Iterator

from memdock.client import connect_async
from memdock.errors import MemdockError
from memdock.log import log_fault
from memdock_evaluator.dataset import DatasetError
from memdock_evaluator.run.selection import Selection
from memdock_evaluator.run.settings import RunSettings, SettingsError
from memdock_evaluator.run.space import space_id
from memdock_evaluator.service.faults import spaces_kept

AT_ONCE = 8


async def give_back(settings: RunSettings, run_id: str) -> None:
    """Resets every space that the run may have filled; one that was never filled stays as it is.

    `run_id`: of its manifest. Raises 409 where that cannot be done now.
    """
    try:
        names = await asyncio.to_thread(lambda: list(_names(settings, run_id)))
        for system in settings.systems:
            await _reset(settings, system, names)
    except (MemdockError, DatasetError, SettingsError) as fault:
        log_fault("spaces_not_given_back", fault)
        raise spaces_kept() from fault


def _names(settings: RunSettings, run_id: str) -> Iterator[str]:
    for size in Selection(settings).survey().sizes:
        for ingest in range(settings.ingest_repeats if size.questions else 0):
            yield space_id(run_id, size.dialogue_id, size.language, ingest)


async def _reset(settings: RunSettings, system: str, names: list[str]) -> None:
    places = asyncio.Semaphore(AT_ONCE)
    async with connect_async(
        settings.url, system=system, key=settings.key, timeout_s=settings.call_timeout_s
    ) as client:

        async def reset(name: str) -> None:
            async with places:
                await client.reset(name)

        await asyncio.gather(*map(reset, names))
