"""`Mem0gSystem`: a pair of turns is one add, and each relation that mem0 draws from it knows its turns.

Relations have no ids of their own: theirs here is a digest of the space and the relation. Beside them the file of
native ids holds, with a prefix each, the adds (whose turns belong together, and are kept while they are two), digests
of the names that were said, and relations that a later turn has made outdated.
"""

import asyncio
import hashlib
import json
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from typing import TypeVar

from memdock.adapter.framework_calls import FrameworkCalls, outcome_of
from memdock.adapter.model_calls import check_calls
from memdock.adapter.native_ids import NativeIds, source_of
from memdock.adapter.pairs import Halves, add_groups, group_turns, halves_of
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
    TurnResult,
)
from memdock_mem0g.framework import Change, GraphMemory
from memdock_mem0g.stores import Relation

ResultT = TypeVar("ResultT")

_NATIVE = (Feature.NO_MEMORY,)
_EMULATED = (
    Feature.FILTER_SESSIONS,
    Feature.FORGET_MEMORIES,
    Feature.FORGET_TURNS,
    Feature.FORGET_SESSIONS,
    Feature.FORGET_DRY_RUN,
    Feature.LIST_MEMORIES,
    Feature.SOURCES,
    Feature.BUFFERING,
    Feature.USAGE,
)
_ADD, _NAME, _ENDED = "add:", "name:", "ended:"


