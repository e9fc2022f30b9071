"""`Mem0HostedSystem`: a space is a user, a pair of turns one add; its memories know their turns by its group."""

import asyncio
import uuid
from collections.abc import Collection, Sequence
from datetime import datetime
from importlib.metadata import version

from memdock.adapter.framework_calls import outcome_of
from memdock.adapter.hosted import HostedSystem, settled, user_of
from memdock.adapter.native_ids import NativeIds, source_of
from memdock.adapter.pairs import Halves, add_groups, group_turns, halves_of
from memdock.errors import MemdockError, error
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
    TurnResult,
)
from memdock_mem0_hosted.framework import MOST_MEMORIES, Event, Mem0Platform, Record

_NATIVE = (Feature.FORGET_MEMORIES, Feature.SCORES, Feature.NO_MEMORY, Feature.EVENT_TIME)
_EMULATED = (
    Feature.FILTER_SESSIONS,
    Feature.FILTER_TIME,
    Feature.FORGET_TURNS,
    Feature.FORGET_SESSIONS,
    Feature.FORGET_DRY_RUN,
    Feature.LIST_MEMORIES,
    Feature.SOURCES,
)
_ADDS_A_BATCH = 8
_GIVEN_UP = "given up: "
"""Stands before the group of an add whose turns are FAILED and of which more may come: that is not told, and erased by
the next Forget or try of its turns."""
_LATE = "mem0 is still at work on an add: what comes of it is not told here, and stays there"
_HISTORY = "mem0 keeps what was sent in its events, and histories of memories: no call deletes either"


