"""What a system asks of either memory of MemOS's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from memdock.types import Component, Model, Query


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A memory as MemOS holds it. `group` marks the add that it came from; `score`: of a search that gives scores."""

    memory_id: str
    text: str
    group: str
    said_at: datetime | None
    score: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One add: `messages` with role, content and, where the time is known, chat_time; `said_at` of the first."""

    group: str
    session_id: str
    said_at: datetime | None
    messages: Sequence[Mapping[str, str]]


class Framework(Protocol):
    """One of MemOS's memories. Methods block, and may be called from several threads; a loss is an error."""

    models: tuple[Model, ...]
    config: Mapping[str, Any]
    scores: bool
    """Whether a search gives scores."""
    may_keep_nothing: bool
    """Whether an add may find nothing worth keeping."""

    def add(self, space: str, said: Said) -> list[str]:
        """Stores what is worth keeping; the ids, none where nothing is."""

    def search(self, space: str, query: Query) -> list[Stored]:
        """At most `query.top_k` memories that the query's filter lets through, best first."""

    def memories(self, space: str, groups: Sequence[str] | None = None) -> list[Stored]:
        """All memories of a space, or those of these groups."""

    def memory(self, space: str, memory_id: str) -> Stored | None:
        """One memory of a space; `None` where there is none, or it is another space's."""

    def erase(self, space: str, groups: Sequence[str]) -> None:
        """Erases the memories of these groups."""

    def clear(self, space: str) -> None:
        """Erases all memories of a space."""

    def left(self, space: str, memory_ids: Sequence[str]) -> Mapping[Component, int]:
        """How much of these memories there still is, by where."""

    def check(self) -> None:
        """Raises where the store cannot be used."""

    def close(self) -> None:
        """Closes the store."""
