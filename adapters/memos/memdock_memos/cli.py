"""`memdock-memos serve`."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import click

from memdock.adapter.command import AdapterSettings, adapter_command, option
from memdock.adapter.model_calls import watch
from memdock.adapter.native_ids import NativeIds
from memdock.adapter.postgres import EmbeddedPostgres
from memdock_memos.framework.light import Light
from memdock_memos.framework.product import Product
from memdock_memos.stored import Framework
from memdock_memos.system import MemosSystem

_OPTIONS = (
    option("--memory", "product: what MemOS's server does, on PostgreSQL; light: its general_text, on Qdrant.",
           default="product", type=click.Choice(["product", "light"])),
    option("--database", "postgresql:// address; without it PostgreSQL is run here, in --data.", default="",
           secret=True),
    option("--unit", "What is one add: a user's turn with its reply, or a turn.", default="pair",
           type=click.Choice(["pair", "turn"])),
    option("--add", "fine: the chat model extracts memories; fast: what was said is kept as it is.", default="fine",
           type=click.Choice(["fine", "fast"])),
    option("--search", "fast: no chat call; fine: the chat model rewrites what was found.", default="fast",
           type=click.Choice(["fast", "fine"])),
    option("--dedup", "What a search leaves out: repeated texts (no), or also what is much alike (sim, mmr).",
           default="mmr", type=click.Choice(["no", "sim", "mmr"])),
    option("--chat-max-tokens", "How long a reply of the chat model may be.", default=8000, type=click.IntRange(min=1)),
)  # fmt: skip

_LIGHT = {"database": "", "add": "fine", "search": "fast", "dedup": "mmr"}


@asynccontextmanager
async def open_system(settings: AdapterSettings) -> AsyncIterator[MemosSystem]:
    """MemOS on its store; ends what it stands on."""
    watch(settings.embedder.dimension)
    async with AsyncExitStack() as ends:
        framework = await _open(settings, ends)
        ends.push_async_callback(asyncio.to_thread, framework.close)
        ids = NativeIds(settings.data / "ids.sqlite")
        ends.callback(ids.close)
        yield MemosSystem(settings.system, framework, ids, pairs=settings.more["unit"] == "pair")


async def _open(settings: AdapterSettings, ends: AsyncExitStack) -> Framework:
    more = settings.more
    if more["memory"] == "light":
        if idle := [word for word, only in _LIGHT.items() if more[word] != only]:
            raise click.UsageError(f"--{idle[0]} is for --memory product alone")
        return await asyncio.to_thread(
            Light, settings.data, settings.chat, settings.embedder, max_tokens=more["chat_max_tokens"]
        )
    url = more["database"]
    if not url:
        embedded = EmbeddedPostgres(settings.data)
        ends.push_async_callback(embedded.stop)
        await embedded.start()
        url = embedded.url
    return await asyncio.to_thread(
        Product,
        url,
        settings.data,
        settings.chat,
        settings.embedder,
        max_tokens=more["chat_max_tokens"],
        add=more["add"],
        search=more["search"],
        dedup=more["dedup"],
    )


main = adapter_command("memos", "MemOS behind the Memdock protocol.", open_system, _OPTIONS)
