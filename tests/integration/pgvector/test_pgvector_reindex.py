"""Another embedder for spaces that are in use: whole or not at all, and going on where it was."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator

import numpy as np
import pytest
import pytest_asyncio
from aiohttp import web

from memdock.errors import MemdockError
from memdock.types import Selection, Turn
from memdock_embedder.backends import Embedder
from memdock_embedder.remote import RemoteEmbedder
from memdock_pgvector import erase, store
from memdock_pgvector.chunks import Chunk, new_chunk_id
from memdock_pgvector.database import Database
from memdock_pgvector.forgetting import plan_forget
from memdock_pgvector.hnsw import build_statement
from memdock_pgvector.ranking import Fusion, Search, search_exactly
from memdock_pgvector.reindex import Progress, reindex
from memdock_pgvector.rows import ReadyChunk
from support.model_server import ModelServer

COUNT = 70


async def fill(database: Database, embedder: Embedder, space: str) -> None:
    """Fills a space with vectors of the embedder's dimension, whatever the server embeds now."""
    chunks = [
        Chunk(id=new_chunk_id(), turns=(Turn(turn_id=f"t{n}", session_id="s", role="user", text=f"word{n}"),))
        for n in range(COUNT)
    ]
    ready = [
        ReadyChunk(chunk=chunk, vector=np.ones(embedder.dimension, dtype=np.float32), terms=chunk.terms)
        for chunk in chunks
    ]
    async with database.transaction() as connection:
        await store.add_chunks(connection, space, ready, embedder=embedder.model, dimension=embedder.dimension)


async def nearest(database: Database, embedder: Embedder, space: str, text: str) -> str:
    vector = (await embedder.embed([text], "query")).vectors[0]
    search = Search(embedder=embedder.model, vector=vector, terms=(), top_k=1)
    async with database.connection() as connection:
        ((chunk, _),) = await search_exactly(connection, space, Fusion.DENSE, search)
    return chunk.turns[0].turn_id


@pytest_asyncio.fixture
async def wider(models: ModelServer, embedder: Embedder) -> AsyncIterator[Embedder]:
    """Another model, of more dimensions."""
    healthy = models.embed
    models.embed = lambda text: [*healthy(text), 0.0, 0.1]
    opened = await RemoteEmbedder.connect(models.url, "wider")
    yield opened
    await opened.close()


async def run(database: Database, embedder: Embedder, **more: object) -> list[Progress]:
    return [step async for step in reindex(database, embedder, reply_chars=100, **more)]  # type: ignore[arg-type]


async def test_every_space_or_the_named_ones_change_at_once(
    database: Database, embedder: Embedder, wider: Embedder
) -> None:
    for space in ("a", "b"):
        await fill(database, embedder, space)
    steps = await run(database, wider, spaces=["b"])
    assert [(step.space, step.done, step.total) for step in steps[:2]] == [("b", 0, COUNT), ("b", 32, COUNT)]
    assert await nearest(database, wider, "b", "user: word7") == "t7"
    with pytest.raises(MemdockError, match="EMBEDDER_MISMATCH"):
        await nearest(database, wider, "a", "user: word7")
    assert {step.space for step in await run(database, wider)} == {"a"}
    assert await nearest(database, wider, "a", "user: word7") == "t7"
    assert await run(database, wider) == []


async def test_a_run_that_was_stopped_goes_on(
    database: Database, embedder: Embedder, wider: Embedder, models: ModelServer
) -> None:
    await fill(database, embedder, "a")
    steps = reindex(database, wider, reply_chars=100)
    assert isinstance(steps, AsyncGenerator)
    async for step in steps:
        if step.done == 32:
            break
    await steps.aclose()
    models.requests.clear()
    assert [step.done for step in await run(database, wider)] == [32, 64, 70]
    assert sum(len(body["input"]) for _, body in models.requests) == COUNT - 32


async def test_a_failing_model_leaves_the_old_vectors(
    database: Database, embedder: Embedder, wider: Embedder, models: ModelServer
) -> None:
    await fill(database, embedder, "a")
    models.faults += [web.Response(status=401) for _ in range(10)]
    with pytest.raises(MemdockError, match="PROVIDER_AUTH_FAILED"):
        await run(database, wider)
    async with database.connection() as connection:
        row = await store.find_space(connection, "a")
    assert row is not None
    assert (row.embedder, row.dimension) == (embedder.model, embedder.dimension)


async def test_what_comes_and_goes_meanwhile_is_in_the_new_vectors_or_gone(
    database: Database, embedder: Embedder, wider: Embedder
) -> None:
    await fill(database, embedder, "a")
    async for step in reindex(database, wider, reply_chars=100):
        if step.done == 64:
            late = Chunk(id=new_chunk_id(), turns=(Turn(turn_id="late", session_id="s", role="user", text="late"),))
            vector = np.ones(embedder.dimension, dtype=np.float32)
            async with database.transaction() as connection:
                ready = [ReadyChunk(chunk=late, vector=vector, terms=late.terms)]
                await store.add_chunks(connection, "a", ready, embedder=embedder.model, dimension=embedder.dimension)
                plan = await plan_forget(connection, "a", Selection(turn_ids=("t1", "t2")))
                await erase.delete_chunks(connection, "a", plan.touched)
    async with database.connection() as connection:
        cursor = await connection.execute("SELECT count(*), min(vector_dims(embedding)) FROM chunk")
        assert await cursor.fetchone() == (COUNT - 1, wider.dimension)
        assert await (await connection.execute("SELECT count(*) FROM new_vector")).fetchone() == (0,)
    assert await nearest(database, wider, "a", "user: late") == "late"


async def test_the_index_of_the_old_dimension_goes_with_it(
    database: Database, embedder: Embedder, wider: Embedder
) -> None:
    await fill(database, embedder, "a")
    async with database.connection() as connection:
        row = await store.find_space(connection, "a")
        assert row is not None
        await connection.execute(build_statement(row.id, embedder.dimension))
    async with asyncio.timeout(30):
        await run(database, wider)
    assert await nearest(database, wider, "a", "user: word7") == "t7"
