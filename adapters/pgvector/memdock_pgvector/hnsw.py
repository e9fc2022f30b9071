"""An HNSW index for each space past a size, built beside the work, and the search by it.

One partial index a large space: its graph holds nothing of other spaces, so isolation costs no recall. The index is
made and dropped CONCURRENTLY, outside of any caller's transaction; until it is there, the exact scan answers.
"""

import asyncio
from dataclasses import dataclass
from typing import LiteralString

import structlog
from psycopg import AsyncConnection, sql

from memdock_pgvector.chunks import Chunk
from memdock_pgvector.database import Database, connect, store_errors, use_schema
from memdock_pgvector.ranking import Search
from memdock_pgvector.rows import read_chunk
from memdock_pgvector.settings import Ranking

_PREFIX = "chunk_hnsw_"
# pgvector's own defaults, by which the README's curve was measured.
_LINKS, _EF_CONSTRUCTION = 16, 64
# The graph is built in memory: 100,000 vectors of 384 dimensions need about 250 MB.
_BUILD_MEMORY = "512MB"
# pgvector indexes no more dimensions of a `vector` than this: larger spaces stay exact.
_MAX_DIMENSION = 2_000

_SETTLE_S = 1.0
_NEAREST: LiteralString = """
    SELECT id, session_id, turns, -distance FROM (
        SELECT id, session_id, turns, embedding::vector({dimension}) <#> %(vector)s AS distance FROM chunk
        WHERE space_id = {space_id} AND EXISTS (SELECT FROM space WHERE id = {space_id} AND embedder = %(embedder)s)
        {conditions}
        ORDER BY distance LIMIT %(top_k)s
    ) AS nearest ORDER BY distance, id
"""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedSpace:
    """A space with a finished index."""

    id: int
    embedder: str
    dimension: int


class Indexes:
    """Knows the indexed spaces, and builds what is missing in a task of its own."""

    def __init__(self, database: Database, ranking: Ranking) -> None:
        self._database = database
        self._ranking = ranking
        self._ready: dict[str, IndexedSpace] = {}
        self._wanted = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins with what an earlier process left."""
        self._wanted.set()
        self._task = asyncio.create_task(self._work())

    def grown(self, space: str, chunk_count: int) -> None:
        """Says how many chunks a space is about to have."""
        if chunk_count >= self._ranking.index_from and space not in self._ready:
            self._wanted.set()

    def drop(self, space: str) -> None:
        """Says that a space is no more."""
        if self._ready.pop(space, None) is not None:
            self._wanted.set()

    async def close(self) -> None:
        """Ends the work; an unfinished index is dropped and built anew at the next start."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def search(self, connection: AsyncConnection, space: str, search: Search) -> list[tuple[Chunk, float]] | None:
        """The nearest chunks by the index; `None`: look exactly.

        The index goes on until `top_k` of its chunks pass the filter, or it has seen as many as pgvector lets it
        (`hnsw.max_scan_tuples`, 20,000); where they are fewer then, the exact scan decides: no filter starves. Sessions
        are few chunks of a large space, so a filter by them goes there at once.
        """
        indexed = self._ready.get(space)
        if indexed is None or indexed.embedder != search.embedder or search.session_ids:
            return None
        # Literals: the planner must see that the partial index is the one.
        statement = sql.SQL(_NEAREST.replace("{conditions}", search.conditions())).format(
            dimension=sql.Literal(indexed.dimension), space_id=sql.Literal(indexed.id)
        )
        async with connection.transaction(), connection.pipeline():
            await connection.execute(f"SET LOCAL hnsw.ef_search = {self._ranking.ef_search}")
            await connection.execute("SET LOCAL hnsw.iterative_scan = relaxed_order")
            cursor = await connection.execute(statement, search.parameters())
            rows = await cursor.fetchall()
        if len(rows) < search.top_k:
            return None
        return [(read_chunk(*row[:3]), row[3]) for row in rows]

    async def _work(self) -> None:
        while True:
            await self._wanted.wait()
            # What made the space grow is committed by then.
            await asyncio.sleep(_SETTLE_S)
            self._wanted.clear()
            try:
                await self._converge()
            except Exception as error:  # noqa: BLE001 - the exact scan answers meanwhile
                _log.warning("index_not_built", kind=type(error).__name__)
                self._wanted.set()

    async def _converge(self) -> None:
        """Makes the indexes of this schema those that it should have."""
        async with self._database.connection() as connection:
            wanted = await _large_spaces(connection, self._ranking.index_from)
            valid, invalid = await _indexes(connection)
        self._ready = {name: space for name, space in wanted.items() if space.id in valid}
        ids = {space.id for space in wanted.values()}
        missing = [name for name, space in wanted.items() if space.id not in valid]
        stale = [*invalid, *(space_id for space_id in valid if space_id not in ids)]
        if not missing and not stale:
            return
        with store_errors():
            async with await connect(self._database.url) as connection:
                await use_schema(connection, self._database.schema)
                for space_id in stale:
                    index = sql.Identifier(f"{_PREFIX}{space_id}")
                    await connection.execute(sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(index))
                for name in missing:
                    await self._build(connection, name, wanted[name])

    async def _build(self, connection: AsyncConnection, name: str, space: IndexedSpace) -> None:
        await connection.execute(sql.SQL("SET maintenance_work_mem = {}").format(sql.Literal(_BUILD_MEMORY)))
        await connection.execute(build_statement(space.id, space.dimension))
        self._ready[name] = space
        _log.info("index_built", space_row=space.id)


def build_statement(space_id: int, dimension: int) -> sql.Composed:
    """Makes the index of one space."""
    return sql.SQL(
        "CREATE INDEX CONCURRENTLY {} ON chunk USING hnsw ((embedding::vector({})) vector_ip_ops)"
        " WITH (m = {}, ef_construction = {}) WHERE space_id = {}"
    ).format(sql.Identifier(f"{_PREFIX}{space_id}"), *map(sql.Literal, (dimension, _LINKS, _EF_CONSTRUCTION, space_id)))


async def drop_index(connection: AsyncConnection, space_id: int) -> None:
    """Drops the index of one space inside the caller's transaction, where there is one."""
    name = f"{_PREFIX}{space_id}"
    cursor = await connection.execute("SELECT to_regclass(quote_ident(%s)) IS NOT NULL", [name])
    # The statement would lock the whole table even if there were no index.
    if await cursor.fetchone() == (True,):
        await connection.execute(sql.SQL("DROP INDEX {}").format(sql.Identifier(name)))


async def _large_spaces(connection: AsyncConnection, index_from: int) -> dict[str, IndexedSpace]:
    cursor = await connection.execute(
        "SELECT name, id, embedder, dimension FROM space WHERE chunk_count >= %s AND dimension <= %s",
        [index_from, _MAX_DIMENSION],
    )
    return {
        name: IndexedSpace(id=space_id, embedder=embedder, dimension=dimension)
        for name, space_id, embedder, dimension in await cursor.fetchall()
    }


async def _indexes(connection: AsyncConnection) -> tuple[set[int], set[int]]:
    """Space ids of finished and of broken indexes."""
    cursor = await connection.execute(
        "SELECT substr(c.relname, %s)::bigint, i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid"
        " WHERE i.indrelid = 'chunk'::regclass AND starts_with(c.relname, %s)",
        [len(_PREFIX) + 1, _PREFIX],
    )
    found = await cursor.fetchall()
    return {one for one, valid in found if valid}, {one for one, valid in found if not valid}
