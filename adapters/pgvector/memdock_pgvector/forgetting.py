"""What a Forget does to the chunks that it touches."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from uuid import UUID

from psycopg import AsyncConnection

from memdock.types import Erasure, Selection
from memdock_pgvector import store
from memdock_pgvector.chunks import Chunk


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`touched`: ids of the chunks that are selected or stand on what is. `survivors`: what is left of some of them,
    under the same ids. `turn_ids`: the turns that go. `not_found`: selected ids of which the space holds nothing."""

    touched: tuple[UUID, ...]
    survivors: tuple[Chunk, ...]
    turn_ids: tuple[str, ...]
    not_found: tuple[str, ...]

    @property
    def erased(self) -> tuple[UUID, ...]:
        """Ids of the chunks of which nothing is left."""
        left = {chunk.id for chunk in self.survivors}
        return tuple(chunk_id for chunk_id in self.touched if chunk_id not in left)

    @property
    def erasure(self) -> Erasure:
        """What goes, as the protocol says it."""
        return Erasure(
            erased_memory_ids=tuple(map(str, self.erased)), erased_turn_ids=self.turn_ids, not_found=self.not_found
        )


async def plan_forget(connection: AsyncConnection, space: str, selection: Selection) -> Plan:
    """Looks up what a selection means; changes nothing."""
    if selection.memory_ids:
        return await _plan_by_memory(connection, space, selection.memory_ids)
    chunks = await store.chunks_of_turns(connection, space, selection.turn_ids)
    wanted = set(selection.turn_ids)
    gone = tuple(turn.turn_id for chunk in chunks for turn in chunk.turns if turn.turn_id in wanted)
    left = [(chunk, tuple(turn for turn in chunk.turns if turn.turn_id not in wanted)) for chunk in chunks]
    return Plan(
        touched=tuple(chunk.id for chunk in chunks),
        survivors=tuple(Chunk(id=chunk.id, turns=turns) for chunk, turns in left if turns),
        turn_ids=gone,
        not_found=() if selection.session_ids else _without(selection.turn_ids, gone),
    )


async def _plan_by_memory(connection: AsyncConnection, space: str, memory_ids: Sequence[str]) -> Plan:
    named = {chunk_id for name in memory_ids if (chunk_id := chunk_id_of(name)) is not None}
    chunks = await store.chunks_by_id(connection, space, named)
    return Plan(
        touched=tuple(chunk.id for chunk in chunks),
        survivors=(),
        turn_ids=tuple(turn.turn_id for chunk in chunks for turn in chunk.turns),
        not_found=_without(memory_ids, [str(chunk.id) for chunk in chunks]),
    )


def chunk_id_of(memory_id: str) -> UUID | None:
    """The id in the one form in which it is given out; any other text names no memory."""
    try:
        chunk_id = UUID(memory_id)
    except ValueError:
        return None
    return chunk_id if str(chunk_id) == memory_id else None


def _without(ids: Sequence[str], held: Collection[str]) -> tuple[str, ...]:
    return tuple(one for one in dict.fromkeys(ids) if one not in set(held))
