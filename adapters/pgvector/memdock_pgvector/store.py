"""The rows of a space: chunks with their vectors and terms, and the statistics of the terms.

Every function works on the connection that it is given, so that the caller decides what commits together.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain
from uuid import UUID

from psycopg import AsyncConnection

from memdock.errors import InternalError
from memdock_pgvector.chunks import Chunk
from memdock_pgvector.copying import copy_chunks
from memdock_pgvector.rows import ReadyChunk, read_chunk

# PostgreSQL plans and returns a list of this size in one go.
PAGE_CHUNKS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceRow:
    """A space that has been written to. `embedder` and `dimension` are those of all its vectors."""

    id: int
    embedder: str
    dimension: int
    chunk_count: int


async def find_space(connection: AsyncConnection, space: str) -> SpaceRow | None:
    """The row of a space; `None`: never written to since its last Reset."""
    cursor = await connection.execute(
        "SELECT id, embedder, dimension, chunk_count FROM space WHERE name = %s", [space], prepare=True
    )
    row = await cursor.fetchone()
    return SpaceRow(id=row[0], embedder=row[1], dimension=row[2], chunk_count=row[3]) if row else None


def check_embedder(row: SpaceRow | None, embedder: str, dimension: int) -> None:
    """Raises EMBEDDER_MISMATCH where the vectors of a space are another embedder's."""
    if row is not None and (row.embedder, row.dimension) != (embedder, dimension):
        raise InternalError(
            "EMBEDDER_MISMATCH",
            f"The vectors of this space were made by {row.embedder} ({row.dimension} dimensions), the system runs"
            f" {embedder} ({dimension}): go back to that one, or run `memdock-pgvector reindex`.",
        )


async def add_chunks(
    connection: AsyncConnection, space: str, ready: Sequence[ReadyChunk], *, embedder: str, dimension: int
) -> int:
    """Stores chunks and counts their terms; answers how many chunks the space has now.

    Raises EMBEDDER_MISMATCH as `check_embedder` does.
    """
    cursor = await connection.execute(
        "INSERT INTO space (name, embedder, dimension, chunk_count, term_total) VALUES (%s, %s, %s, %s, %s)"
        " ON CONFLICT (name) DO UPDATE SET chunk_count = space.chunk_count + excluded.chunk_count,"
        " term_total = space.term_total + excluded.term_total"
        " RETURNING id, embedder, dimension, chunk_count",
        [space, embedder, dimension, len(ready), sum(chunk.term_total for chunk in ready)],
    )
    row = await cursor.fetchone()
    assert row is not None
    stored = SpaceRow(id=row[0], embedder=row[1], dimension=row[2], chunk_count=row[3])
    check_embedder(stored, embedder, dimension)
    await _count_terms(connection, stored.id, ready)
    await copy_chunks(connection, stored.id, ready)
    return stored.chunk_count


async def _count_terms(connection: AsyncConnection, space_id: int, ready: Sequence[ReadyChunk]) -> None:
    counts = Counter(chain.from_iterable(chunk.terms for chunk in ready))
    if counts:
        terms = sorted(counts)
        await connection.execute(
            "INSERT INTO term SELECT %s, * FROM unnest(%s::text[], %s::int[])"
            " ON CONFLICT (space_id, term) DO UPDATE SET chunk_count = term.chunk_count + excluded.chunk_count",
            [space_id, terms, [counts[term] for term in terms]],
        )


async def chunks_by_id(connection: AsyncConnection, space: str, chunk_ids: Collection[UUID]) -> list[Chunk]:
    """Those of the chunks that the space holds, in the order of their ids."""
    return await _chunks(connection, "c.id = ANY(%s)", space, list(chunk_ids))


async def chunks_of_turns(connection: AsyncConnection, space: str, turn_ids: Collection[str]) -> list[Chunk]:
    """The chunks that stand on at least one of the turns."""
    standing = "EXISTS (SELECT FROM json_array_elements(c.turns) t WHERE t ->> 'turn_id' = ANY(%s))"
    return await _chunks(connection, standing, space, list(turn_ids))


async def page_of_chunks(connection: AsyncConnection, space: str, *, after: UUID | None, limit: int) -> list[Chunk]:
    """At most `limit` chunks in the order of their ids, after `after`."""
    return (await _chunks(connection, "c.id > %s", space, after or UUID(int=0), limit=limit))[:limit]


async def _chunks(
    connection: AsyncConnection, condition: str, space: str, value: object, limit: int | None = None
) -> list[Chunk]:
    cursor = await connection.execute(
        "SELECT c.id, c.session_id, c.turns FROM chunk c JOIN space s ON s.id = c.space_id"  # noqa: S608 - see above
        f" WHERE s.name = %s AND {condition} ORDER BY c.id LIMIT %s",
        [space, value, limit],
    )
    return [read_chunk(*row) for row in await cursor.fetchall()]
