"""MemOS's store on PostgreSQL, mended."""

import json
import threading
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import psycopg2
from memos.graph_dbs.postgres import PostgresGraphDB
from psycopg2.pool import ThreadedConnectionPool

from memdock.errors import MemdockError, error
from memdock_memos.framework.losses import lose
from memdock_memos.stored import Stored

_CONNECTIONS = 20

# MemOS's own, without its approximate index over the vectors of all users: it starves the search of one.
_SCHEMA = """
SELECT pg_advisory_xact_lock(hashtext('memos'));
CREATE EXTENSION IF NOT EXISTS vector;
CREATE SCHEMA IF NOT EXISTS memos;
CREATE TABLE IF NOT EXISTS memos.memories (
    id TEXT PRIMARY KEY, memory TEXT NOT NULL DEFAULT '', properties JSONB NOT NULL DEFAULT '{}',
    embedding vector(%s), user_name TEXT,
    created_at TIMESTAMPTZ DEFAULT now(), updated_at TIMESTAMPTZ DEFAULT now()
);
CREATE TABLE IF NOT EXISTS memos.edges (
    id SERIAL PRIMARY KEY, source_id TEXT NOT NULL, target_id TEXT NOT NULL, edge_type TEXT NOT NULL,
    created_at TIMESTAMPTZ DEFAULT now(), UNIQUE (source_id, target_id, edge_type)
);
CREATE INDEX IF NOT EXISTS idx_memories_user ON memos.memories (user_name);
CREATE INDEX IF NOT EXISTS idx_edges_target ON memos.edges (target_id);
"""
_MEMORIES = """
SELECT id, memory, properties->'info'->>'group', properties->'info'->>'said_at' FROM memos.memories
WHERE user_name = %(space)s
    AND (%(groups)s::text[] IS NULL OR properties->'info'->>'group' = ANY (%(groups)s::text[]))
    AND (%(ids)s::text[] IS NULL OR id = ANY (%(ids)s::text[]))
ORDER BY id
"""


class Store(PostgresGraphDB):  # type: ignore[misc]
    """`memos.memories` and `memos.edges` at a `postgresql://` address; `config` is MemOS's.

    Mended: a vector came back as text, so that searches failed and found nothing; a search took no notice of its
    filter; one thread more than there are connections failed, and now waits. That the database is away is
    STORE_UNREACHABLE, also where MemOS goes on without it.
    """

    def __init__(self, url: str, config: Any) -> None:
        self.config, self.schema, self.user_name = config, config.schema_name, config.user_name
        self._pool_closed = False
        try:
            self.pool = _Pool(1, _CONNECTIONS, url, connect_timeout=30)
        except psycopg2.Error as fault:
            raise unreachable(fault) from fault
        self._init_schema()

    def _init_schema(self) -> None:
        self._run(_SCHEMA, (self.config.embedding_dimension,))

    def _get_conn(self) -> Any:
        try:
            return super()._get_conn()
        except RuntimeError as fault:
            raise lose(unreachable(fault)) from fault

    def _parse_row(self, row: Any, include_embedding: bool = False) -> dict[str, Any]:
        parsed: dict[str, Any] = super()._parse_row(row, include_embedding)
        if isinstance(vector := parsed["metadata"].get("embedding"), str):
            parsed["metadata"]["embedding"] = json.loads(vector)
        return parsed

    def search_by_embedding(
        self,
        vector: Sequence[float],
        top_k: int = 5,
        scope: str | None = None,
        status: str | None = None,
        search_filter: dict[str, Any] | None = None,
        user_name: str | None = None,
        filter: dict[str, Any] | None = None,  # noqa: A002 - MemOS's own word
        **_: Any,
    ) -> list[dict[str, Any]]:
        """The nearest of a user's memories: ids with the cosine of the angle."""
        wanted = {"memory_type": scope, "status": status or "activated", **(search_filter or {})}
        tests, values = ["user_name = %s", "embedding IS NOT NULL"], [user_name or self.user_name]
        for name, value in wanted.items():
            if value is not None:
                tests.append("properties->>%s = %s")
                values += [name, str(value)]
        if filter and (more := self._build_filter_where_clause(filter, values)):
            tests.append(f"({more})")
        where = " AND ".join(tests)
        query = (
            f"SELECT id, 1 - (embedding <=> %s::vector) FROM memos.memories WHERE {where}"  # noqa: S608 - names in it are checked
            " ORDER BY embedding <=> %s::vector, id LIMIT %s"
        )
        near = list(vector)
        return [{"id": row[0], "score": row[1]} for row in self._run(query, (near, *values, near, top_k))]

    def memories(
        self, space: str, *, groups: Sequence[str] | None = None, ids: Sequence[str] | None = None
    ) -> list[Stored]:
        """All memories of a space, or those of these groups and with these ids, by id."""
        wanted = {
            "space": space,
            "groups": None if groups is None else list(groups),
            "ids": None if ids is None else list(ids),
        }
        return [
            Stored(memory_id=row[0], text=row[1], group=row[2] or "", said_at=row[3] and datetime.fromisoformat(row[3]))
            for row in self._run(_MEMORIES, wanted)
        ]

    def edges_of(self, ids: Sequence[str]) -> int:
        """How many edges hang on these memories."""
        query = "SELECT count(*) FROM memos.edges WHERE source_id = ANY (%(ids)s) OR target_id = ANY (%(ids)s)"
        return int(self._run(query, {"ids": list(ids)})[0][0])

    def check(self) -> None:
        """Raises STORE_UNREACHABLE while PostgreSQL is away."""
        self._run("SELECT 1", ())

    def _run(self, query: str, values: Any) -> list[tuple[Any, ...]]:
        connection = self._get_conn()
        try:
            with connection.cursor() as cursor:
                cursor.execute(query, values)
                return cursor.fetchall() if cursor.description else []
        finally:
            self._put_conn(connection)


class _Pool(ThreadedConnectionPool):  # type: ignore[misc]
    """A pool that lets a thread wait for a connection."""

    def __init__(self, least: int, most: int, *where: Any, **more: Any) -> None:
        self._free = threading.Semaphore(most)
        super().__init__(least, most, *where, **more)

    def getconn(self, key: Any = None) -> Any:
        self._free.acquire()
        try:
            return super().getconn(key)
        except BaseException:
            self._free.release()
            raise

    def putconn(self, conn: Any = None, key: Any = None, close: bool = False) -> None:
        try:
            super().putconn(conn, key, close)
        finally:
            self._free.release()


def unreachable(fault: Exception) -> MemdockError:
    """STORE_UNREACHABLE, without the words of the fault."""
    return error("STORE_UNREACHABLE", f"PostgreSQL cannot be used now ({type(fault).__name__}).")
