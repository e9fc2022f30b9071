"""`GraphitiSystem`: a turn is an episode; the facts that graphiti draws from it are memories that know their turns."""

import asyncio
import re
import uuid
from collections.abc import Sequence
from datetime import datetime
from importlib.metadata import version

from memdock.adapter.command import ModelAt, models_of
from memdock.adapter.framework_calls import FrameworkCalls, outcome_of
from memdock.adapter.native_ids import NativeIds, source_of
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
from memdock_graphiti.framework import Fact, Graph, Left

_NATIVE = (Feature.SCORES, Feature.NO_MEMORY, Feature.EVENT_TIME, Feature.VALIDITY)
_EMULATED = (
    Feature.FILTER_SESSIONS,
    Feature.FILTER_TIME,
    Feature.FORGET_MEMORIES,
    Feature.FORGET_TURNS,
    Feature.FORGET_SESSIONS,
    Feature.FORGET_DRY_RUN,
    Feature.LIST_MEMORIES,
    Feature.SOURCES,
    Feature.USAGE,
)


class GraphitiSystem:
    """See `memdock.system.System`. `models`: chat and embedder; `store`: the kind of graph database."""

    def __init__(self, name: str, graph: Graph, ids: NativeIds, *, store: str, models: tuple[ModelAt, ModelAt]) -> None:
        self._graph = graph
        self._ids = ids
        self._store = store
        self._calls = FrameworkCalls(
            "graphiti",
            store="The graph database",
            store_packages=("neo4j", "redis"),
            reply_packages=("pydantic", "pydantic_core"),
        )
        self.info = SystemInfo(
            name=name,
            adapter=Software(name="memdock-graphiti", version=version("memdock-graphiti")),
            framework=Software(name="graphiti", version=version("graphiti-core")),
            features={**dict.fromkeys(_NATIVE, Support.NATIVE), **dict.fromkeys(_EMULATED, Support.EMULATED)},
            models=models_of(*models),
            config={"store": store, "search": "edge_hybrid_rrf", "facts": "true now"},
        )

    async def add(self, space: str, turns: Sequence[Turn], *, final: bool) -> Batch:  # noqa: ARG002 - nothing waits
        """One episode a turn, in order; a turn that fails leaves the others be."""
        return Batch(outcomes=[await outcome_of(self._add(space, turn)) for turn in turns])

    async def _add(self, space: str, turn: Turn) -> list[str]:
        episode = str(uuid.uuid4())
        # Noted before, so that what a kill leaves behind is found when the turn comes again.
        await asyncio.to_thread(self._ids.add, space, [episode], [source_of(turn)])
        text = f"{turn.name or turn.role}: {turn.text}"
        adding = self._graph.add(group_of(space), episode, text, turn.time, name=turn.turn_id)
        try:
            return await self._calls.ask(space, "extraction", adding)
        except MemdockError:
            await self._erase(space, [episode])
            raise

    async def retrieve(self, space: str, query: Query) -> Sequence[Memory]:
        """graphiti's hybrid search of facts; with a filter all of them are ranked, and those that fit are kept."""
        if not query.text.strip():
            return []
        filtered = bool(query.session_ids or query.since or query.until)
        searching = self._graph.search(group_of(space), query.text, k=None if filtered else query.top_k)
        memories = await self._memories(space, await self._calls.ask(space, "query", searching))
        return [memory for memory in memories if _fits(memory, query)][: query.top_k]

    async def list_memories(self, space: str, *, after: str, limit: int) -> Sequence[Memory]:
        """By id; facts that have ended too."""
        facts = await self._calls.finish(self._graph.facts(group_of(space)))
        return await self._memories(space, [fact for fact in facts if fact.fact_id > after][:limit])

    async def forget(self, space: str, selection: Selection, *, dry_run: bool) -> Erasure:
        """Erases the episodes of the selected turns, or those that selected facts came from."""
        facts = await self._calls.finish(self._graph.facts(group_of(space)))
        if selection.memory_ids:
            chosen = [fact for fact in facts if fact.fact_id in set(selection.memory_ids)]
            episodes = list(dict.fromkeys(episode for fact in chosen for episode in fact.episodes))
            not_found = set(selection.memory_ids) - {fact.fact_id for fact in chosen}
        else:
            episodes = await asyncio.to_thread(self._ids.memories_of, space, selection.turn_ids)
            not_found = set()
        sources = await asyncio.to_thread(self._ids.sources_of, space, episodes)
        return Erasure(
            erased_memory_ids=tuple(fact.fact_id for fact in facts if set(fact.episodes) <= set(episodes)),
            erased_turn_ids=tuple(dict.fromkeys(source.turn_id for found in sources.values() for source in found)),
            not_found=tuple(each for each in selection.memory_ids if each in not_found),
            residual=() if dry_run else await self._erase(space, episodes),
        )

    async def reset(self, space: str) -> Sequence[Residue]:
        """Erases all of the space's graph."""
        left = await self._calls.finish(self._graph.reset(group_of(space)))
        await asyncio.to_thread(self._ids.remove_space, space)
        return self._residue(left)

    async def check_ready(self) -> None:
        """Raises STORE_UNREACHABLE while the database is away."""
        await self._calls.finish(self._graph.check())

    async def _erase(self, space: str, episodes: Sequence[str]) -> tuple[Residue, ...]:
        left = await self._calls.finish(self._graph.erase(group_of(space), episodes))
        await asyncio.to_thread(self._ids.remove, space, episodes)
        return self._residue(left)

    def _residue(self, left: Left) -> tuple[Residue, ...]:
        worded = "facts that other turns tell too, in the words of one that is forgotten" if left.worded else ""
        found = (
            Residue(component=Component.GRAPH, items=left.facts, verified=True, note=worded),
            Residue(component=Component.RAW_TURNS, items=left.episodes, verified=True),
        )
        if self._store != "kuzu":
            return found
        note = "Kuzu keeps deleted rows in its file until it writes over them; no call shows them"
        return (*found, Residue(component=Component.HISTORY, verified=False, note=note))

    async def _memories(self, space: str, facts: Sequence[Fact]) -> list[Memory]:
        episodes = {episode for fact in facts for episode in fact.episodes}
        sources = await asyncio.to_thread(self._ids.sources_of, space, episodes)
        return [_memory(fact, [each for one in fact.episodes for each in sources.get(one, ())]) for fact in facts]


def group_of(space: str) -> str:
    """graphiti's name of a space, of letters, digits, - and _ alone; no two spaces share one."""
    return re.sub("[^A-Za-z0-9-]", lambda found: "".join(f"_{byte:02X}" for byte in found[0].encode()), space)


def _fits(memory: Memory, query: Query) -> bool:
    if query.session_ids and not {source.session_id for source in memory.sources} & set(query.session_ids):
        return False
    return _in_bounds(memory.time, query.since, query.until)


def _in_bounds(moment: datetime | None, since: datetime | None, until: datetime | None) -> bool:
    if since is None and until is None:
        return True
    return moment is not None and (since is None or moment >= since) and (until is None or moment < until)


def _memory(fact: Fact, sources: Sequence[Source]) -> Memory:
    return Memory(
        memory_id=fact.fact_id,
        text=fact.text,
        kind="fact",
        score=fact.score,
        time=fact.time,
        valid_from=fact.valid_from,
        valid_to=fact.valid_to,
        sources=tuple(dict.fromkeys(sources)),
    )
