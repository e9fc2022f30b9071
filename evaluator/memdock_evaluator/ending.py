"""Tasks that are waited for to their end, whatever happens to whoever waits."""

import asyncio
from collections.abc import Collection
from typing import Any


async def ended(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Waits until all have ended; what they raised is left in them.

    Also where the caller is cancelled meanwhile, however often: then `CancelledError` is raised at the end.
    """
    cancelled: asyncio.CancelledError | None = None
    while pending := [task for task in tasks if not task.done()]:
        try:
            await asyncio.wait(pending)
        except asyncio.CancelledError as error:
            cancelled = error
    for task in tasks:
        if not task.cancelled():
            task.exception()  # it has been seen; asyncio would warn else
    if cancelled is not None:
        raise cancelled
