"""Ends that are asked for: SIGTERM ends a run as Ctrl-C does, in order."""

import asyncio
import signal
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

ResultT = TypeVar("ResultT")


def run_until_told(work: Coroutine[Any, Any, ResultT]) -> ResultT:
    """`asyncio.run`, with `work` cancelled by SIGTERM as it is by SIGINT; either raises `KeyboardInterrupt`."""
    if threading.current_thread() is not threading.main_thread():
        return asyncio.run(work)
    before = signal.getsignal(signal.SIGTERM)

    async def cancellable() -> ResultT:
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        return await work

    try:
        return asyncio.run(cancellable())
    except asyncio.CancelledError as error:
        raise KeyboardInterrupt from error
    finally:
        # Closing the loop has put the system's default in place.
        signal.signal(signal.SIGTERM, before)
