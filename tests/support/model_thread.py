"""A scripted server on a thread of its own, for tests whose other parts are processes."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager

from support.model_server import ModelServer, serve_models


@contextmanager
def in_thread(serving: Callable[[], AbstractAsyncContextManager[object]], name: str) -> Iterator[None]:
    """Serves until the block ends."""
    ready, ending = threading.Event(), asyncio.Event()

    async def serve() -> None:
        async with serving():
            loops.append(asyncio.get_running_loop())
            ready.set()
            await ending.wait()

    loops: list[asyncio.AbstractEventLoop] = []
    # `run` also cancels the requests that were left hanging.
    thread = threading.Thread(target=lambda: asyncio.run(serve()), name=name, daemon=True)
    thread.start()
    assert ready.wait(10), f"the server {name} did not start"
    try:
        yield
    finally:
        loops[0].call_soon_threadsafe(ending.set)
        thread.join(10)


@contextmanager
def models_in_thread(server: ModelServer, host: str = "127.0.0.1") -> Iterator[ModelServer]:
    """Serves until the block ends; `faults` may be changed meanwhile."""
    with in_thread(lambda: serve_models(server, host), "models"):
        yield server
