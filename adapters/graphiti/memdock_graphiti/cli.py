"""`memdock-graphiti serve`."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import click

from memdock.adapter.command import AdapterSettings, adapter_command, option
from memdock.adapter.model_calls import watch
from memdock.adapter.native_ids import NativeIds
from memdock.system import System

_OPTIONS = (
    option("--neo4j-url", "bolt:// or neo4j:// address of a Neo4j.", default=""),
    option("--neo4j-user", "Its user.", default="neo4j"),
    option("--neo4j-password", "Its password.", default="", secret=True),
    option("--falkordb-url", "redis://user:password@host:port of a FalkorDB. Without both a Kuzu is kept in --data.",
           default="", secret=True),
    option("--chat-format", "How the chat model is asked for JSON.", default="json_schema",
           type=click.Choice(["json_schema", "json_object"])),
)  # fmt: skip


@asynccontextmanager
async def open_system(settings: AdapterSettings) -> AsyncIterator[System]:
    """graphiti on its graph database; ends what it stands on."""
    more = settings.more
    if more["neo4j_url"] and more["falkordb_url"]:
        raise click.UsageError("--neo4j-url and --falkordb-url exclude each other: the graph is kept in one of them")
    # Read as graphiti is imported.
    os.environ |= {"EMBEDDING_DIM": str(settings.embedder.dimension), "GRAPHITI_TELEMETRY_ENABLED": "false"}
    from memdock_graphiti.framework import Graph
    from memdock_graphiti.stores import StoreAt
    from memdock_graphiti.system import GraphitiSystem

    watch(settings.embedder.dimension)
    at = StoreAt(
        folder=settings.data,
        neo4j_url=more["neo4j_url"],
        neo4j_user=more["neo4j_user"],
        neo4j_password=more["neo4j_password"],
        falkordb_url=more["falkordb_url"],
    )
    async with AsyncExitStack() as ends:
        graph = await Graph.open(at, settings.chat, settings.embedder, response_format=more["chat_format"])
        ends.push_async_callback(graph.close)
        ids = await asyncio.to_thread(NativeIds, settings.data / "ids.sqlite")
        ends.callback(ids.close)
        yield GraphitiSystem(settings.system, graph, ids, store=at.name, models=(settings.chat, settings.embedder))


main = adapter_command("graphiti", "graphiti behind the Memdock protocol.", open_system, _OPTIONS)