class Mem0HostedSystem(HostedSystem):
    """See `memdock.system.System`.

    `pairs`: a user's turn and its reply are one add, else each turn is. `processing_s`: how long mem0 may take over an
    add, in seconds.
    """

    def __init__(self, name: str, mem0: Mem0Platform, ids: NativeIds, *, pairs: bool, processing_s: float) -> None:
        super().__init__(mem0.check)
        self._mem0 = mem0
        self._ids = ids
        self._pairs = pairs
        self._halves = Halves(ids, self._remember, self._memories_of_turn)
        self._processing_s = processing_s
        self._done: set[str] = set()
        """Groups whose event has been seen to end since the start: nothing more comes of them."""
        features = {Feature.BUFFERING: Support.EMULATED} if pairs else {}
        self.info = SystemInfo(
            name=name,
            adapter=Software(name="memdock-mem0-hosted", version=version("memdock-mem0-hosted")),
            framework=Software(name="mem0-hosted", version=f"API v3 (client {version('mem0ai')})"),
            features={
                **dict.fromkeys(_NATIVE, Support.NATIVE),
                **dict.fromkeys(_EMULATED, Support.EMULATED),
                **features,
            },
            config={"unit": "pair" if pairs else "turn", "threshold": 0.0},
        )

    async def add(self, space: str, turns: Sequence[Turn], *, final: bool) -> Batch:
        """One add a group of turns, each waited for, in order; a group that fails leaves the others be."""
        groups = group_turns(turns, final=final) if self._pairs else [(place,) for place in range(len(turns))]
        return await add_groups(turns, _first(groups), lambda group: outcome_of(self._remember(space, group)))

    async def _remember(self, space: str, turns: Sequence[Turn]) -> list[str]:
        """One add of mem0's, worked in; what is left of one that fails is erased, now or as it is forgotten."""
        group, user = uuid.uuid4().hex, self._user(space)
        pair = turns if len(turns) > 1 else ()
        # Noted before, so that what a kill leaves behind is found when the turns come again.
        await asyncio.to_thread(self._ids.add, space, [group], [source_of(turn) for turn in turns], keep=pair)
        said = next((turn.time for turn in turns if turn.time is not None), None)
        try:
            event_id = await self._mem0.add(user, _messages(turns), _metadata(turns, group, said), said=said)
            event = await self._ended(event_id)
            self._done.add(group)
            if event.failed:
                raise error("PROVIDER_PROTOCOL_ERROR", "mem0 could not work the turn in: its event is FAILED.")
            memories = await self._mem0.memories(user, {group})
        except MemdockError:
            await self._give_up(space, group, turns)
            raise
        if not memories:
            await asyncio.to_thread(self._ids.remove, space, [group])
        return [str(each["id"]) for each in memories]

    async def retrieve(self, space: str, query: Query) -> Sequence[Memory]:
        """mem0's own search, without its threshold; with bounds of time the best `MOST_MEMORIES` are looked through."""
        if not query.text.strip():
            return []
        bounded = query.since is not None or query.until is not None
        found = await self._mem0.search(
            self._user(space),
            query.text,
            k=MOST_MEMORIES if bounded else query.top_k,
            sessions=query.session_ids,
        )
        memories = await self._memories(space, found)
        return [each for each in memories if _in_bounds(each.time, query.since, query.until)][: query.top_k]

    async def list_memories(self, space: str, *, after: str, limit: int) -> Sequence[Memory]:
        """By id."""
        found = sorted(await self._mem0.memories(self._user(space)), key=lambda each: str(each["id"]))
        return await self._memories(space, [each for each in found if each["id"] > after][:limit])

    async def forget(self, space: str, selection: Selection, *, dry_run: bool) -> Erasure:
        """Erases all memories of the adds in which the selected turns, or those of selected memories, had a part; the
        other half of a pair, where a turn was selected, is then added again alone.

        A failure that may pass, or a kill, leaves the pair noted until its half is added: the same Forget ends what it
        began.
        """
        user, not_found, alone = self._user(space), [], []
        halves: dict[str, list[Turn]] = {}
        if selection.memory_ids:
            held = {each["id"]: each for each in await self._mem0.memories(user)}
            not_found = [each for each in selection.memory_ids if each not in held]
            chosen = [held[each] for each in selection.memory_ids if each in held]
            groups = list(dict.fromkeys(each["group"] for each in chosen if each["group"]))
            alone = [each["id"] for each in chosen if not each["group"]]  # none of ours
        else:
            groups = await self._groups_of(space, selection.turn_ids)
            halves = await asyncio.to_thread(halves_of, self._ids, space, groups, set(selection.turn_ids))
        left = {turn.turn_id for turns in halves.values() for turn in turns}
        begun = await self._groups_of(space, left)  # what a kill has left of adding them again
        groups = list(dict.fromkeys([*groups, *begun]))
        ended = dry_run or await self._settle(user, groups)
        memory_ids = [*alone, *(str(each["id"]) for each in await self._mem0.memories(user, groups))]
        sources = await asyncio.to_thread(self._ids.sources_of, space, _names(groups))
        turn_ids = dict.fromkeys(source.turn_id for found in sources.values() for source in found)
        gone = tuple(turn_id for turn_id in turn_ids if turn_id not in left)
        residual: tuple[Residue, ...] = ()
        changed: tuple[TurnResult, ...] = ()
        if not dry_run:
            await asyncio.to_thread(self._ids.drop, space, {*gone, *selection.turn_ids})
            residual = await self._erase(user, groups, memory_ids, ended=ended)
            changed = await self._halves.store_anew(space, halves, _names(groups), selection.turn_ids)
        return Erasure(
            erased_memory_ids=tuple(memory_ids),
            erased_turn_ids=gone,
            not_found=tuple(not_found),
            residual=residual,
            changed=changed,
        )

    async def reset(self, space: str) -> Sequence[Residue]:
        """Has all memories of the user deleted, and waits until they are."""
        user = self._user(space)
        ended = await self._settle(user)
        if event_id := await self._mem0.erase_user(user):
            await self._ended(event_id)

        async def gone() -> bool:
            return not await self._mem0.memories(user)

        await settled(gone, self._processing_s, "mem0 did not delete the memories of a user")
        await asyncio.to_thread(self._ids.remove_space, space)
        return _residue(0, ended=ended)

    async def _groups_of(self, space: str, turn_ids: Collection[str]) -> list[str]:
        """The adds in which any of these turns had a part, those that were given up, too."""
        names = await asyncio.to_thread(self._ids.memories_of, space, turn_ids)
        return list(dict.fromkeys(name.removeprefix(_GIVEN_UP) for name in names))

    async def _memories_of_turn(self, space: str, turn_id: str) -> list[str]:
        groups = await asyncio.to_thread(self._ids.memories_of, space, [turn_id])
        return [str(each["id"]) for each in await self._mem0.memories(self._user(space), groups)]

    async def _ended(self, event_id: str) -> Event:
        """The event, once it is done; PROVIDER_TIMEOUT where that takes too long."""
        seen: list[Event] = []

        async def done() -> bool:
            seen[:] = [await self._mem0.event(event_id)]
            return seen[0].done

        await settled(done, self._processing_s, "mem0 did not work the turn in")
        return seen[0]

    async def _settle(self, user: str, groups: Collection[str] | None = None) -> bool:
        """Waits until nothing more comes of these adds, or of any of the user's: a kill may have left them at work.

        False where mem0 takes too long over one of them: what comes of that is not told, since nothing notes it.
        """
        if groups is not None and self._done.issuperset(groups):
            return True
        try:
            for event in await self._mem0.pending(user):
                if groups is None or event.group in groups:
                    await self._ended(event.event_id)
        except MemdockError as fault:
            if fault.reason != "PROVIDER_TIMEOUT":
                raise
            return False
        self._done.update(groups or ())
        return True

    async def _give_up(self, space: str, group: str, turns: Sequence[Turn]) -> None:
        """Erases what is left of an add that failed; where that fails too, or more may come of it, that stays noted."""
        name = f"{_GIVEN_UP}{group}"
        await asyncio.to_thread(self._ids.add, space, [name], [source_of(turn) for turn in turns])
        await asyncio.to_thread(self._ids.remove, space, [group])
        user, ended = self._user(space), group in self._done
        try:
            memories = await self._mem0.memories(user, {group})
            await self._erase(user, [group], [str(each["id"]) for each in memories], ended=ended)
        except MemdockError:
            return
        if ended:
            await asyncio.to_thread(self._ids.remove, space, [name])

    async def _erase(
        self, user: str, groups: Sequence[str], memory_ids: Sequence[str], *, ended: bool
    ) -> tuple[Residue, ...]:
        await self._mem0.erase(memory_ids)
        return _residue(len(await self._mem0.memories(user, groups)), ended=ended)

    async def _memories(self, space: str, records: Sequence[Record]) -> list[Memory]:
        """Those of adds that are noted, or of nobody here: what is left of others is not told."""
        sources = await asyncio.to_thread(self._ids.sources_of, space, {each["group"] for each in records})
        told = [each for each in records if not each["group"] or each["group"] in sources]
        return [_memory(each, sources.get(each["group"], ())) for each in told]

    def _user(self, space: str) -> str:
        return user_of(self.info.name, space)


