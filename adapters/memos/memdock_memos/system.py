"""`MemosSystem`: a pair of turns is one add, and the memories that MemOS makes of it know their turns."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from zoneinfo import ZoneInfo

from memdock.adapter.framework_calls import FrameworkCalls
from memdock.adapter.grouped import GroupedSystem
from memdock.adapter.native_ids import NativeIds
from memdock.system import SystemInfo
from memdock.types import (
    Component,
    Feature,
    Memory,
    Query,
    Residue,
    Software,
    Support,
    Turn,
)
from memdock_memos.stored import Framework, Said, Stored

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


class MemosSystem(GroupedSystem):
    """See `memdock.system.System`. `pairs`: a user's turn and its reply are one add, else each turn is."""

    def __init__(self, name: str, framework: Framework, ids: NativeIds, *, pairs: bool) -> None:
        super().__init__(FrameworkCalls("MemOS", store="PostgreSQL", store_packages=("psycopg2",)), ids, pairs=pairs)
        self._memos = framework
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

    async def reset(self, space: str) -> Sequence[Residue]:
        """Erases all memories of the space."""
        memory_ids = [each.memory_id for each in await self._calls.run(lambda: self._memos.memories(space))]
        await self._calls.run(lambda: self._memos.clear(space))
        await asyncio.to_thread(self._ids.remove_space, space)
        return await self._residue(space, memory_ids)

    async def check_ready(self) -> None:
        """Raises STORE_UNREACHABLE while the store is away."""
        await self._calls.run(self._memos.check)

    def _store(self, space: str, turns: Sequence[Turn], group: str) -> list[str]:
        return self._memos.add(space, _said(turns, group))

    async def _memories_of(self, space: str, groups: Sequence[str]) -> list[str]:
        return [each.memory_id for each in await self._calls.run(lambda: self._memos.memories(space, groups))]

    async def _group_of(self, space: str, memory_id: str) -> str | None:
        memory = await self._calls.run(lambda: self._memos.memory(space, memory_id))
        return None if memory is None else memory.group

    async def _erase(self, space: str, groups: Sequence[str]) -> tuple[Residue, ...]:
        memory_ids = await self._memories_of(space, groups)
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