class Mem0gSystem:
    """See `memdock.system.System`. `pairs`: a user's turn and its reply are one add, else each turn is."""

    def __init__(self, name: str, framework: GraphMemory, ids: NativeIds, *, pairs: bool, threshold: float) -> None:
        self._mem0g = framework
        self._calls = FrameworkCalls("mem0", store="Neo4j", store_packages=("neo4j",))
        self._store = framework.store
        self._ids = ids
        self._pairs = pairs
        self.info = SystemInfo(
            name=name,
            adapter=Software(name="memdock-mem0g", version=version("memdock-mem0g")),
            framework=Software(name="mem0", version=version("mem0ai")),
            features={**dict.fromkeys(_NATIVE, Support.NATIVE), **dict.fromkeys(_EMULATED, Support.EMULATED)},
            models=framework.models,
            config={
                "store": framework.store.name,
                "memory": "graph",
                "unit": "pair" if pairs else "turn",
                "threshold": threshold,
            },
        )

    async def add(self, space: str, turns: Sequence[Turn], *, final: bool) -> Batch:
        """One add a group of turns, in order; a group that fails leaves the others be."""
        groups = group_turns(turns, final=final) if self._pairs else [(place,) for place in range(len(turns))]
        return await add_groups(
            turns, groups, lambda group: outcome_of(self._remember(space, group, purpose="extraction"))
        )

    async def _remember(
        self, space: str, turns: Sequence[Turn], *, purpose: str, holds: Callable[[Relation], bool] | None = None
    ) -> tuple[str, ...]:
        """One add of mem0's: the ids of the relations that it drew. `holds` as in `GraphMemory.add`."""
        add = f"{_ADD}{uuid.uuid4().hex}"
        text = "\n".join(turn.text for turn in turns if turn.role != "system")  # as in mem0's own add
        if not text:
            return ()

        def note(change: Change) -> None:
            """Before the graph is committed: a relation is never there without its turns."""
            check_calls()
            if not change.added:
                return
            made = [_id(space, each) for each in change.added] + [_name_id(each) for each in change.names]
            sources = [source_of(turn) for turn in turns]
            self._ids.add(space, [add, *made], sources, keep=turns if len(turns) > 1 else ())

        change = await self._ask(space, purpose, lambda: self._mem0g.add(space, text, note, holds))
        if change.removed:
            ended = {each: _ENDED + each for each in (_id(space, relation) for relation in change.removed)}
            await self._run(lambda: self._ids.rename(space, ended))
        return tuple(_id(space, each) for each in change.added)

    async def retrieve(self, space: str, query: Query) -> Sequence[Memory]:
        """mem0's own search of the graph."""
        if not query.text.strip():
            return []
        found = await self._ask(space, "query", lambda: self._mem0g.search(space, query.text))
        memories = await self._memories(space, {_id(space, each): each for each in found})
        wanted = set(query.session_ids or ())
        if wanted:
            memories = [each for each in memories if wanted & {source.session_id for source in each.sources}]
        return memories[: query.top_k]

    async def list_memories(self, space: str, *, after: str, limit: int) -> Sequence[Memory]:
        """By id."""
        held = await self._relations(space)
        page = sorted(memory_id for memory_id in held if memory_id > after)[:limit]
        return await self._memories(space, {memory_id: held[memory_id] for memory_id in page})

    async def forget(self, space: str, selection: Selection, *, dry_run: bool) -> Erasure:
        """Erases the relations that came from the adds of the selected turns, or memories, and from no other; the other
        half of a pair, where a turn was selected, is then added again alone.

        A failure that may pass, or a kill, leaves the pair noted until its half is added: the same Forget ends what it
        began.
        """
        held = await self._relations(space)
        not_found = tuple(each for each in selection.memory_ids if each not in held)
        adds = await self._run(lambda: self._adds(space, selection, held))
        by_turn = [] if selection.memory_ids else adds
        halves = await self._run(lambda: halves_of(self._ids, space, by_turn, set(selection.turn_ids)))
        left = {turn.turn_id for turns in halves.values() for turn in turns}
        turns = await self._run(lambda: self._turns_of(space, adds))
        gone = await self._run(lambda: self._only_of(space, turns, held))
        erased_turns = tuple(each for each in turns if each not in left)
        residual: tuple[Residue, ...] = ()
        changed: tuple[TurnResult, ...] = ()
        if not dry_run:
            names = await self._run(lambda: self._names_only_of(space, turns))
            ended = await self._run(lambda: self._ended_of(space, left))
            await self._run(lambda: self._ids.drop(space, {*erased_turns, *selection.turn_ids}))
            await self._run(lambda: self._erase(space, [held[each] for each in gone]))
            await self._run(lambda: self._ids.remove_turns(space, turns, but=[*adds, *ended]))
            remember = partial(self._remember, purpose="forgetting", holds=partial(self._holds, space, set(ended)))
            changed = await Halves(self._ids, remember, self._memories_of_turn).store_anew(
                space, halves, adds, selection.turn_ids
            )
            await self._run(lambda: self._ids.remove_turns(space, erased_turns, but=adds))
            names -= (await self._run(lambda: self._ids.sources_of(space, names))).keys()
            residual = await self._residue(space, names)
            if left:
                told_again = await self._relations(space)
                gone = [each for each in gone if each not in told_again]
        return Erasure(
            erased_memory_ids=tuple(gone),
            erased_turn_ids=erased_turns,
            not_found=not_found,
            residual=residual,
            changed=changed,
        )

    async def reset(self, space: str) -> Sequence[Residue]:
        """Erases all nodes and relations of the space."""
        await self._run(lambda: self._store.erase_space(space))
        await self._run(lambda: self._ids.remove_space(space))
        left = await self._run(lambda: self._store.names(space))
        return await self._residue(space, {_name_id(each) for each in left})

    async def check_ready(self) -> None:
        """Raises STORE_UNREACHABLE while the graph is away."""
        await self._run(lambda: self._store.names(""))

    def _adds(self, space: str, selection: Selection, held: Mapping[str, Relation]) -> list[str]:
        """The adds of the selected turns, or of those of selected memories."""
        memory_ids = [each for each in selection.memory_ids if each in held]
        sources = self._ids.sources_of(space, memory_ids).values()
        turn_ids = [*selection.turn_ids, *(source.turn_id for found in sources for source in found)]
        return [each for each in self._ids.memories_of(space, turn_ids) if each.startswith(_ADD)]

    def _turns_of(self, space: str, adds: Sequence[str]) -> list[str]:
        together = self._ids.sources_of(space, adds).values()
        return list(dict.fromkeys(source.turn_id for found in together for source in found))

    def _only_of(self, space: str, turns: Sequence[str], held: Mapping[str, Relation]) -> list[str]:
        return [each for each in self._made_only_by(space, turns) if each in held]

    def _names_only_of(self, space: str, turns: Sequence[str]) -> set[str]:
        return {each for each in self._made_only_by(space, turns) if each.startswith(_NAME)}

    def _holds(self, space: str, ended: Collection[str], relation: Relation) -> bool:
        """Whether a relation of an old turn was never made outdated, or is told by another turn now."""
        relation_id = _id(space, relation)
        return _ENDED + relation_id not in ended or bool(self._ids.sources_of(space, [relation_id]))

    def _ended_of(self, space: str, turns: Collection[str]) -> list[str]:
        return [each for each in self._ids.memories_of(space, turns) if each.startswith(_ENDED)]

    def _made_only_by(self, space: str, turns: Sequence[str]) -> list[str]:
        sources = self._ids.sources_of(space, self._ids.memories_of(space, turns))
        return [each for each, found in sources.items() if {source.turn_id for source in found} <= set(turns)]

    def _erase(self, space: str, relations: Sequence[Relation]) -> None:
        with self._store.transaction():
            self._store.erase(space, relations)

    async def _residue(self, space: str, names: set[str]) -> tuple[Residue, ...]:
        """`names`: digests of what must not be in the graph any more."""
        left = [each for each in await self._run(lambda: self._store.names(space)) if _name_id(each) in names]
        note = "names that a forgotten turn said, at which relations of other turns stand" if left else ""
        return (
            Residue(component=Component.GRAPH, items=len(left), verified=True, note=note),
            Residue(component=Component.HISTORY, verified=False, note=self._store.keeps),
        )

    async def _relations(self, space: str) -> dict[str, Relation]:
        return {_id(space, each): each for each in await self._run(lambda: self._store.relations(space))}

    async def _memories_of_turn(self, space: str, turn_id: str) -> list[str]:
        held = await self._relations(space)
        return [each for each in await self._run(lambda: self._ids.memories_of(space, [turn_id])) if each in held]

    async def _memories(self, space: str, relations: Mapping[str, Relation]) -> list[Memory]:
        sources = await self._run(lambda: self._ids.sources_of(space, relations))
        return [
            Memory(memory_id=memory_id, text=_text(space, each), kind="relation", sources=sources.get(memory_id, ()))
            for memory_id, each in relations.items()
        ]

    async def _ask(self, space: str, purpose: str, work: Callable[[], ResultT]) -> ResultT:
        return await self._calls.ask(space, purpose, asyncio.to_thread(work))

    async def _run(self, work: Callable[[], ResultT]) -> ResultT:
        return await self._calls.run(work)


def _id(space: str, relation: Relation) -> str:
    words = json.dumps([space, relation.source, relation.name, relation.destination])
    return hashlib.sha256(words.encode()).hexdigest()[:32]


def _name_id(name: str) -> str:
    return _NAME + hashlib.sha256(name.encode()).hexdigest()[:32]


def _text(space: str, relation: Relation) -> str:
    """As mem0 shows a relation to its model; the node that it names after the space is who speaks there."""
    self_name = space.lower().replace(" ", "_")
    source, destination = (
        "user" if name in (self_name, f"user_id:_{self_name}") else name
        for name in (relation.source, relation.destination)
    )
    return f"{source} -- {relation.name} -- {destination}"
