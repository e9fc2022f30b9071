"""Taking chunks out of a space, and looking afterwards whether anything of them is left."""

from collections.abc import Collection, Sequence
from uuid import UUID

from psycopg import AsyncConnection

from memdock.types import Component, Residue

_KEPT_BY_POSTGRESQL = "PostgreSQL's files keep bytes of erased rows until vacuum and the recycling of its log"


async def delete_chunks(connection: AsyncConnection, space: str, chunk_ids: Collection[UUID]) -> list[str]:
    """Deletes chunks with their vectors, and takes their terms off the statistics; answers those terms."""
    # The space first, as everybody does who writes to it: then nobody waits in a circle.
    await connection.execute("SELECT FROM space WHERE name = %s FOR UPDATE", [space])
    cursor = await connection.execute(
        """
        WITH gone AS (
            DELETE FROM chunk c USING space s WHERE s.name = %(space)s AND c.space_id = s.id AND c.id = ANY(%(ids)s)
            RETURNING c.space_id, c.terms, c.term_total
        ), less AS (
            UPDATE space s SET chunk_count = chunk_count - g.chunks, term_total = s.term_total - g.terms
            FROM (SELECT space_id, count(*) AS chunks, sum(term_total) AS terms FROM gone GROUP BY space_id) g
            WHERE s.id = g.space_id
        ), counted AS (
            SELECT space_id, key AS term, count(*) AS chunks
            FROM gone, jsonb_object_keys(terms) AS key GROUP BY space_id, key ORDER BY key
        )
        UPDATE term t SET chunk_count = t.chunk_count - c.chunks FROM counted c
        WHERE t.space_id = c.space_id AND t.term = c.term
        RETURNING t.term
        """,
        {"space": space, "ids": list(chunk_ids)},
    )
    terms = [term for (term,) in await cursor.fetchall()]
    await connection.execute(
        "DELETE FROM term t USING space s WHERE s.name = %s AND t.space_id = s.id AND t.term = ANY(%s)"
        " AND t.chunk_count <= 0",
        [space, terms],
    )
    return terms


async def delete_space(connection: AsyncConnection, space: str) -> None:
    """Deletes all rows of a space; harmless for an unknown one."""
    await connection.execute(
        """
        WITH gone AS (DELETE FROM space WHERE name = %s RETURNING id),
            terms AS (DELETE FROM term t USING gone g WHERE t.space_id = g.id)
        DELETE FROM chunk c USING gone g WHERE c.space_id = g.id
        """,
        [space],
    )


async def residue_of_chunks(
    connection: AsyncConnection, space: str, *, chunk_ids: Collection[UUID], turn_ids: Collection[str], terms: list[str]
) -> Sequence[Residue]:
    """What a search finds of erased chunks (`chunk_ids`), turns, and words (`terms`) that no chunk accounts for."""
    cursor = await connection.execute(
        """
        WITH s AS (SELECT id FROM space WHERE name = %(space)s),
        kept AS (SELECT c.id, c.turns, c.terms FROM chunk c JOIN s ON c.space_id = s.id),
        standing AS (
            SELECT key AS term, count(*) AS chunks FROM kept, jsonb_object_keys(kept.terms) AS key
            WHERE key = ANY(%(terms)s) GROUP BY key
        )
        SELECT
            (SELECT count(*) FROM kept WHERE id = ANY(%(ids)s))
            + (SELECT count(*) FROM new_vector v JOIN s ON v.space_id = s.id WHERE v.chunk_id = ANY(%(ids)s)),
            (SELECT count(*) FROM term t JOIN s ON t.space_id = s.id LEFT JOIN standing USING (term)
             WHERE t.term = ANY(%(terms)s) AND t.chunk_count <> coalesce(standing.chunks, 0)),
            (SELECT count(*) FROM kept, json_array_elements(kept.turns) AS turn
             WHERE turn ->> 'turn_id' = ANY(%(turns)s))
        """,
        {"space": space, "ids": list(chunk_ids), "turns": list(turn_ids), "terms": terms},
    )
    return _residue(await cursor.fetchone())


async def residue_of_space(connection: AsyncConnection, space_id: int | None) -> Sequence[Residue]:
    """What a search finds of a space that was reset; `None`: it had never been written to."""
    cursor = await connection.execute(
        """
        SELECT (SELECT count(*) FROM chunk WHERE space_id = %(id)s)
            + (SELECT count(*) FROM new_vector WHERE space_id = %(id)s),
            (SELECT count(*) FROM term WHERE space_id = %(id)s),
            (SELECT count(*) FROM chunk, json_array_elements(turns) WHERE space_id = %(id)s)
        """,
        {"id": space_id},
    )
    return _residue(await cursor.fetchone())


def _residue(found: tuple[int, int, int] | None) -> Sequence[Residue]:
    assert found is not None
    components = (Component.VECTOR, Component.KEYWORD, Component.RAW_TURNS)
    return [
        Residue(component=component, items=items, verified=True, note=_KEPT_BY_POSTGRESQL)
        for component, items in zip(components, found, strict=True)
    ]
