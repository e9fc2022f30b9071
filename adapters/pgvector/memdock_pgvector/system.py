"""`RagSystem`: retrieval over chunks in PostgreSQL, as a memory system of the protocol."""

from collections.abc import Sequence
from dataclasses import replace

from psycopg import AsyncConnection

from memdock import usage
from memdock.adapter.pairs import group_turns
from memdock.errors import InvalidArgumentError, MemdockError
from memdock.system import Batch, Outcome, SystemInfo
from memdock.types import Component, Erasure, Memory, Query, Residue, Selection, Turn, TurnError, TurnState
from memdock_embedder.backends import Embedder
from memdock_pgvector import erase, store
from memdock_pgvector.chunks import Chunk, new_chunk_id
from memdock_pgvector.database import Database
from memdock_pgvector.embedding import embed_passages, embed_query
from memdock_pgvector.forgetting import chunk_id_of, plan_forget
from memdock_pgvector.hnsw import Indexes
from memdock_pgvector.ranking import Fusion, Search, search_exactly
from memdock_pgvector.rows import ReadyChunk, as_memory
from memdock_pgvector.settings import Ranking
from memdock_pgvector.terms import count_terms


class RagSystem:
    """See `memdock.system.System`. `cached`: the embedder keeps vectors in a file, which an erasure does not reach."""

    def __init__(
        self, info: SystemInfo, database: Database, embedder: Embedder, ranking: Ranking, *, cached: bool = False
    ) -> None:
        self.info = info
        self._database = database
        self._embedder = embedder
        self._ranking = ranking
        self._cached = cached
        self._indexes = Indexes(database, ranking)

    async def start(self) -> None:
        """Goes on with indexes that an earlier process began."""
        if self._ranking.fusion is Fusion.DENSE:
            self._indexes.start()

    async def close(self) -> None:
        """Ends all work; the database and the embedder are the caller's."""
        await self._indexes.close()

    async def check_ready(self) -> None:
        """Raises STORE_UNREACHABLE while PostgreSQL is away."""
        await self._database.check_ready()

    async def add(self, space: str, turns: Sequence[Turn], *, final: bool) -> Batch:
        """Embeds the chunks that are complete; the ledger's transaction stores them."""
        groups = group_turns(turns, final=final)
        chunks = [Chunk(id=new_chunk_id(), turns=tuple(turns[place] for place in group)) for group in groups]
        answers = await self._prepare(chunks)
        outcomes = {
            place: _outcome(chunk, answer)
            for group, chunk, answer in zip(groups, chunks, answers, strict=True)
            for place in group
        }
        ready = [answer for answer in answers if isinstance(answer, ReadyChunk)]

        async def write(connection: AsyncConnection) -> None:
            self._indexes.grown(space, await self._store(connection, space, ready))

        return Batch(outcomes=[outcomes[place] for place in range(len(outcomes))], write=write if ready else None)

    async def retrieve(self, space: str, query: Query) -> Sequence[Memory]:
        """Exact over the space, or by its HNSW index where it has one."""
        search = Search(
            embedder=self._embedder.model,
            vector=await embed_query(self._embedder, query.text),
            terms=list(count_terms(query.text)),
            top_k=query.top_k,
            session_ids=query.session_ids,
            since=query.since,
            until=query.until,
        )
        with usage.stage("store"):
            async with self._database.connection() as connection:
                found = None
                if self._ranking.fusion is Fusion.DENSE:
                    found = await self._indexes.search(connection, space, search)
                if found is None:
                    found = await search_exactly(connection, space, self._ranking.fusion, search)
        return [as_memory(chunk, score) for chunk, score in found]

    async def list_memories(self, space: str, *, after: str, limit: int) -> Sequence[Memory]:
        """In acceptance order."""
        last = chunk_id_of(after)
        if after and last is None:
            raise InvalidArgumentError("BAD_PAGE_TOKEN", "page_token is not of this list: begin at the first page")
        async with self._database.connection() as connection:
            chunks = await store.page_of_chunks(connection, space, after=last, limit=limit)
        return [as_memory(chunk) for chunk in chunks]

    async def forget(self, space: str, selection: Selection, *, dry_run: bool) -> Erasure:
        """Deletes chunks; those of which a turn survives are stored anew under the same memory id."""
        with usage.stage("store"):
            async with self._database.connection() as connection:
                plan = await plan_forget(connection, space, selection)
        if dry_run:
            return plan.erasure
        rebuilt = [_ready(answer) for answer in await self._prepare(plan.survivors)]
        with usage.stage("store"):
            async with self._database.transaction() as connection:
                terms = await erase.delete_chunks(connection, space, plan.touched)
                if rebuilt:
                    await self._store(connection, space, rebuilt)
                residual = await erase.residue_of_chunks(
                    connection, space, chunk_ids=plan.erased, turn_ids=plan.turn_ids, terms=terms
                )
        return replace(plan.erasure, residual=self._components(residual, cached=len(plan.touched)))

    async def reset(self, space: str) -> Sequence[Residue]:
        """Deletes all rows of the space, and looks for them afterwards."""
        with usage.stage("store"):
            async with self._database.transaction() as connection:
                row = await store.find_space(connection, space)
                await erase.delete_space(connection, space)
                residual = await erase.residue_of_space(connection, row.id if row else None)
        self._indexes.drop(space)
        return self._components(residual, cached=row.chunk_count if row else 0)

    async def _prepare(self, chunks: Sequence[Chunk]) -> list[ReadyChunk | MemdockError]:
        texts = [chunk.embedded_text(self._ranking.reply_chars) for chunk in chunks]
        answers = await embed_passages(self._embedder, texts) if texts else []
        return [
            answer
            if isinstance(answer, MemdockError)
            else ReadyChunk(chunk=chunk, vector=answer, terms=chunk.terms if self._ranking.keeps_terms else {})
            for chunk, answer in zip(chunks, answers, strict=True)
        ]

    async def _store(self, connection: AsyncConnection, space: str, ready: Sequence[ReadyChunk]) -> int:
        """Answers how many chunks the space has now."""
        return await store.add_chunks(
            connection, space, ready, embedder=self._embedder.model, dimension=self._embedder.dimension
        )

    def _components(self, residual: Sequence[Residue], *, cached: int) -> tuple[Residue, ...]:
        kept = [one for one in residual if self._ranking.keeps_terms or one.component is not Component.KEYWORD]
        if self._cached:
            note = "the embedding cache holds vectors by a hash of their text, and no text; delete its file"
            kept.append(Residue(component=Component.CACHE, items=cached, verified=False, note=note))
        return tuple(kept)


def _outcome(chunk: Chunk, answer: ReadyChunk | MemdockError) -> Outcome:
    if isinstance(answer, ReadyChunk):
        return Outcome(state=TurnState.SEARCHABLE, memory_ids=(str(chunk.id),))
    error = TurnError(reason=answer.reason, message=answer.message, retryable=True)
    return Outcome(state=TurnState.FAILED, error=error)


def _ready(answer: ReadyChunk | MemdockError) -> ReadyChunk:
    if isinstance(answer, MemdockError):
        raise answer
    return answer
