"""`MemosSystem`: a pair of turns is one add, and the memories that MemOS makes of it know their turns."""

import asyncio
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from typing import TypeVar
from zoneinfo import ZoneInfo

from memdock.adapter.framework_calls import FrameworkCalls, outcome_of
from memdock.adapter.native_ids import NativeIds, source_of
from memdock.adapter.pairs import add_groups, group_turns, halves_of
from memdock.errors import MemdockError
from memdock.system import Batch, SystemInfo
from memdock.types import (
    Component,
    Erasure,
    Feature,
    Memory,
    Query,
    Residue,
    Selection,
    Software,
    Support,
    Turn,
)
from memdock_memos.stored import Framework, Said, Stored

ResultT = TypeVar("ResultT")

_EMULATED = (
    Feature.FILTER_SESSIONS,
    Feature.FILTER_TIME,
    Feature.FORGET_TURNS,
    Feature.FORGET_SESSIONS,
    Feature.FORGET_DRY_RUN,
    Feature.LIST_MEMORIES,
    Feature.SOURCES,
    Feature.EVENT_TIME,
    Feature.TIME_ZONES,
    Feature.BUFFERING,
    Feature.USAGE,
)


class MemosSystem:
    """See `memdock.system.System`. `pairs`: a user's turn and its reply are one add, else each turn is."""

    def __init__(self, name: str, framework: Framework, ids: NativeIds, *, pairs: bool) -> None:
        self._memos = framework
        self._calls = FrameworkCalls("MemOS", store="PostgreSQL", store_packages=("psycopg2",))
        self._ids = ids
        self._pairs = pairs
        native = [Feature.FORGET_MEMORIES]
        native += [Feature.SCORES] if framework.scores else []
        native += [Feature.NO_MEMORY] if framework.may_keep_nothing else []
        self.info = SystemInfo(
            name=name,
            adapter=Software(name="memdock-memos", version=version("memdock-memos")),
            framework=Software(name="MemOS", version=version("MemoryOS")),
            features={**dict.fromkeys(native, Support.NATIVE), **dict.fromkeys(_EMULATED, Support.EMULATED)},
            models=framework.models,
            config={**framework.config, "unit": "pair" if pairs else "turn"},
        )

    async def add(self, space: str, turns: Sequence[Turn], *, final: bool) -> Batch:
        """One add a group of turns, in order; a group that fails leaves the others be."""
        groups = group_turns(turns, final=final) if self._pairs else [(place,) for place in range(len(turns))]
        return await add_groups(turns, groups, lambda group: outcome_of(self._remember(space, group, "extraction")))

    async def _remember(self, space: str, turns: Sequence[Turn], purpose: str) -> list[str]:
        """One add of MemOS's; nothing is left of one that fails."""
        group = uuid.uuid4().hex
        # Noted before, so that what a kill leaves behind is found when the turns come again.
        pair = turns if len(turns) > 1 else ()
        await asyncio.to_thread(self._ids.add, space, [group], [source_of(turn) for turn in turns], keep=pair)
        try:
            memory_ids = await self._ask(space, purpose, lambda: self._memos.add(space, _said(turns, group)))
        except MemdockError:
            await self._erase(space, [group])
            await asyncio.to_thread(self._ids.remove, space, [group])
            raise
        if not memory_ids:
            await asyncio.to_thread(self._ids.remove, space, [group])
        return memory_ids

    async def retrieve(self, space: str, query: Query) -> Sequence[Memory]:
        """MemOS's own search, without its threshold."""
        if not query.text.strip():
            return []
        return await self._memories(space, await self._ask(space, "query", lambda: self._memos.search(space, query)))

    async def list_memories(self, space: str, *, after: str, limit: int) -> Sequence[Memory]:
        """By id."""
        found = await self._calls.run(lambda: self._memos.memories(space))
        page = sorted((each for each in found if each.memory_id > after), key=lambda each: each.memory_id)[:limit]
        return await self._memories(space, page)

    async def forget(self, space: str, selection: Selection, *, dry_run: bool) -> Erasure:
        """Erases all memories of the adds in which the selected turns, or those of selected memories, had a part; the
        other half of a pair, where a turn was selected, is then added again alone.

        A failure, or a kill, leaves the pair noted until its half is added: the same Forget ends what it began.
        """
        not_found: list[str] = []
        halves: dict[str, list[Turn]] = {}
        if selection.memory_ids:
            held = {
                each: await self._calls.run(partial(self._memos.memory, space, each)) for each in selection.memory_ids
            }
            not_found = [each for each, memory in held.items() if memory is None]
            groups = [memory.group for memory in held.values() if memory is not None]
        else:
            groups = await asyncio.to_thread(self._ids.memories_of, space, selection.turn_ids)
            halves = await asyncio.to_thread(halves_of, self._ids, space, groups, set(selection.turn_ids))
        left = {turn.turn_id for turns in halves.values() for turn in turns}
        begun = await asyncio.to_thread(self._ids.memories_of, space, left)  # what a kill has left of adding them again
        groups = list(dict.fromkeys([*groups, *begun]))
        memories = await self._calls.run(lambda: self._memos.memories(space, groups))
        sources = await asyncio.to_thread(self._ids.sources_of, space, groups)
        turn_ids = dict.fromkeys(source.turn_id for found in sources.values() for source in found)
        gone = tuple(turn_id for turn_id in turn_ids if turn_id not in left)
        residual: tuple[Residue, ...] = ()
        if not dry_run:
            await asyncio.to_thread(self._ids.drop, space, gone)
            residual = await self._erase(space, groups)
            for group, turns in halves.items():
                if turns:
                    await self._remember(space, turns, "forgetting")
                    await asyncio.to_thread(self._ids.remove, space, [group])
            await asyncio.to_thread(self._ids.remove, space, groups)
        return Erasure(
            erased_memory_ids=tuple(each.memory_id for each in memories),
            erased_turn_ids=gone,
            not_found=tuple(not_found),
            residual=residual,
        )

    async def reset(self, space: str) -> Sequence[Residue]:
        """Erases all memories of the space."""
        memory_ids = [each.memory_id for each in await self._calls.run(lambda: self._memos.memories(space))]
        await self._calls.run(lambda: self._memos.clear(space))
        await asyncio.to_thread(self._ids.remove_space, space)
        return await self._residue(space, memory_ids)

    async def check_ready(self) -> None:
        """Raises STORE_UNREACHABLE while the store is away."""
        await self._calls.run(self._memos.check)

    async def _erase(self, space: str, groups: Sequence[str]) -> tuple[Residue, ...]:
        memory_ids = [each.memory_id for each in await self._calls.run(lambda: self._memos.memories(space, groups))]
        await self._calls.run(lambda: self._memos.erase(space, groups))
        return await self._residue(space, memory_ids)

    async def _residue(self, space: str, memory_ids: Sequence[str]) -> tuple[Residue, ...]:
        left = await self._calls.run(lambda: self._memos.left(space, memory_ids))
        return (
            *(Residue(component=component, items=items, verified=True) for component, items in left.items()),
            Residue(component=Component.LOG, items=0, verified=True, note="MemOS's log is not kept"),
        )

    async def _memories(self, space: str, found: Sequence[Stored]) -> list[Memory]:
        sources = await asyncio.to_thread(self._ids.sources_of, space, {each.group for each in found})
        return [
            Memory(
                memory_id=each.memory_id,
                text=each.text,
                kind="fact" if self._memos.may_keep_nothing else "turn",
                score=each.score,
                time=each.said_at,
                sources=sources.get(each.group, ()),
            )
            for each in found
        ]

    async def _ask(self, space: str, purpose: str, work: Callable[[], ResultT]) -> ResultT:
        return await self._calls.ask(space, purpose, asyncio.to_thread(work))


def _said(turns: Sequence[Turn], group: str) -> Said:
    said_at = next((turn.time for turn in turns if turn.time is not None), None)
    return Said(
        group=group, session_id=turns[0].session_id, said_at=said_at, messages=[_message(turn) for turn in turns]
    )


def _message(turn: Turn) -> dict[str, str]:
    """MemOS has no field for a speaker's name; its prompts show the time as it is given."""
    message = {"role": turn.role, "content": f"{turn.name}: {turn.text}" if turn.name else turn.text}
    return message if turn.time is None else {**message, "chat_time": _chat_time(turn.time, turn.time_zone)}


def _chat_time(time: datetime, zone: str) -> str:
    """Such as "Saturday 2019-05-04 10:30+00:00", on the clock of the zone."""
    try:
        local = time.astimezone(ZoneInfo(zone) if zone else UTC)
    except OverflowError:  # the first day of the year 1 has no day before it, the last one of 9999 none after
        local = time.astimezone(UTC)
    return f"{local:%A} {local.isoformat(sep=' ', timespec='minutes')}"
