"""`memdock-mem0g serve`."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import click

from memdock.adapter.command import AdapterSettings, adapter_command, option
from memdock.adapter.model_calls import watch
from memdock.adapter.native_ids import NativeIds
from memdock_mem0g.framework import GraphMemory, Neo4jAt
from memdock_mem0g.system import Mem0gSystem

_OPTIONS = (
    option("--neo4j-url", "bolt:// address of a Neo4j; without it the graph is a file of Kuzu in --data.", default=""),
    option("--neo4j-user", "Its user.", default="neo4j"),
    option("--neo4j-password", "The user's password.", default="", secret=True),
    option("--neo4j-database", "Its database.", default="neo4j"),
    option("--unit", "What is one add: a user's turn with its reply, or a turn.", default="pair",
           type=click.Choice(["pair", "turn"])),
    option("--threshold", "How near two names are to be one node of the graph.", default=0.7,
           type=click.FloatRange(0, 1, min_open=True)),
    option("--chat-max-tokens", "How long a reply of the chat model may be.", default=4096, type=click.IntRange(min=1)),
)  # fmt: skip


@asynccontextmanager
async def open_system(settings: AdapterSettings) -> AsyncIterator[Mem0gSystem]:
    """mem0's graph memory on its store."""
    watch(settings.embedder.dimension)
    more = settings.more
    neo4j = None
    if more["neo4j_url"]:
        if not more["neo4j_password"]:
            raise click.ClickException("--neo4j-url needs --neo4j-password")
        neo4j = Neo4jAt(
            url=more["neo4j_url"],
            user=more["neo4j_user"],
            password=more["neo4j_password"],
            database=more["neo4j_database"],
        )
    async with AsyncExitStack() as ends:
        framework = await asyncio.to_thread(
            GraphMemory,
            settings.data,
            settings.chat,
            settings.embedder,
            max_tokens=more["chat_max_tokens"],
            threshold=more["threshold"],
            neo4j=neo4j,
        )
        ends.push_async_callback(asyncio.to_thread, framework.store.close)
        ids = NativeIds(settings.data / "ids.sqlite")
        ends.callback(ids.close)
        yield Mem0gSystem(settings.system, framework, ids, pairs=more["unit"] == "pair", threshold=more["threshold"])


main = adapter_command("mem0g", "mem0's graph memory behind the Memdock protocol.", open_system, _OPTIONS)
