"""From turns to chunks: a chunk is a user turn and the reply that follows it in its session, or a lone turn."""

import secrets
import time
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from memdock.types import Turn
from memdock_pgvector.terms import count_terms


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """What is embedded, searched and given back as one memory: one or two turns of one session, in order."""

    id: UUID
    turns: tuple[Turn, ...]

    @property
    def session_id(self) -> str:
        """The session of all its turns."""
        return self.turns[0].session_id

    @property
    def said_at(self) -> datetime | None:
        """When its first turn with a time was said; `None`: unknown."""
        return next((turn.time for turn in self.turns if turn.time is not None), None)

    @property
    def text(self) -> str:
        """The whole of it: a line `speaker: text` a turn."""
        return "\n".join(_line(turn, turn.text) for turn in self.turns)

    @property
    def terms(self) -> Counter[str]:
        """The terms of the whole text."""
        return count_terms(self.text)

    def embedded_text(self, reply_chars: int) -> str:
        """What the vector is made of: all that users said, and the first `reply_chars` characters of other turns."""
        return "\n".join(
            _line(turn, turn.text if turn.role == "user" else turn.text[:reply_chars]) for turn in self.turns
        )


def speaker(turn: Turn) -> str:
    """The speaker's name, or the role where there is none."""
    return turn.name or turn.role


def _line(turn: Turn, said: str) -> str:
    """`speaker: said`, once: a text that begins with its speaker's name says it already."""
    begin = f"{speaker(turn)}: "
    return said if said.startswith(begin) else begin + said


def new_chunk_id() -> UUID:
    """A UUID of version 7 (RFC 9562): 60 bits of nanoseconds first, so that later ids are greater in one process."""
    global _last_ns
    _last_ns = max(_last_ns + 1, time.time_ns())
    ms, ns = divmod(_last_ns, 1_000_000)
    # 20 bits for the nanoseconds inside the millisecond: 12 in `rand_a`, 8 at the head of `rand_b`.
    high, low = ns >> 8, ns & 0xFF
    value = ms << 80 | 0x7 << 76 | high << 64 | 0b10 << 62 | low << 54 | secrets.randbits(54)
    return UUID(int=value)


_last_ns = 0
