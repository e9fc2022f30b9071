"""The narrow interface that a memory system satisfies; `memdock.server` gives it everything else.

The server promises the system: inside one space calls of `add`, `forget` and `reset` never overlap; they come in
acceptance order; `add` is never cancelled; text, ids and times have been checked; a feature that is not declared in
`info.features` is never asked for.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from memdock.types import (
    Erasure,
    Feature,
    Limits,
    Memory,
    Model,
    Query,
    Residue,
    Selection,
    Software,
    Support,
    Turn,
    TurnError,
    TurnState,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemInfo:
    """The facts that Describe tells. Features left out are UNSUPPORTED.

    `config` is what changes the system's answers (models, fusion, chunking, ...), without credentials: its digest pins
    what was measured.
    """

    name: str
    adapter: Software
    framework: Software
    features: Mapping[Feature, Support] = field(default_factory=dict)
    models: tuple[Model, ...] = ()
    limits: Limits = field(default_factory=Limits)
    config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one turn: SEARCHABLE, NO_MEMORY, or FAILED with its error."""

    state: TurnState
    memory_ids: tuple[str, ...] = ()
    error: TurnError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What `System.add` did: the outcomes of a prefix of its turns, in order.

    Turns beyond the prefix stay PENDING and come again together with their successors, or with `final` true; so a
    system that needs pairs or chunks holds no open buffer and a kill loses none. `write`, where given, is awaited by
    the ledger inside the transaction that settles the outcomes, with that transaction's connection: data and ledger
    commit together or not at all. A ledger that has no transaction to share passes `None`.
    """

    outcomes: Sequence[Outcome]
    write: Callable[[Any], Awaitable[None]] | None = None


class System(Protocol):
    """A memory system. Raise `memdock.errors.MemdockError` for what a caller should know; anything else is INTERNAL."""

    @property
    def info(self) -> SystemInfo:
        """Facts about the system; the same from start to end."""

    async def add(self, space: str, turns: Sequence[Turn], *, final: bool) -> Batch:
        """Takes turns of one space, oldest first, and answers for a prefix of them.

        `final`: nothing follows for now, so at least one turn must be answered; the rest comes again, `final` too. An
        exception fails the whole batch: each of its turns becomes FAILED. A turn whose earlier attempt failed or was
        cut short by a kill comes again after a `forget` of its id, where FEATURE_FORGET_TURNS is declared and the
        ledger does not share the system's transaction.
        """

    async def retrieve(self, space: str, query: Query) -> Sequence[Memory]:
        """The memories that fit, best first, at most `query.top_k`; empty for an unknown space."""

    async def forget(self, space: str, selection: Selection, *, dry_run: bool) -> Erasure:
        """Erases what is selected and what stood on it; repeatable. `session_ids` arrive as their `turn_ids` too.

        By memory: that memory, and the turns it was made from (named in `erased_turn_ids`); where FORGET_DRY_RUN is
        declared a dry run comes first, and what it told counts as erased should this process end in between; without
        one, the turns whose outcomes have named that memory. By turn:
        what stood on it is rebuilt without it, and turns that stay, whose memories are others since, are told in
        `changed`; ids that the system does not hold are no error. A `MemdockError` that may pass (UNAVAILABLE,
        RESOURCE_EXHAUSTED, DEADLINE_EXCEEDED, ABORTED) is tried again until it does; any other exception is told to the
        caller and ends the erasure.
        """

    async def reset(self, space: str) -> Sequence[Residue]:
        """Erases the whole space; repeatable, harmless for an unknown space. It is tried again until it succeeds."""


@runtime_checkable
class ListsMemories(Protocol):
    """A system with FEATURE_LIST_MEMORIES."""

    async def list_memories(self, space: str, *, after: str, limit: int) -> Sequence[Memory]:
        """At most `limit` memories in a fixed order, after the memory id `after` (empty: from the first)."""


@runtime_checkable
class HasLifecycle(Protocol):
    """A system that opens and closes something."""

    async def start(self) -> None:
        """Opens stores and models; raises to refuse the start."""

    async def close(self) -> None:
        """Closes them."""


@runtime_checkable
class HasReadiness(Protocol):
    """A system whose store may be away."""

    async def check_ready(self) -> None:
        """Returns when the system can serve; raises otherwise."""
