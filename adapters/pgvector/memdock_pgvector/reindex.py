"""Gives spaces the vectors of another embedder, one space at a time, while the system may go on serving.

The new vectors are gathered beside the old ones in short transactions, so that a run that was stopped goes on where it
was. When a space has them all they take the old ones' place in one transaction: no search ever sees a mixture.
"""

from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass

from psycopg import AsyncConnection

from memdock.errors import MemdockError
from memdock_embedder.backends import Embedder
from memdock_pgvector.database import Database
from memdock_pgvector.embedding import embed_passages
from memdock_pgvector.hnsw import drop_index
from memdock_pgvector.rows import read_chunk
from memdock_pgvector.store import SpaceRow

# Chunks are held against Forget while they are embedded: about a second with the bundled model.
_PAGE_CHUNKS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """`space`: its name as the store knows it. `done` of `total` chunks have their new vector."""

    space: str
    done: int
    total: int


async def reindex(
    database: Database, embedder: Embedder, *, reply_chars: int, spaces: Collection[str] = ()
) -> AsyncIterator[Progress]:
    """Works through all spaces (or `spaces`) that another embedder made; raises what the embedder raises."""
    for name, row in await _spaces_of_others(database, embedder, spaces):
        done = await _begin(database, embedder, row)
        while True:
            yield Progress(space=name, done=done, total=max(done, row.chunk_count))
            embedded = await _embed_page(database, embedder, row.id, reply_chars)
            done += embedded
            if not embedded and await _swap(database, embedder, row.id):
                break


async def _spaces_of_others(
    database: Database, embedder: Embedder, spaces: Collection[str]
) -> list[tuple[str, SpaceRow]]:
    async with database.connection() as connection:
        cursor = await connection.execute(
            "SELECT name, id, embedder, dimension, chunk_count FROM space"
            " WHERE (embedder, dimension) <> (%s, %s) AND (%s OR name = ANY(%s)) ORDER BY id",
            [embedder.model, embedder.dimension, not spaces, list(spaces)],
        )
        return [
            (name, SpaceRow(id=space_id, embedder=model, dimension=dimension, chunk_count=chunk_count))
            for name, space_id, model, dimension, chunk_count in await cursor.fetchall()
        ]


async def _begin(database: Database, embedder: Embedder, row: SpaceRow) -> int:
    """Drops what a run with yet another embedder has left; answers how many new vectors are there."""
    async with database.transaction() as connection:
        await connection.execute(
            "DELETE FROM new_vector WHERE space_id = %s AND embedder <> %s", [row.id, embedder.model]
        )
        cursor = await connection.execute("SELECT count(*) FROM new_vector WHERE space_id = %s", [row.id])
        found = await cursor.fetchone()
    return int(found[0]) if found else 0


async def _embed_page(database: Database, embedder: Embedder, space_id: int, reply_chars: int) -> int:
    """Embeds some chunks that have no new vector yet; answers how many."""
    async with database.transaction() as connection:
        cursor = await connection.execute(
            "SELECT id, session_id, turns FROM chunk c WHERE space_id = %s AND NOT EXISTS"
            " (SELECT FROM new_vector v WHERE v.space_id = c.space_id AND v.chunk_id = c.id)"
            " ORDER BY id LIMIT %s FOR KEY SHARE",
            [space_id, _PAGE_CHUNKS],
        )
        chunks = [read_chunk(*row) for row in await cursor.fetchall()]
        if not chunks:
            return 0
        vectors = await embed_passages(embedder, [chunk.embedded_text(reply_chars) for chunk in chunks])
        for chunk, vector in zip(chunks, vectors, strict=True):
            if isinstance(vector, MemdockError):
                raise vector
            await connection.execute(
                "INSERT INTO new_vector VALUES (%s, %s, %s, %s)", [space_id, chunk.id, embedder.model, vector]
            )
    return len(chunks)


async def _swap(database: Database, embedder: Embedder, space_id: int) -> bool:
    """Puts the new vectors in place; `False` where chunks came in meanwhile that have none."""
    async with database.transaction() as connection:
        await connection.execute("SELECT FROM space WHERE id = %s FOR UPDATE", [space_id])
        if await _lacking(connection, space_id):
            return False
        await drop_index(connection, space_id)
        await connection.execute(
            "UPDATE chunk c SET embedding = v.embedding FROM new_vector v"
            " WHERE c.space_id = %s AND v.space_id = c.space_id AND v.chunk_id = c.id",
            [space_id],
        )
        await connection.execute("DELETE FROM new_vector WHERE space_id = %s", [space_id])
        await connection.execute(
            "UPDATE space SET embedder = %s, dimension = %s WHERE id = %s",
            [embedder.model, embedder.dimension, space_id],
        )
    return True


async def _lacking(connection: AsyncConnection, space_id: int) -> bool:
    cursor = await connection.execute(
        "SELECT FROM chunk c WHERE space_id = %s AND NOT EXISTS"
        " (SELECT FROM new_vector v WHERE v.space_id = c.space_id AND v.chunk_id = c.id) LIMIT 1",
        [space_id],
    )
    return await cursor.fetchone() is not None
