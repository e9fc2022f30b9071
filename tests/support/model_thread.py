"""The scripted model server on a thread of its own, for tests whose other parts are processes."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from support.model_server import ModelServer, serve_models


@contextmanager
def models_in_thread(server: ModelServer) -> Iterator[ModelServer]:
    """Serves until the block ends; `faults` may be changed meanwhile."""
    ready, ending = threading.Event(), asyncio.Event()

    async def serve() -> None:
        async with serve_models(server):
            loops.append(asyncio.get_running_loop())
            ready.set()
            await ending.wait()

    loops: list[asyncio.AbstractEventLoop] = []
    # `run` also cancels the requests that were left hanging.
    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="models", daemon=True)
    thread.start()
    assert ready.wait(10), "the model server did not start"
    try:
        yield server
    finally:
        loops[0].call_soon_threadsafe(ending.set)
        thread.join(10)