def _names(groups: Sequence[str]) -> list[str]:
    """By which the adds may be noted."""
    return [*groups, *(f"{_GIVEN_UP}{group}" for group in groups)]


def _residue(left: int, *, ended: bool) -> tuple[Residue, ...]:
    return (
        Residue(component=Component.VECTOR, items=left, verified=ended, note="" if ended else _LATE),
        Residue(component=Component.HISTORY, verified=False, note=_HISTORY),
    )


def _first(groups: Sequence[tuple[int, ...]]) -> Sequence[tuple[int, ...]]:
    """The first groups, about `_ADDS_A_BATCH`, that are of the first turns together: the rest come again."""
    covered: set[int] = set()
    for number, places in enumerate(groups, 1):
        covered.update(places)
        if number >= _ADDS_A_BATCH and max(covered) == len(covered) - 1:
            return groups[:number]
    return groups


def _messages(turns: Sequence[Turn]) -> list[Record]:
    """mem0's messages have no name: a named speaker stands before the words."""
    return [{"role": turn.role, "content": f"{turn.name}: {turn.text}" if turn.name else turn.text} for turn in turns]


def _metadata(turns: Sequence[Turn], group: str, said: datetime | None) -> Record:
    """`said_at` is the time that a memory is given back with: mem0 itself has whole seconds, and always some time."""
    return {
        "group": group,
        "session_id": turns[0].session_id,
        **({} if said is None else {"said_at": said.isoformat()}),
    }


def _in_bounds(moment: datetime | None, since: datetime | None, until: datetime | None) -> bool:
    if since is None and until is None:
        return True
    return moment is not None and (since is None or moment >= since) and (until is None or moment < until)


def _memory(record: Record, sources: tuple[Source, ...]) -> Memory:
    said, score = record["said_at"], record["score"]
    return Memory(
        memory_id=record["id"],
        text=record["text"],
        kind="fact",
        score=None if score is None else float(score),
        time=datetime.fromisoformat(said) if said else None,
        sources=sources,
    )
