"""`Mem0System`: a pair of turns is one add, and the memories that mem0 makes of it know their turns."""

import asyncio
import uuid
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from importlib.metadata import version
from typing import Any, TypeVar

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
    Source,
    Support,
    Turn,
)
from memdock_mem0.framework import Mem0, Record

ResultT = TypeVar("ResultT")

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


class Mem0System:
    """See `memdock.system.System`. `pairs`: a user's turn and its reply are one add, else each turn is."""

    def __init__(self, name: str, framework: Mem0, ids: NativeIds, *, pairs: bool) -> None:
        self._mem0 = framework
        self._calls = FrameworkCalls("mem0", store="PostgreSQL", store_packages=("psycopg", "psycopg_pool"))
        self._ids = ids
        self._pairs = pairs
        self.info = SystemInfo(
            name=name,
            adapter=Software(name="memdock-mem0", version=version("memdock-mem0")),
            framework=Software(name="mem0", version=version("mem0ai")),
            features={**dict.fromkeys(_NATIVE, Support.NATIVE), **dict.fromkeys(_EMULATED, Support.EMULATED)},
            models=framework.models,
            config={"store": "pgvector", "unit": "pair" if pairs else "turn", "threshold": 0.0},
        )

    async def add(self, space: str, turns: Sequence[Turn], *, final: bool) -> Batch:
        """One add a group of turns, in order; a group that fails leaves the others be."""
        groups = group_turns(turns, final=final) if self._pairs else [(place,) for place in range(len(turns))]
        return await add_groups(turns, groups, lambda group: outcome_of(self._remember(space, group, "extraction")))

    async def _remember(self, space: str, turns: Sequence[Turn], purpose: str) -> list[str]:
        """One add of mem0's; nothing is left of one that fails."""
        group = uuid.uuid4().hex
        pair = turns if len(turns) > 1 else ()
        # Noted before, so that what a kill leaves behind is found when the turns come again.
        await asyncio.to_thread(self._ids.add, space, [group], [source_of(turn) for turn in turns], keep=pair)
        try:
            memory_ids = await self._ask(
                space,
                purpose,
                lambda: self._mem0.add(space, _messages(turns), _metadata(turns, group), prompt=_prompt(turns)),
            )
        except MemdockError:
            await self._erase(space, [group])
            await asyncio.to_thread(self._ids.remove, space, [group])
            raise
        if not memory_ids:
            await asyncio.to_thread(self._ids.remove, space, [group])
        return memory_ids

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

    async def forget(self, space: str, selection: Selection, *, dry_run: bool) -> Erasure:
        """Erases all memories of the adds in which the selected turns, or those of selected memories, had a part; the
        other half of a pair, where a turn was selected, is then added again alone.

        A failure, or a kill, leaves the pair noted until its half is added: the same Forget ends what it began.
        """
        not_found: list[str] = []
        if selection.memory_ids:
            held = {
                each: await self._calls.run(partial(self._mem0.memory, space, each)) for each in selection.memory_ids
            }
            not_found = [each for each, record in held.items() if record is None]
            groups = list(dict.fromkeys(str(record["group"]) for record in held.values() if record is not None))
            halves: dict[str, list[Turn]] = {}
        else:
            groups = await asyncio.to_thread(self._ids.memories_of, space, selection.turn_ids)
            halves = await asyncio.to_thread(halves_of, self._ids, space, groups, set(selection.turn_ids))
        left = {turn.turn_id for turns in halves.values() for turn in turns}
        begun = await asyncio.to_thread(self._ids.memories_of, space, left)  # what a kill has left of adding them again
        groups = list(dict.fromkeys([*groups, *begun]))
        memory_ids = [str(each["id"]) for each in await self._of(space, groups)]
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
            erased_memory_ids=tuple(memory_ids),
            erased_turn_ids=gone,
            not_found=tuple(not_found),
            residual=residual,
        )

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

    async def _of(self, space: str, groups: Sequence[str]) -> list[Record]:
        found = [await self._calls.run(partial(self._mem0.memories, space, group=group)) for group in groups]
        return [record for records in found for record in records]

    async def _erase(self, space: str, groups: Sequence[str]) -> tuple[Residue, ...]:
        memory_ids = [str(each["id"]) for each in await self._of(space, groups)]
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

    async def _ask(self, space: str, purpose: str, work: Callable[[], ResultT], *, check: bool = True) -> ResultT:
        return await self._calls.ask(space, purpose, asyncio.to_thread(work), check=check)


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
