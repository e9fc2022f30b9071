"""`memdock-cortex serve`."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import click

from memdock.adapter.command import AdapterSettings, adapter_command, option
from memdock.adapter.model_calls import watch
from memdock.adapter.native_ids import NativeIds
from memdock.system import System

_OPTIONS = (
    option("--chat-max-tokens", "How long a reply of the chat model may be.", default=1000, type=click.IntRange(min=1)),
)


@asynccontextmanager
async def open_system(settings: AdapterSettings) -> AsyncIterator[System]:
    """cortex on chroma in `--data`; ends what it stands on."""
    from memdock_cortex.doors import Models
    from memdock_cortex.framework import Cortex
    from memdock_cortex.store import Store
    from memdock_cortex.system import CortexSystem

    watch(settings.embedder.dimension)
    async with AsyncExitStack() as ends:
        store = await asyncio.to_thread(Store, settings.data / "chroma")
        ends.push_async_callback(asyncio.to_thread, store.close)
        asked = settings.chat, settings.embedder
        models = Models.at(*asked, max_tokens=settings.more["chat_max_tokens"])
        ends.callback(models.close)
        ids = NativeIds(settings.data / "ids.sqlite")
        ends.callback(ids.close)
        yield CortexSystem(settings.system, Cortex(store, models), store, ids, models=asked)


main = adapter_command("cortex", "cortex behind the Memdock protocol.", open_system, _OPTIONS)
