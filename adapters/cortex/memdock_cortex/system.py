"""`CortexSystem`: a turn is a note, which keeps its words; cortex links it to others, and may merge it into them."""

import asyncio
import re
import uuid
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial
from importlib.metadata import version
from typing import Any

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
    Support,
    Turn,
)
from memdock_cortex.framework import COMMIT, UNKNOWN, Cortex, merged_into
from memdock_cortex.store import Note, Store

_NATIVE = (Feature.SCORES, Feature.EVENT_TIME, Feature.FILTER_TIME)
_EMULATED = (
    Feature.FILTER_SESSIONS,
    Feature.FORGET_MEMORIES,
    Feature.FORGET_TURNS,
    Feature.FORGET_SESSIONS,
    Feature.FORGET_DRY_RUN,
    Feature.LIST_MEMORIES,
    Feature.SOURCES,
    Feature.USAGE,
)


class CortexSystem:
    """See `memdock.system.System`. `store` is that of `cortex`; `models`: chat and embedder."""

    def __init__(
        self, name: str, cortex: Cortex, store: Store, ids: NativeIds, *, models: tuple[ModelAt, ModelAt]
    ) -> None:
        self._calls = FrameworkCalls("cortex", store="chroma", store_packages=("chromadb", "sqlite3"))
        self._cortex = cortex
        self._store = store
        self._ids = ids
        self.info = SystemInfo(
            name=name,
            adapter=Software(name="memdock-cortex", version=version("memdock-cortex")),
            framework=Software(name="cortex", version=COMMIT),
            features={**dict.fromkeys(_NATIVE, Support.NATIVE), **dict.fromkeys(_EMULATED, Support.EMULATED)},
            models=models_of(*models),
            config={"store": "chroma", "smart_collections": False, "memory_source": "ltm"},
        )

    async def add(self, space: str, turns: Sequence[Turn], *, final: bool) -> Batch:  # noqa: ARG002 - nothing waits
        """One note a turn, in order; a turn that fails leaves the others be."""
        return Batch(outcomes=[await outcome_of(self._add(space, turn)) for turn in turns])

    async def _add(self, space: str, turn: Turn) -> list[str]:
        note_id = str(uuid.uuid4())
        # Noted before, so that what a kill leaves behind is found when the turn comes again.
        await asyncio.to_thread(self._ids.add, space, [note_id], [source_of(turn)])
        text = f"{turn.name or turn.role}: {turn.text}"
        adding = asyncio.to_thread(self._cortex.add, user_of(space), note_id, text, turn.time)
        try:
            await self._calls.ask(space, "extraction", adding)
        except MemdockError:
            await self._erase(space, [note_id], for_good=False)
            raise
        return [note_id]

    async def retrieve(self, space: str, query: Query) -> Sequence[Memory]:
        """cortex's search of its long-term memory, filtered there."""
        if not query.text.strip():
            return []
        where = await asyncio.to_thread(self._where, space, query)
        searching = asyncio.to_thread(self._cortex.search, user_of(space), query.text, where, k=query.top_k)
        found = await self._calls.ask(space, "query", searching)
        scores = {str(each["id"]): float(each["score"]) for each in found}
        notes = {note.note_id: note for note in await self._notes(space, list(scores))}
        # One that is not there any longer was erased while the search went on.
        return await self._memories(space, [notes[each] for each in scores if each in notes], scores)

    async def list_memories(self, space: str, *, after: str, limit: int) -> Sequence[Memory]:
        """By id."""
        notes = sorted(await self._notes(space), key=lambda note: note.note_id)
        return await self._memories(space, [note for note in notes if note.note_id > after][:limit])

    async def forget(self, space: str, selection: Selection, *, dry_run: bool) -> Erasure:
        """Erases the notes of the selected turns, or selected notes with those that were merged into them."""
        not_found: list[str] = []
        if selection.memory_ids:
            held = {note.note_id: note for note in await self._notes(space, selection.memory_ids)}
            not_found = [each for each in selection.memory_ids if each not in held]
            note_ids = [each for note in held.values() for each in (note.note_id, *merged_into(note))]
        else:
            note_ids = await asyncio.to_thread(self._ids.memories_of, space, selection.turn_ids)
        note_ids = list(dict.fromkeys(note_ids))
        stored = {note.note_id for note in await self._notes(space, note_ids)}
        sources = await asyncio.to_thread(self._ids.sources_of, space, note_ids)
        return Erasure(
            erased_memory_ids=tuple(each for each in note_ids if each in stored),
            erased_turn_ids=tuple(dict.fromkeys(source.turn_id for found in sources.values() for source in found)),
            not_found=tuple(not_found),
            residual=() if dry_run else await self._erase(space, note_ids),
        )

    async def reset(self, space: str) -> Sequence[Residue]:
        """Erases the space's collection, and what the file keeps of it."""
        left = await self._calls.run(partial(self._store.reset, user_of(space)))
        await asyncio.to_thread(self._ids.remove_space, space)
        return _residue(left)

    async def check_ready(self) -> None:
        """Raises STORE_UNREACHABLE while chroma's file cannot be read."""
        await self._calls.run(self._store.check)

    async def _erase(self, space: str, note_ids: Sequence[str], *, for_good: bool = True) -> tuple[Residue, ...]:
        # A note that had changed is embedded anew where it becomes what it was.
        erasing = asyncio.to_thread(self._cortex.erase, user_of(space), note_ids, for_good=for_good)
        left = await self._calls.ask(space, "forgetting", erasing)
        await asyncio.to_thread(self._ids.remove, space, note_ids)
        return _residue(left)

    async def _notes(self, space: str, note_ids: Iterable[str] | None = None) -> list[Note]:
        ids = None if note_ids is None else list(note_ids)
        return await self._calls.run(partial(self._store.notes, user_of(space), ids))

    async def _memories(
        self, space: str, notes: Sequence[Note], scores: dict[str, float] | None = None
    ) -> list[Memory]:
        parts = {note.note_id: [note.note_id, *merged_into(note)] for note in notes}
        wanted = {each for ids in parts.values() for each in ids}
        sources = await asyncio.to_thread(self._ids.sources_of, space, wanted)
        return [
            Memory(
                memory_id=note.note_id,
                text=note.text,
                kind="turn",
                score=None if scores is None else scores[note.note_id],
                time=_time(note),
                sources=tuple(dict.fromkeys(found for each in parts[note.note_id] for found in sources.get(each, ()))),
            )
            for note in notes
        ]

    def _where(self, space: str, query: Query) -> dict[str, Any] | None:
        """chroma's filter."""
        found: list[dict[str, Any]] = []
        if query.session_ids:
            sources = self._ids.sources_of(space, self._ids.all_of(space))
            wanted = set(query.session_ids)
            ids = [each for each, of in sources.items() if wanted & {source.session_id for source in of}]
            found.append({"doc_id": {"$in": ids or [""]}})
        if query.since is not None:
            found.append({"timestamp_epoch": {"$gte": query.since.timestamp()}})
        if query.until is not None:
            found.append({"timestamp_epoch": {"$lt": query.until.timestamp()}})
        return {"$and": found} if len(found) > 1 else next(iter(found), None)


def user_of(space: str) -> str:
    """cortex's name of a space, of letters, digits and _ alone; no two spaces share one."""
    return re.sub("[^A-Za-z0-9]", lambda found: "".join(f"_{byte:02X}" for byte in found[0].encode()), space)


def _residue(left: tuple[int, int]) -> tuple[Residue, ...]:
    notes, logged = left
    return (
        Residue(component=Component.VECTOR, items=notes, verified=True),
        Residue(component=Component.HISTORY, items=logged, verified=True, note="chroma's log of writes"),
    )


def _time(note: Note) -> datetime | None:
    said = str(note.fields["timestamp"])
    return None if said == UNKNOWN else datetime.fromisoformat(said)
