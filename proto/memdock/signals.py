"""How a serving process is told to end."""

import asyncio
import os
import signal


def told_to_end() -> asyncio.Event:
    """Set at the first SIGTERM or SIGINT from now on; the second ends the process at once."""
    ending = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, _end, ending)
    return ending


def _end(ending: asyncio.Event) -> None:
    if ending.is_set():
        os._exit(1)
    ending.set()
