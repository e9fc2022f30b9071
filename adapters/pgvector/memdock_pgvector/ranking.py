"""The chunks that fit a query best: exact over all chunks of the space that pass the filter, in one statement.

Dense: the inner product of unit vectors, i.e. the cosine. Keyword: BM25 (Robertson and Zaragoza, "The Probabilistic
Relevance Framework: BM25 and Beyond", 2009; the idf with 1 added inside the logarithm, as in Lucene, so that it is
never negative), with the term statistics of the whole space. Hybrid: each of the two, normalised over the candidates
of the query (less their mean, over their standard deviation), and added; one in which all candidates are equal tells
nothing and is left out, and where both are (a lone memory) the score is 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, LiteralString

import numpy as np
from numpy.typing import NDArray
from psycopg import AsyncConnection

from memdock_pgvector.chunks import Chunk
from memdock_pgvector.rows import read_chunk
from memdock_pgvector.store import SpaceRow, check_embedder

# Lucene's defaults.
BM25_K1 = 1.2
BM25_B = 0.75


class Fusion(StrEnum):
    """Which scores rank the chunks."""

    DENSE = "dense"
    KEYWORD = "keyword"
    HYBRID = "hybrid"


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A query as the store sees it. `embedder` must be the one of the space; `terms` are those of the query."""

    embedder: str
    vector: NDArray[np.float32]
    terms: Sequence[str]
    top_k: int
    session_ids: Sequence[str] = ()
    since: datetime | None = None
    until: datetime | None = None

    def parameters(self) -> dict[str, Any]:
        """The parameters of the statements."""
        return {
            "embedder": self.embedder,
            "dimension": len(self.vector),
            "vector": self.vector,
            "terms": list(self.terms),
            "top_k": self.top_k,
            "session_ids": list(self.session_ids),
            "since": self.since,
            "until": self.until,
            "k1": BM25_K1,
            "b": BM25_B,
        }

    def conditions(self) -> LiteralString:
        """The filter, to follow a WHERE clause."""
        conditions: LiteralString = ""
        if self.session_ids:
            conditions += " AND session_id = ANY(%(session_ids)s)"
        if self.since is not None:
            conditions += " AND said_at >= %(since)s"
        if self.until is not None:
            conditions += " AND said_at < %(until)s"
        return conditions


_OF_SPACE: LiteralString = "space_id = s.id AND s.embedder = %(embedder)s AND s.dimension = %(dimension)s"

_DENSE: LiteralString = """
    SELECT id, -(embedding <#> %(vector)s) AS score FROM chunk WHERE {candidates}
    ORDER BY embedding <#> %(vector)s, id LIMIT %(top_k)s
"""

_KEYWORD_SCORES: LiteralString = """
    WITH asked AS MATERIALIZED (
        SELECT term, ln(1 + (s.chunk_count - chunk_count + 0.5) / (chunk_count + 0.5))::float8 * (%(k1)s + 1) AS weight
        FROM term WHERE space_id = s.id AND term = ANY(%(terms)s)
    ), scored AS (
        SELECT id, embedding, coalesce((
            SELECT sum(weight * times / (
                times + %(k1)s * (1 - %(b)s + %(b)s * term_total * s.chunk_count / s.term_total)
            ))
            FROM asked, LATERAL (SELECT (terms ->> term)::float8 AS times) AS t
        ), 0) AS keyword
        FROM chunk WHERE {candidates}
    )
"""

_KEYWORD: LiteralString = """
    {keyword_scores}
    SELECT id, keyword AS score FROM scored ORDER BY keyword DESC, id LIMIT %(top_k)s
"""

_HYBRID: LiteralString = """
    {keyword_scores}, candidate AS MATERIALIZED (
        SELECT id, -(embedding <#> %(vector)s) AS dense, keyword FROM scored
    ), normal AS (
        -- Not by stddev_pop <> 0: of equal numbers it is often not quite zero.
        SELECT id,
            CASE WHEN min(dense) OVER w < max(dense) OVER w
                THEN (dense - avg(dense) OVER w) / stddev_pop(dense) OVER w END AS dense,
            CASE WHEN min(keyword) OVER w < max(keyword) OVER w
                THEN (keyword - avg(keyword) OVER w) / stddev_pop(keyword) OVER w END AS keyword
        FROM candidate WINDOW w AS ()
    )
    SELECT id, coalesce(dense + keyword, dense, keyword, 1) AS score FROM normal ORDER BY score DESC, id LIMIT %(top_k)s
"""

_STATEMENT: LiteralString = """
    SELECT s.id, s.embedder, s.dimension, s.chunk_count, c.id, c.session_id, c.turns, r.score
    FROM space s LEFT JOIN LATERAL ({ranked}) r ON true LEFT JOIN chunk c ON c.space_id = s.id AND c.id = r.id
    WHERE s.name = %(space)s ORDER BY r.score DESC, c.id
"""

_RANKED: dict[Fusion, LiteralString] = {Fusion.DENSE: _DENSE, Fusion.KEYWORD: _KEYWORD, Fusion.HYBRID: _HYBRID}


def exact_statement(fusion: Fusion, search: Search) -> LiteralString:
    """The statement that `search_exactly` runs with `search.parameters()` and `space`."""
    ranked = _RANKED[fusion].replace("{keyword_scores}", _KEYWORD_SCORES)
    candidates = _OF_SPACE + search.conditions()
    return _STATEMENT.replace("{ranked}", ranked).replace("{candidates}", candidates)


async def search_exactly(
    connection: AsyncConnection, space: str, fusion: Fusion, search: Search
) -> list[tuple[Chunk, float]]:
    """Chunks with their scores, best first; none for an unknown space. EMBEDDER_MISMATCH as `check_embedder` says."""
    cursor = await connection.execute(
        exact_statement(fusion, search), search.parameters() | {"space": space}, prepare=True
    )
    rows = await cursor.fetchall()
    if rows:
        space_id, embedder, dimension, chunk_count = rows[0][:4]
        row = SpaceRow(id=space_id, embedder=embedder, dimension=dimension, chunk_count=chunk_count)
        check_embedder(row, search.embedder, len(search.vector))
    return [(read_chunk(*row[4:7]), row[7]) for row in rows if row[4] is not None]
