"""`ZepCloudSystem`: a space is a user, a session a thread, a turn a message; the facts that Zep draws are memories."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from importlib.metadata import version
from itertools import groupby

from memdock.adapter.framework_calls import outcome_of
from memdock.adapter.hosted import HostedSystem, settled, user_of
from memdock.errors import MemdockError
from memdock.system import Batch, SystemInfo
from memdock.types import (
    Component,
    Erasure,
    Feature,
    Limits,
    Memory,
    Query,
    Residue,
    Selection,
    Software,
    Source,
    Support,
    Turn,
    TurnResult,
    TurnState,
)
from memdock_zep_cloud.framework import MESSAGES_A_CALL, MOST_FACTS, Episode, Fact, Zep, message_pieces

_NATIVE = (Feature.NO_MEMORY, Feature.EVENT_TIME, Feature.VALIDITY)
_EMULATED = (
    Feature.FORGET_MEMORIES,
    Feature.FORGET_TURNS,
    Feature.FORGET_SESSIONS,
    Feature.FORGET_DRY_RUN,
    Feature.LIST_MEMORIES,
    Feature.SOURCES,
)
_REMEMBERED = 100_000
_SUMMARIES = "Zep does not write its summaries of entities anew: those that other turns name, too, may keep words of it"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Origin:
    """The turn of an episode."""

    source: Source
    said: datetime | None


class ZepCloudSystem(HostedSystem):
    """See `memdock.system.System`. `processing_s`: how long Zep may take over a turn, in seconds."""

    def __init__(self, name: str, zep: Zep, *, reranker: str, processing_s: float) -> None:
        super().__init__(zep.check)
        self._zep = zep
        self._reranker = reranker
        self._processing_s = processing_s
        self._origins: dict[str, _Origin] = {}
        scored = {Feature.SCORES: Support.NATIVE} if reranker == "cross_encoder" else {}
        self.info = SystemInfo(
            name=name,
            adapter=Software(name="memdock-zep-cloud", version=version("memdock-zep-cloud")),
            framework=Software(name="zep-cloud", version=f"API v3 (client {version('zep-cloud')})"),
            features={
                **dict.fromkeys(_NATIVE, Support.NATIVE),
                **dict.fromkeys(_EMULATED, Support.EMULATED),
                **scored,
            },
            limits=Limits(max_top_k=MOST_FACTS),
            config={"scope": "edges", "reranker": reranker},
        )

    async def add(self, space: str, turns: Sequence[Turn], *, final: bool) -> Batch:  # noqa: ARG002 - nothing waits
        """The first turns, as many as are one request's: sent at once, then waited for one by one, in order."""
        part = list(_first(turns))
        taken: list[tuple[Turn, list[str] | MemdockError]] = []
        for session_id, group in groupby(part, key=lambda turn: turn.session_id):
            taken += await self._send(space, session_id, list(group))
        return Batch(outcomes=[await outcome_of(self._facts(space, turn, sent)) for turn, sent in taken])

    async def retrieve(self, space: str, query: Query) -> Sequence[Memory]:
        """Zep's own search of facts; those that have ended too, with their end."""
        if not query.text.strip():
            return []
        found = await self._zep.search(self._user(space), query.text, k=query.top_k, reranker=self._reranker)
        return await self._memories(space, found)

    async def list_memories(self, space: str, *, after: str, limit: int) -> Sequence[Memory]:
        """By id."""
        facts = await self._zep.facts(self._user(space))
        return await self._memories(space, [fact for fact in facts if fact.uuid > after][:limit])

    async def forget(self, space: str, selection: Selection, *, dry_run: bool) -> Erasure:
        """Erases the messages of the selected turns, or of those that selected facts came from, and all their facts."""
        user = self._user(space)
        facts = await self._zep.facts(user)
        chosen = [fact for fact in facts if fact.uuid in set(selection.memory_ids)]
        turn_ids = set(selection.turn_ids)
        if chosen:
            origins = await self._origins_of(user, [uuid for fact in chosen for uuid in fact.episodes])
            turn_ids |= {origin.source.turn_id for origin in origins.values()}
        episodes = await self._zep.episodes_of_turns(user, turn_ids) if turn_ids else []
        uuids = {episode.uuid for episode in episodes}
        gone = [fact for fact in facts if fact in chosen or uuids & set(fact.episodes)]
        missing = set(selection.memory_ids) - {fact.uuid for fact in chosen}
        return Erasure(
            erased_memory_ids=tuple(fact.uuid for fact in gone),
            erased_turn_ids=tuple(dict.fromkeys(episode.turn_id for episode in episodes)),
            not_found=tuple(each for each in selection.memory_ids if each in missing),
            residual=() if dry_run else await self._erase(space, episodes, gone),
            changed=await self._changed(user, facts, gone, uuids),
        )

    async def _changed(
        self, user: str, facts: Sequence[Fact], gone: Sequence[Fact], erased: Collection[str]
    ) -> tuple[TurnResult, ...]:
        """The turns that stay and had a part in facts that go, which Zep does not draw from them again. A kill right
        after the facts are gone is the end of what can be told of them.
        """
        shared = [uuid for fact in gone for uuid in fact.episodes if uuid not in erased]
        turn_ids = {origin.source.turn_id for origin in (await self._origins_of(user, shared)).values()}
        episodes = await self._zep.episodes_of_turns(user, turn_ids) if turn_ids else []
        left: dict[str, set[str]] = {turn_id: set() for turn_id in sorted(turn_ids)}
        for episode in episodes:
            left[episode.turn_id] |= {fact.uuid for fact in facts if episode.uuid in fact.episodes and fact not in gone}
        return tuple(
            TurnResult(
                turn_id=turn_id,
                state=TurnState.SEARCHABLE if held else TurnState.NO_MEMORY,
                memory_ids=tuple(sorted(held)),
            )
            for turn_id, held in left.items()
        )

    async def reset(self, space: str) -> Sequence[Residue]:
        """Deletes the user, with its threads and its graph, and waits until it is gone."""
        user = self._user(space)

        async def gone() -> bool:
            return not await self._zep.has_user(user) and not await self._zep.facts(user)

        await self._zep.erase_user(user)
        await settled(gone, self._processing_s, "Zep Cloud did not delete a user")
        return (
            Residue(component=Component.GRAPH, items=0, verified=True),
            Residue(component=Component.RAW_TURNS, items=0, verified=True),
        )

    async def _send(
        self, space: str, session_id: str, turns: Sequence[Turn]
    ) -> list[tuple[Turn, list[str] | MemdockError]]:
        """Turns of one session, with the ids of their episodes, or with why they have none."""
        try:
            sent = await self._zep.add(self._user(space), self._thread(space, session_id), turns)
        except MemdockError as fault:
            return [(turn, fault) for turn in turns]
        for turn, uuids in zip(turns, sent, strict=True):
            self._remember(
                Episode(uuid=uuid, turn_id=turn.turn_id, session_id=session_id, said=turn.time, processed=False)
                for uuid in uuids
            )
        return list(zip(turns, sent, strict=True))

    async def _facts(self, space: str, turn: Turn, sent: list[str] | MemdockError) -> list[str]:
        """The facts of a turn that was sent; what is left of one that failed is erased, now or as it is retried."""
        facts: dict[str, None] = {}
        try:
            if isinstance(sent, MemdockError):
                raise sent
            for uuid in sent:
                await self._processed(uuid)
                facts |= dict.fromkeys(await self._zep.facts_of(uuid))
        except MemdockError:
            await self._give_up(space, turn)
            raise
        return list(facts)

    async def _processed(self, uuid: str) -> None:
        await settled(lambda: self._zep.processed(uuid), self._processing_s, "Zep Cloud did not process the turn")

    async def _ended(self, uuid: str) -> None:
        """Waits until Zep has done with an episode that is to be erased, or has had all its time for it."""
        try:
            await self._processed(uuid)
        except MemdockError as fault:
            if fault.reason != "PROVIDER_TIMEOUT":
                raise

    async def _give_up(self, space: str, turn: Turn) -> None:
        user = self._user(space)
        try:
            episodes = await self._zep.episodes_of_turns(user, [turn.turn_id])
            await self._zep.erase([episode.uuid for episode in episodes], [])
        except MemdockError:
            return  # the turn is FAILED all the same; before it is tried again, it is forgotten

    async def _erase(self, space: str, episodes: Sequence[Episode], facts: Sequence[Fact]) -> tuple[Residue, ...]:
        """Deletes them once Zep has done with them, so that none of its work comes after; looks for what is left."""
        user, uuids = self._user(space), [episode.uuid for episode in episodes]
        for episode in episodes:
            if not episode.processed:
                await self._ended(episode.uuid)
        await self._zep.erase(uuids, [])
        known, of_them = {fact.uuid for fact in facts}, set(uuids)
        rest = [fact.uuid for fact in await self._zep.facts(user) if fact.uuid in known or of_them & set(fact.episodes)]
        await self._zep.erase([], rest)
        left = [fact for fact in await self._zep.facts(user) if fact.uuid in known or of_them & set(fact.episodes)]
        raw = {episode.uuid for episode in await self._zep.episodes(user, uuids)} & of_them
        whole = True
        for session_id in {episode.session_id for episode in episodes}:
            messages, all_of_them = await self._zep.messages(self._thread(space, session_id))
            raw |= messages & of_them
            whole &= all_of_them
        summaries = await self._zep.entities(user)
        return (
            Residue(
                component=Component.GRAPH,
                items=len(left),
                verified=not summaries,
                note=_SUMMARIES if summaries else "",
            ),
            Residue(component=Component.RAW_TURNS, items=len(raw), verified=whole),
        )

    async def _memories(self, space: str, facts: Sequence[Fact]) -> list[Memory]:
        origins = await self._origins_of(self._user(space), [uuid for fact in facts for uuid in fact.episodes])
        return [_memory(fact, [origins[uuid] for uuid in fact.episodes if uuid in origins]) for fact in facts]

    async def _origins_of(self, user: str, uuids: Sequence[str]) -> Mapping[str, _Origin]:
        """The turns of episodes; those that were not sent since the start are asked of Zep, once."""
        wanted = dict.fromkeys(uuids)
        if missing := [uuid for uuid in wanted if uuid not in self._origins]:
            self._remember(await self._zep.episodes(user, missing))
        return {uuid: self._origins[uuid] for uuid in wanted if uuid in self._origins}

    def _remember(self, episodes: Iterable[Episode]) -> None:
        for each in episodes:
            source = Source(session_id=each.session_id, turn_id=each.turn_id)
            self._origins[each.uuid] = _Origin(source=source, said=each.said)
        while len(self._origins) > _REMEMBERED:
            del self._origins[next(iter(self._origins))]

    def _user(self, space: str) -> str:
        return user_of(self.info.name, space)

    def _thread(self, space: str, session_id: str) -> str:
        return f"{self._user(space)}-{sha256(session_id.encode()).hexdigest()[:24]}"


def _first(turns: Sequence[Turn]) -> Iterable[Turn]:
    """The first turns, of at most as many messages as one request may hold, but at least one."""
    room = MESSAGES_A_CALL
    for place, turn in enumerate(turns):
        room -= len(message_pieces(turn.text))
        if room < 0 and place:
            return
        yield turn


def _memory(fact: Fact, origins: Sequence[_Origin]) -> Memory:
    """A fact; its times are the turns', or the model's reading of them, and none where no turn had a time."""
    said = min((origin.said for origin in origins if origin.said is not None), default=None)
    return Memory(
        memory_id=fact.uuid,
        text=fact.text,
        kind="fact",
        score=fact.score,
        time=said,
        valid_from=None if said is None else fact.valid_at,
        valid_to=None if said is None else fact.invalid_at,
        sources=tuple(dict.fromkeys(origin.source for origin in origins)),
    )
