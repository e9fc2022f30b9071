"""Memory systems with one fault each, of the kind that the suites on forgetting and on leaks look for."""

import asyncio
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from memdock.ledger import Admission
from memdock.sqlite_ledger import SqliteLedger
from memdock.system import Batch
from memdock.types import Component, Erasure, Feature, Memory, Query, Residue, Selection, Support, Turn
from support.toys import ALL_FEATURES, ToySystem, without


class ForgetsTheVectorOnly(ToySystem):
    """Has every turn a second time, in an index by words that Forget does not reach and that names no sources.

    With sources the server would hold such a memory back, for it knows which turns are FORGOTTEN.
    """

    def __init__(self, features: Mapping[Feature, Support] = ALL_FEATURES) -> None:
        super().__init__(features=features)
        self._words: dict[str, dict[str, Memory]] = {}

    async def add(self, space: str, turns: Sequence[Turn], *, final: bool) -> Batch:
        batch = await super().add(space, turns, final=final)
        memories = (kept.memory() for kept in self.kept[space])
        copies = [replace(memory, memory_id=f"w-{memory.memory_id}", sources=()) for memory in memories]
        self._words.setdefault(space, {}).update({copy.text: copy for copy in copies})
        return batch

    async def retrieve(self, space: str, query: Query) -> Sequence[Memory]:
        found = list(await super().retrieve(space, query))
        asked = set(query.text.lower().split())
        there = {memory.text for memory in found}
        again = [
            memory
            for text, memory in self._words.get(space, {}).items()
            if text not in there and asked & set(text.lower().split())
        ]
        return [*found, *again][: query.top_k]

    async def reset(self, space: str) -> Sequence[Residue]:
        self._words.pop(space, None)
        return await super().reset(space)


class ForgetsNothing(ToySystem):
    """Says that it has erased, and that it has looked; has done neither. Its memories name no sources."""

    def __init__(self) -> None:
        super().__init__(features=without(Feature.SOURCES))

    async def retrieve(self, space: str, query: Query) -> Sequence[Memory]:
        return [replace(memory, sources=()) for memory in await super().retrieve(space, query)]

    async def list_memories(self, space: str, *, after: str, limit: int) -> Sequence[Memory]:
        listed = await super().list_memories(space, after=after, limit=limit)
        return [replace(memory, sources=()) for memory in listed]

    async def forget(self, space: str, selection: Selection, *, dry_run: bool) -> Erasure:
        return await super().forget(space, selection, dry_run=True)


class ForgetsTheWholeSession(ToySystem):
    """Asked for a turn it takes all of its session, and says nothing of the others."""

    async def forget(self, space: str, selection: Selection, *, dry_run: bool) -> Erasure:
        erasure = await super().forget(space, selection, dry_run=dry_run)
        sessions = {turn_id.split("-")[0] for turn_id in erasure.erased_turn_ids}
        held = self.kept.get(space, [])
        self.kept[space] = [kept for kept in held if not sessions & {turn.session_id for turn in kept.turns}]
        return erasure


class LedgerWithoutTombstones(SqliteLedger):
    """Forgets that it has forgotten, so that a late retry is a turn like any other."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._file = path

    async def admit(self, space: str, turns: Sequence[Turn]) -> Admission:
        with sqlite3.connect(self._file) as connection:
            connection.execute("DELETE FROM turns WHERE space = ? AND state = 'FORGOTTEN'", (space,))
        connection.close()
        return await super().admit(space, turns)


class ShowsEverybody(ToySystem):
    """Looks through every space, the asker's first. `when`: only while this file is there."""

    def __init__(self, when: Path | None = None) -> None:
        super().__init__()
        self._when = when

    async def retrieve(self, space: str, query: Query) -> Sequence[Memory]:
        spaces = [space] if self._when is not None and not self._when.exists() else [space, *self.kept]
        return await _from_all(self, dict.fromkeys(spaces), query)


class RemembersTheLastCaller(ToySystem):
    """Keeps the space of a Retrieve in one place for all calls, across a moment of waiting."""

    async def retrieve(self, space: str, query: Query) -> Sequence[Memory]:
        self._space = space
        await asyncio.sleep(0.01)
        return await super().retrieve(self._space, query)


class AnswersFromOthersWhenEmpty(ToySystem):
    """A space that holds nothing falls back to all there is."""

    async def retrieve(self, space: str, query: Query) -> Sequence[Memory]:
        spaces = [space] if self.kept.get(space) else list(self.kept)
        return await _from_all(self, spaces, query)


class ResetsByPrefix(ToySystem):
    """Erases every space whose name begins with the one that is meant."""

    async def reset(self, space: str) -> Sequence[Residue]:
        for name in [name for name in self.kept if name.startswith(space)]:
            self.kept.pop(name)
        return (Residue(component=Component.VECTOR, verified=True),)


class FindsNothing(ToySystem):
    """Takes everything in and gives nothing back."""

    async def retrieve(self, space: str, query: Query) -> Sequence[Memory]:
        return []

    async def list_memories(self, space: str, *, after: str, limit: int) -> Sequence[Memory]:
        return []


async def _from_all(toy: ToySystem, spaces: Iterable[str], query: Query) -> Sequence[Memory]:
    """Without sources: the server takes a memory whose source the space does not know for a fault of the system."""
    found = [memory for space in spaces for memory in await ToySystem.retrieve(toy, space, query)]
    return [replace(memory, sources=()) for memory in found[: query.top_k]]
