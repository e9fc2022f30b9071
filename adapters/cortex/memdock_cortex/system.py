"""`CortexSystem`: a turn is a note, which keeps its words; cortex links it to others, and may merge it into them."""

import asyncio
import re
import sqlite3
import uuid
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from importlib.metadata import version
from typing import Any, TypeVar

from memdock.adapter.model_calls import model_calls
from memdock.adapter.native_ids import NativeIds
from memdock.errors import MemdockError, error
from memdock.system import Batch, Outcome, SystemInfo
from memdock.types import (
    Component,
    Erasure,
    Feature,
    Memory,
    Model,
    Query,
    Residue,
    Selection,
    Software,
    Source,
    Support,
    Turn,
    TurnError,
    TurnState,
)
from memdock_cortex.doors import Models
from memdock_cortex.framework import COMMIT, UNKNOWN, Cortex, merged_into
from memdock_cortex.store import Note, Store

ResultT = TypeVar("ResultT")

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
_RETRYABLE = frozenset(
    {
        "PROVIDER_RATE_LIMITED",
        "PROVIDER_TIMEOUT",
        "PROVIDER_UNREACHABLE",
        "PROVIDER_PROTOCOL_ERROR",
        "STORE_UNREACHABLE",
    }
)


class CortexSystem:
    """See `memdock.system.System`. `store` and `models` are those that `cortex` stands on."""

    def __init__(self, name: str, cortex: Cortex, store: Store, ids: NativeIds, models: Models) -> None:
        self._cortex = cortex
        self._store = store
        self._ids = ids
        self.info = SystemInfo(
            name=name,
            adapter=Software(name="memdock-cortex", version=version("memdock-cortex")),
            framework=Software(name="cortex", version=COMMIT),
            features={**dict.fromkeys(_NATIVE, Support.NATIVE), **dict.fromkeys(_EMULATED, Support.EMULATED)},
            models=(
                Model(purpose="extraction", name=models.chat_model),
                Model(purpose="embedding", name=models.embedder_model, dimension=models.dimension),
            ),
            config={"store": "chroma", "smart_collections": False, "memory_source": "ltm"},
        )

    async def add(self, space: str, turns: Sequence[Turn], *, final: bool) -> Batch:  # noqa: ARG002 - nothing waits
        """One note a turn, in order; a turn that fails leaves the others be."""
        return Batch(outcomes=[await self._add(space, turn) for turn in turns])

    async def _add(self, space: str, turn: Turn) -> Outcome:
        note_id = str(uuid.uuid4())
        # Noted before, so that what a kill leaves behind is found when the turn comes again.
        source = Source(session_id=turn.session_id, turn_id=turn.turn_id)
        await asyncio.to_thread(self._ids.add, space, [note_id], [source])
        text = f"{turn.name or turn.role}: {turn.text}"
        try:
            await self._ask(space, "extraction", lambda: self._cortex.add(user_of(space), note_id, text, turn.time))
        except MemdockError as fault:
            await self._erase(space, [note_id])
            told = TurnError(reason=fault.reason, message=fault.message, retryable=fault.reason in _RETRYABLE)
            return Outcome(state=TurnState.FAILED, error=told)
        return Outcome(state=TurnState.SEARCHABLE, memory_ids=(note_id,))

    async def retrieve(self, space: str, query: Query) -> Sequence[Memory]:
        """cortex's search of its long-term memory, filtered there."""
        if not query.text.strip():
            return []
        where = await asyncio.to_thread(self._where, space, query)
        found = await self._ask(
            space, "query", lambda: self._cortex.search(user_of(space), query.text, where, k=query.top_k)
        )
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
        left = await _told(lambda: self._store.reset(user_of(space)))
        await asyncio.to_thread(self._ids.remove_space, space)
        return _residue(left)

    async def check_ready(self) -> None:
        """Raises STORE_UNREACHABLE while chroma's file cannot be read."""
        await _told(self._store.check)

    async def _erase(self, space: str, note_ids: Sequence[str]) -> tuple[Residue, ...]:
        # A note that had changed is embedded anew where it becomes what it was.
        left = await self._ask(space, "forgetting", lambda: self._cortex.erase(user_of(space), note_ids))
        await asyncio.to_thread(self._ids.remove, space, note_ids)
        return _residue(left)

    async def _notes(self, space: str, note_ids: Iterable[str] | None = None) -> list[Note]:
        ids = None if note_ids is None else list(note_ids)
        return await _told(lambda: self._store.notes(user_of(space), ids))

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

    async def _ask(self, space: str, purpose: str, work: Callable[[], ResultT]) -> ResultT:
        """Runs what asks models; of two failures the model's own is told, which is the cause."""
        with model_calls(space, purpose) as calls:
            try:
                result = await _told(work)
            except MemdockError:
                calls.check()
                raise
            calls.check()
            return result


def user_of(space: str) -> str:
    """cortex's name of a space, of letters, digits and _ alone; no two spaces share one."""
    return re.sub("[^A-Za-z0-9]", lambda found: "".join(f"_{byte:02X}" for byte in found[0].encode()), space)


async def _told(work: Callable[[], ResultT]) -> ResultT:
    """A framework's exception by its kind; its words may hold a text of a turn and are left out."""
    try:
        return await asyncio.to_thread(work)
    except MemdockError:
        raise
    except Exception as fault:
        kind = type(fault).__name__
        if isinstance(fault, (OSError, sqlite3.Error)) or type(fault).__module__.startswith("chromadb"):
            raise error("STORE_UNREACHABLE", f"chroma cannot be used now ({kind}).") from fault
        raise error("INTERNAL", f"cortex failed ({kind}).") from fault


def _residue(left: tuple[int, int]) -> tuple[Residue, ...]:
    notes, logged = left
    return (
        Residue(component=Component.VECTOR, items=notes, verified=True),
        Residue(component=Component.HISTORY, items=logged, verified=True, note="chroma's log of writes"),
    )


def _time(note: Note) -> datetime | None:
    said = str(note.fields["timestamp"])
    return None if said == UNKNOWN else datetime.fromisoformat(said)
