"""`memdock-mem0 serve`."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import click

from memdock.adapter.command import AdapterSettings, adapter_command, option
from memdock.adapter.model_calls import watch
from memdock.adapter.native_ids import NativeIds
from memdock.adapter.postgres import EmbeddedPostgres
from memdock_mem0.framework import Mem0
from memdock_mem0.system import Mem0System

_OPTIONS = (
    option("--database", "postgresql:// address; without it PostgreSQL is run here, in --data.", default="",
           secret=True),
    option("--unit", "What is one add: a user's turn with its reply, or a turn.", default="pair",
           type=click.Choice(["pair", "turn"])),
    option("--chat-max-tokens", "How long a reply of the chat model may be.", default=4096, type=click.IntRange(min=1)),
)  # fmt: skip


@asynccontextmanager
async def open_system(settings: AdapterSettings) -> AsyncIterator[Mem0System]:
    """mem0 on its database; ends what it stands on."""
    watch(settings.embedder.dimension)
    async with AsyncExitStack() as ends:
        url = settings.more["database"]
        if not url:
            embedded = EmbeddedPostgres(settings.data)
            ends.push_async_callback(embedded.stop)
            await embedded.start()
            url = embedded.url
        framework = await asyncio.to_thread(
            Mem0,
            url,
            settings.data,
            settings.chat,
            settings.embedder,
            max_tokens=settings.more["chat_max_tokens"],
        )
        ends.push_async_callback(asyncio.to_thread, framework.close)
        ids = NativeIds(settings.data / "ids.sqlite")
        ends.callback(ids.close)
        yield Mem0System(settings.system, framework, ids, pairs=settings.more["unit"] == "pair")


main = adapter_command("mem0", "mem0 behind the Memdock protocol.", open_system, _OPTIONS)
