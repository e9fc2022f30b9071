"""Between chunks and their rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
import orjson
from numpy.typing import NDArray

from memdock.types import Memory, Source, Turn
from memdock_pgvector.chunks import Chunk


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyChunk:
    """A chunk with all that its row needs. `vector`: float32, of unit length; `terms`: how often
    each term stands; empty in a system that does not rank by words."""

    chunk: Chunk
    vector: NDArray[np.float32]
    terms: Mapping[str, int]

    @property
    def term_total(self) -> int:
        """How many terms the chunk has, repeated ones counted each time."""
        return sum(self.terms.values())


def pack_turns(turns: Sequence[Turn]) -> bytes:
    """The column `turns`: times in RFC 3339."""
    columns = [
        {
            "turn_id": turn.turn_id,
            "role": turn.role,
            "name": turn.name,
            "text": turn.text,
            "time": turn.time,
        }
        for turn in turns
    ]
    return orjson.dumps(columns)


def read_chunk(chunk_id: UUID, session_id: str, turns: Sequence[Mapping[str, Any]]) -> Chunk:
    """The chunk of a row."""
    return Chunk(
        id=chunk_id,
        turns=tuple(
            Turn(
                turn_id=turn["turn_id"],
                session_id=session_id,
                role=turn["role"],
                name=turn["name"],
                text=turn["text"],
                time=None if turn["time"] is None else datetime.fromisoformat(turn["time"]),
            )
            for turn in turns
        ),
    )


def as_memory(chunk: Chunk, score: float | None = None) -> Memory:
    """The chunk as it is given back: its whole text, when it was said, and the turns that it was made from."""
    return Memory(
        memory_id=str(chunk.id),
        text=chunk.text,
        kind="turn",
        score=score,
        time=chunk.said_at,
        sources=tuple(Source(session_id=turn.session_id, turn_id=turn.turn_id) for turn in chunk.turns),
    )
