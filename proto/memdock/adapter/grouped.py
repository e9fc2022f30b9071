"""`GroupedSystem`: what adapters share whose framework is given a pair of turns by one add.

Each add is a `group`, a name of ours that the framework keeps with its memories; which turns were in it is in the file
of native ids.
"""

import asyncio
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from memdock.adapter.framework_calls import FrameworkCalls, outcome_of
from memdock.adapter.native_ids import NativeIds, source_of
from memdock.adapter.pairs import Halves, add_groups, group_turns, halves_of
from memdock.errors import MemdockError
from memdock.system import Batch
from memdock.types import Erasure, Residue, Selection, Turn

ResultT = TypeVar("ResultT")


class GroupedSystem(ABC):
    """The part of `memdock.system.System` that adds and forgets. `pairs`: a user's turn and its reply are one add, else
    each turn is.
    """

    def __init__(self, calls: FrameworkCalls, ids: NativeIds, *, pairs: bool) -> None:
        self._calls = calls
        self._ids = ids
        self._pairs = pairs
        self._halves = Halves(ids, partial(self._remember, purpose="forgetting"), self._memories_of_turn)

    @abstractmethod
    def _store(self, space: str, turns: Sequence[Turn], group: str) -> list[str]:
        """The framework's add, which may block and asks models: the ids of the memories that it made."""

    @abstractmethod
    async def _memories_of(self, space: str, groups: Sequence[str]) -> list[str]:
        """The ids of all memories of these adds."""

    @abstractmethod
    async def _group_of(self, space: str, memory_id: str) -> str | None:
        """The add that a memory came from; `None` where the space has no such memory."""

    @abstractmethod
    async def _erase(self, space: str, groups: Sequence[str]) -> tuple[Residue, ...]:
        """Erases all memories of these adds, and looks for what is left."""

    async def add(self, space: str, turns: Sequence[Turn], *, final: bool) -> Batch:
        """One add a group of turns, in order; a group that fails leaves the others be."""
        groups = group_turns(turns, final=final) if self._pairs else [(place,) for place in range(len(turns))]
        return await add_groups(
            turns, groups, lambda group: outcome_of(self._remember(space, group, purpose="extraction"))
        )

    async def forget(self, space: str, selection: Selection, *, dry_run: bool) -> Erasure:
        """Erases all memories of the adds in which the selected turns, or those of selected memories, had a part; the
        other half of a pair, where a turn was selected, is then added again alone.

        A failure that may pass, or a kill, leaves the pair noted until its half is added: the same Forget ends what it
        began.
        """
        not_found: list[str] = []
        halves: dict[str, list[Turn]] = {}
        if selection.memory_ids:
            held = {each: await self._group_of(space, each) for each in selection.memory_ids}
            not_found = [each for each, group in held.items() if group is None]
            groups = [group for group in held.values() if group is not None]
        else:
            groups = await asyncio.to_thread(self._ids.memories_of, space, selection.turn_ids)
            halves = await asyncio.to_thread(halves_of, self._ids, space, groups, set(selection.turn_ids))
        left = {turn.turn_id for turns in halves.values() for turn in turns}
        begun = await asyncio.to_thread(self._ids.memories_of, space, left)  # what a kill has left of adding them again
        groups = list(dict.fromkeys([*groups, *begun]))
        memory_ids = await self._memories_of(space, groups)
        sources = await asyncio.to_thread(self._ids.sources_of, space, groups)
        turn_ids = dict.fromkeys(source.turn_id for found in sources.values() for source in found)
        gone = tuple(turn_id for turn_id in turn_ids if turn_id not in left)
        erasure = Erasure(erased_memory_ids=tuple(memory_ids), erased_turn_ids=gone, not_found=tuple(not_found))
        if dry_run:
            return erasure
        await asyncio.to_thread(self._ids.drop, space, {*gone, *selection.turn_ids})
        residual = await self._erase(space, groups)
        changed = await self._halves.store_anew(space, halves, groups, selection.turn_ids)
        return replace(erasure, residual=residual, changed=changed)

    async def _remember(self, space: str, turns: Sequence[Turn], *, purpose: str) -> list[str]:
        """One add of the framework's; nothing is left of one that fails."""
        group = uuid.uuid4().hex
        pair = turns if len(turns) > 1 else ()
        # Noted before, so that what a kill leaves behind is found when the turns come again.
        await asyncio.to_thread(self._ids.add, space, [group], [source_of(turn) for turn in turns], keep=pair)
        try:
            memory_ids = await self._ask(space, purpose, lambda: self._store(space, turns, group))
        except MemdockError:
            await self._erase(space, [group])
            await asyncio.to_thread(self._ids.remove, space, [group])
            raise
        if not memory_ids:
            await asyncio.to_thread(self._ids.remove, space, [group])
        return memory_ids

    async def _memories_of_turn(self, space: str, turn_id: str) -> list[str]:
        groups = await asyncio.to_thread(self._ids.memories_of, space, [turn_id])
        return await self._memories_of(space, groups)

    async def _ask(self, space: str, purpose: str, work: Callable[[], ResultT], *, check: bool = True) -> ResultT:
        return await self._calls.ask(space, purpose, asyncio.to_thread(work), check=check)
