"""cortex itself: a memory system for each call, with what the store holds of one user, and doors that tell failures.

The only file that knows the framework. cortex keeps notes in the process, too, which a restart forgets; here they are
read from the store for each add, so that a process that has run for long and one that has just begun do the same.
"""

import json
import logging
import sys
from collections.abc import Collection, Mapping
from contextvars import ContextVar
from datetime import datetime
from types import ModuleType, SimpleNamespace
from typing import Any

from memdock.adapter.model_calls import check_calls
from memdock.errors import error
from memdock_cortex.doors import Doors, Models, seen_by
from memdock_cortex.store import Note, Store

_litellm = ModuleType("litellm")
_litellm.completion = None  # type: ignore[attr-defined] # cortex has it for ollama alone, and it takes 15 s to import
sys.modules.setdefault("litellm", _litellm)

from cortex import memory_system, stm  # noqa: E402
from cortex.ltm import LongTermMemory  # noqa: E402
from cortex.memory_note import MemoryNote  # noqa: E402
from cortex.retrieval.retrievers import ChromaRetriever  # noqa: E402

COMMIT = "5ad7aaa71e1024b7c57fded064c4a8b315386fe1"
"""Of the source, as in `source.txt`: cortex has no versions."""

Found = Mapping[str, Any]
UNKNOWN = "unknown"
"""The time of a note whose time is not known: without one cortex takes the time of day. It reads it as no time."""

_NOBODY = SimpleNamespace(search=lambda *_, **__: [], get_document=lambda _: None)
_JSON = ("keywords", "tags", "links", "evolution_history")
_lost: ContextVar[list[str] | None] = ContextVar("memdock_cortex_lost", default=None)


class _Losses(logging.Handler):
    """Notes that cortex logged an error in the call that it was in; no text of its log goes anywhere."""

    def emit(self, record: logging.LogRecord) -> None:
        lost = _lost.get()
        if lost is not None:
            lost.append(record.funcName)


class _NothingStored(dict[str, str]):
    """cortex deletes what it knows to be stored before it stores it again: a failure in between would lose a note."""

    def __setitem__(self, key: str, value: str) -> None:
        pass


class Cortex:
    """cortex on a store. Methods block, and may be called from several threads; adds of one user one after another."""

    def __init__(self, store: Store, models: Models) -> None:
        logger = logging.getLogger("cortex")
        logger.propagate = False  # its log holds texts of turns
        logger.handlers[:] = [_Losses()]
        logger.setLevel(logging.ERROR)
        # What it makes of them would ask for keys in the environment; each call gets its doors instead.
        memory_system.LLMController = memory_system.EmbeddingManager = stm.EmbeddingManager = lambda *_: None
        self._store = store
        self._models = models

    def add(self, user: str, note_id: str, text: str, said: datetime | None) -> None:
        """Adds a note under an id of ours."""
        doors = Doors(self._models, self._store, user, note_id)
        system = self._system(doors)
        system.memories = {note.note_id: _remembered(note, user) for note in self._store.notes(user)}
        self._call(
            doors,
            lambda: system.add_note(text, time=said.isoformat() if said else UNKNOWN, user_id=user, id=note_id),
        )
        check_calls()
        doors.commit()
        if not self._store.notes(user, [note_id]):
            raise error("INTERNAL", "cortex did not store the note.")

    def search(self, user: str, query: str, where: Mapping[str, Any] | None, *, k: int) -> list[Found]:
        """Its notes with their scores, best first: `id`, `content`, `score` and their fields."""
        doors = Doors(self._models, self._store, user)
        system = self._system(doors)
        found: list[Found] = self._call(
            doors,
            lambda: system.search(query, limit=k, memory_source="ltm", user_id=user, where_filter=where),
        )
        return found

    def erase(self, user: str, note_ids: Collection[str], *, for_good: bool = True) -> tuple[int, int]:
        """Erases notes, and brings those into which their words may have come back to what they were at first.

        Asks the embedder where the text of such a one had changed. `for_good` and what is left: see `Store.erase`.
        """
        gone = set(note_ids)
        touched = [
            note for note in self._store.notes(user, vectors=True) if note.note_id not in gone and seen_by(note) & gone
        ]
        restored = [self._restored(note) for note in touched]
        if restored:
            self._store.write(user, restored)
        return self._store.erase(user, gone, [note.note_id for note in restored], for_good=for_good)

    def _restored(self, note: Note) -> Note:
        first = json.loads(note.fields["origin"])
        vector = note.vector if note.text == first["text"] else self._models.vector(first["text"])
        return Note(note_id=note.note_id, text=first["text"], fields=first["fields"], vector=vector)

    def _system(self, doors: Doors) -> Any:
        system = memory_system.AgenticMemorySystem(enable_smart_collections=False, enable_background_processing=False)
        system.embedding_manager = system.stm.embedding_manager = doors
        system.llm_controller = SimpleNamespace(llm=doors)
        retriever = object.__new__(ChromaRetriever)
        retriever.collection_name = "memories"
        retriever.collection = retriever.embedding_manager = doors
        retriever.content_hashes = _NothingStored()
        system.ltm = LongTermMemory()
        # Where a user's search finds nothing it looks at notes that are nobody's: there are none.
        system.ltm._get_collection = lambda user, _session: retriever if user else _NOBODY  # noqa: SLF001
        return system

    def _call(self, doors: Doors, work: Any) -> Any:
        lost: list[str] = []
        token = _lost.set(lost)
        try:
            result = work()
        finally:
            _lost.reset(token)
        if doors.faults:
            raise doors.faults[0]
        if lost:
            raise error("INTERNAL", f"cortex went on without a part of what it was given ({lost[0]}).")
        return result


def merged_into(note: Note) -> list[str]:
    """The ids of the notes that cortex has merged into this one, the oldest first."""
    records = json.loads(note.fields.get("evolution_history", "[]"))
    found = [record.get("augmented_with") or record.get("merged_from") for record in records]
    return [str(each) for each in found if each]


def _remembered(note: Note, user: str) -> Any:
    values = {name: json.loads(note.fields[name]) for name in _JSON if name in note.fields}
    more = {name: note.fields[name] for name in ("timestamp", "last_accessed", "context", "category")}
    return MemoryNote(note.text, id=note.note_id, user_id=user, **values, **more)
