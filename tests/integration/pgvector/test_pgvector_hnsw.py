"""The index of a large space: built beside the work, equal to the exact scan here, never short under a filter."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest_asyncio

from memdock.types import Turn
from memdock_pgvector import erase, store
from memdock_pgvector.chunks import Chunk, new_chunk_id
from memdock_pgvector.database import Database
from memdock_pgvector.hnsw import Indexes
from memdock_pgvector.ranking import Fusion, Search, search_exactly
from memdock_pgvector.rows import ReadyChunk
from memdock_pgvector.settings import Ranking

DAY = datetime(2024, 1, 1, tzinfo=UTC)
COUNT, DIMENSION = 400, 8
NUMBERS = np.random.default_rng(5)


def vector() -> np.ndarray:
    numbers = NUMBERS.standard_normal(DIMENSION).astype(np.float32)
    return numbers / np.linalg.norm(numbers)


async def add(database: Database, space: str, count: int = COUNT) -> None:
    chunks = []
    for place in range(count):
        turn = Turn(
            turn_id=f"t{place}", session_id=f"s{place % 9}", role="user", text="x", time=DAY + timedelta(days=place)
        )
        chunks.append(ReadyChunk(chunk=Chunk(id=new_chunk_id(), turns=(turn,)), vector=vector(), terms={}))
    async with database.transaction() as connection:
        await store.add_chunks(connection, space, chunks, embedder="e", dimension=DIMENSION)


async def index_names(database: Database) -> list[str]:
    async with database.connection() as connection:
        cursor = await connection.execute(
            "SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid"
            " WHERE indrelid = 'chunk'::regclass AND c.relname LIKE 'chunk_hnsw%' AND indisvalid ORDER BY 1"
        )
        return [name for (name,) in await cursor.fetchall()]


async def wait_for(database: Database, count: int) -> None:
    async with asyncio.timeout(20):
        while len(await index_names(database)) != count:  # noqa: ASYNC110 - PostgreSQL tells nobody
            await asyncio.sleep(0.05)


@pytest_asyncio.fixture
async def indexes(database: Database) -> AsyncIterator[Indexes]:
    opened = Indexes(database, Ranking(fusion=Fusion.DENSE, index_from=100, ef_search=40))
    yield opened
    await opened.close()


def question(**more: object) -> Search:
    return Search(embedder="e", vector=vector(), terms=(), top_k=10, **more)  # type: ignore[arg-type]


async def both(database: Database, indexes: Indexes, search: Search) -> tuple[list[str] | None, list[str]]:
    async with database.connection() as connection:
        near = await indexes.search(connection, "large", search)
        exact = await search_exactly(connection, "large", Fusion.DENSE, search)
    return (
        None if near is None else [chunk.turns[0].turn_id for chunk, _ in near],
        [chunk.turns[0].turn_id for chunk, _ in exact],
    )


async def test_only_large_spaces_get_an_index_and_it_finds_what_the_scan_finds(
    database: Database, indexes: Indexes
) -> None:
    await add(database, "large")
    await add(database, "small", 99)
    assert (await both(database, indexes, question()))[0] is None
    indexes.start()
    await wait_for(database, 1)
    found = [await both(database, indexes, question()) for _ in range(20)]
    assert all(near is not None for near, _ in found)
    shared = sum(len(set(near or ()) & set(exact)) for near, exact in found)
    assert shared >= 0.98 * 200


async def test_the_index_serves_the_statement_that_searches_it(database: Database, indexes: Indexes) -> None:
    await add(database, "large")
    indexes.start()
    await wait_for(database, 1)
    async with database.connection() as connection:
        # A space this small would be scanned, were it up to the planner.
        await connection.execute("SET enable_seqscan = off")
        await connection.execute("SET enable_bitmapscan = off")
        await connection.execute("SET enable_sort = off")
        before = await _scans(connection)
        assert await indexes.search(connection, "large", question()) is not None
        assert await _scans(connection) == before + 1
        await connection.execute("RESET ALL")


async def _scans(connection: object) -> int:
    await connection.execute("SELECT pg_stat_force_next_flush()")  # type: ignore[attr-defined]
    cursor = await connection.execute(  # type: ignore[attr-defined]
        "SELECT idx_scan FROM pg_stat_user_indexes WHERE relid = 'chunk'::regclass AND indexrelname LIKE 'chunk_hnsw%'"
    )
    return int((await cursor.fetchone())[0])


async def test_a_narrow_filter_falls_back_on_the_exact_scan(database: Database, indexes: Indexes) -> None:
    await add(database, "large")
    indexes.start()
    await wait_for(database, 1)
    wide = question(since=DAY + timedelta(days=20))
    near, exact = await both(database, indexes, wide)
    assert near is not None
    assert len(near) == len(exact) == 10
    narrow = question(since=DAY + timedelta(days=5), until=DAY + timedelta(days=8))
    near, exact = await both(database, indexes, narrow)
    assert near is None, "fewer than top_k pass: the exact scan decides"
    assert sorted(exact) == ["t5", "t6", "t7"]
    assert (await both(database, indexes, question(session_ids=("s1",))))[0] is None, "sessions are few chunks"


async def test_an_index_goes_with_its_space_and_a_broken_one_is_built_anew(
    database: Database, indexes: Indexes
) -> None:
    await add(database, "large")
    await add(database, "second", 150)
    indexes.start()
    await wait_for(database, 2)
    async with database.transaction() as connection:
        await erase.delete_space(connection, "large")
    indexes.drop("large")
    await wait_for(database, 1)
    async with database.connection() as connection:
        await connection.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = %s::regclass",
                                 [(await index_names(database))[0]])  # fmt: skip
    assert await index_names(database) == []
    later = Indexes(database, Ranking(fusion=Fusion.DENSE, index_from=100))
    later.start()
    await wait_for(database, 1)
    await later.close()
