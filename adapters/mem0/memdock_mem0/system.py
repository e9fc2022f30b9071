"""`Mem0System`: a pair of turns is one add, and the memories that mem0 makes of it know their turns."""

import asyncio
import uuid
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from importlib.metadata import version
from typing import Any

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
    Source,
    Support,
    Turn,
)
from memdock_mem0.framework import Mem0, Record

_NATIVE = (Feature.FORGET_MEMORIES, Feature.SCORES, Feature.NO_MEMORY)
_EMULATED = (
    Feature.FILTER_SESSIONS,
    Feature.FILTER_TIME,
    Feature.FORGET_TURNS,
    Feature.FORGET_SESSIONS,
    Feature.FORGET_DRY_RUN,
    Feature.LIST_MEMORIES,
    Feature.SOURCES,
    Feature.EVENT_TIME,
    Feature.BUFFERING,
    Feature.USAGE,
)


class Mem0System(GroupedSystem):
    """See `memdock.system.System`. `pairs`: a user's turn and its reply are one add, else each turn is."""

    def __init__(self, name: str, framework: Mem0, ids: NativeIds, *, pairs: bool) -> None:
        calls = FrameworkCalls("mem0", store="PostgreSQL", store_packages=("psycopg", "psycopg_pool"))
        super().__init__(calls, ids, pairs=pairs)
        self._mem0 = framework
        self.info = SystemInfo(
            name=name,
            adapter=Software(name="memdock-mem0", version=version("memdock-mem0")),
            framework=Software(name="mem0", version=version("mem0ai")),
            features={**dict.fromkeys(_NATIVE, Support.NATIVE), **dict.fromkeys(_EMULATED, Support.EMULATED)},
            models=framework.models,
            config={"store": "pgvector", "unit": "pair" if pairs else "turn", "threshold": 0.0},
        )

    async def retrieve(self, space: str, query: Query) -> Sequence[Memory]:
        """mem0's own search, without its threshold."""
        if not query.text.strip():
            return []
        found = await self._ask(
            space, "query", lambda: self._mem0.search(space, query.text, _filters(query), k=query.top_k)
        )
        return await self._memories(
            space, [{**each, **(each.get("metadata") or {}), "data": each["memory"]} for each in found]
        )

    async def list_memories(self, space: str, *, after: str, limit: int) -> Sequence[Memory]:
        """By id."""
        found = await self._calls.run(lambda: self._mem0.memories(space))
        page = sorted((each for each in found if each["id"] > after), key=lambda each: str(each["id"]))[:limit]
        return await self._memories(space, page)

    async def reset(self, space: str) -> Sequence[Residue]:
        """Erases all memories, names, history and messages of the space."""
        memory_ids = [str(each["id"]) for each in await self._calls.run(lambda: self._mem0.memories(space))]
        await self._calls.run(lambda: self._mem0.erase(space, memory_ids))
        await self._calls.run(lambda: self._mem0.erase_entities(space))
        await asyncio.to_thread(self._ids.remove_space, space)
        return await self._residue(space, memory_ids)

    async def check_ready(self) -> None:
        """Raises STORE_UNREACHABLE while PostgreSQL is away."""
        await self._calls.run(lambda: self._mem0.memory("", str(uuid.UUID(int=0))))

    def _store(self, space: str, turns: Sequence[Turn], group: str) -> list[str]:
        return self._mem0.add(space, _messages(turns), _metadata(turns, group), prompt=_prompt(turns))

    async def _memories_of(self, space: str, groups: Sequence[str]) -> list[str]:
        found = [await self._calls.run(partial(self._mem0.memories, space, group=group)) for group in groups]
        return [str(record["id"]) for records in found for record in records]

    async def _group_of(self, space: str, memory_id: str) -> str | None:
        record = await self._calls.run(partial(self._mem0.memory, space, memory_id))
        return None if record is None else str(record["group"])

    async def _erase(self, space: str, groups: Sequence[str]) -> tuple[Residue, ...]:
        memory_ids = await self._memories_of(space, groups)
        # Names that other memories share are embedded anew.
        await self._ask(space, "forgetting", lambda: self._mem0.erase(space, memory_ids), check=False)
        return await self._residue(space, memory_ids)

    async def _residue(self, space: str, memory_ids: Sequence[str]) -> tuple[Residue, ...]:
        gone = set(memory_ids)
        vectors = sum(str(each["id"]) in gone for each in await self._calls.run(lambda: self._mem0.memories(space)))
        names = sum(
            bool(gone & set(each["linked_memory_ids"]))
            for each in await self._calls.run(lambda: self._mem0.entities(space))
        )
        history = await self._calls.run(lambda: self._mem0.left_in_history(space, memory_ids))
        return (
            Residue(component=Component.VECTOR, items=vectors, verified=True),
            Residue(component=Component.GRAPH, items=names, verified=True, note="names that mem0 links memories by"),
            Residue(component=Component.HISTORY, items=history, verified=True),
        )

    async def _memories(self, space: str, records: Sequence[Record]) -> list[Memory]:
        sources = await asyncio.to_thread(self._ids.sources_of, space, {str(each["group"]) for each in records})
        return [_memory(each, sources.get(str(each["group"]), ())) for each in records]


def _messages(turns: Sequence[Turn]) -> list[Record]:
    return [{"role": turn.role, "content": turn.text, **({"name": turn.name} if turn.name else {})} for turn in turns]


def _metadata(turns: Sequence[Turn], group: str) -> Record:
    """`created_at` is what mem0 gives back as a memory's time; without one it would put in the time of day."""
    said = _said_at(turns)
    times: Record = (
        {"timed": False} if said is None else {"timed": True, "created_at": said.isoformat(), "at": said.timestamp()}
    )
    return {"group": group, "session_id": turns[0].session_id, **times}


def _prompt(turns: Sequence[Turn]) -> str:
    """What mem0's extraction is told of the time, which it takes for today otherwise."""
    said = _said_at(turns)
    if said is None:
        return "It is not known when this was said: resolve no relative date, and name no date of today."
    return f"This was said at {said.isoformat()}, a {said:%A}. Take that for today, and resolve relative dates by it."


def _said_at(turns: Sequence[Turn]) -> datetime | None:
    return next((turn.time for turn in turns if turn.time is not None), None)


def _filters(query: Query) -> Record:
    found: Record = {}
    if query.session_ids:
        found["session_id"] = {"in": list(query.session_ids)}
    bounds = {"gte": query.since, "lt": query.until}
    if times := {word: moment.timestamp() for word, moment in bounds.items() if moment is not None}:
        found["at"] = times
    return found


def _memory(record: Record, sources: tuple[Source, ...]) -> Memory:
    score: Any = record.get("score")
    return Memory(
        memory_id=str(record["id"]),
        text=str(record["data"]),
        kind="fact",
        score=None if score is None else float(score),
        time=datetime.fromisoformat(record["created_at"]) if record.get("timed") else None,
        sources=sources,
    )
