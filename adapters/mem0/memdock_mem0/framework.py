"""mem0 itself: opened without telemetry, and asked so that a failure is one.

The only file that knows the framework. Each add bears a `group` of ours in its metadata, so that its memories can be
found again however far it came.
"""

import logging
import os
import sqlite3
import uuid
from collections.abc import Sequence
from contextlib import closing
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from memdock.adapter.command import ModelAt, models_of
from memdock.errors import error
from memdock_mem0.extraction import checked

Record = dict[str, Any]

# What mem0 logs where it goes on without a part of what it was given.
_LOSSES = (
    "Failed to embed memory text",
    "Failed to insert memory",
    "Failed to add history",
    "Batch entity insert failed",
    "Batch entity linking failed",
    "Entity store cleanup failed",
    "Entity boost",
)
_ALL = 1_000_000
_lost: ContextVar[list[str] | None] = ContextVar("memdock_mem0_lost", default=None)


class _Losses(logging.Handler):
    """Keeps what the framework lost in the call that it was in; no text of its log goes anywhere."""

    def emit(self, record: logging.LogRecord) -> None:
        lost, said = _lost.get(), str(record.msg)
        loss = next((each for each in _LOSSES if said.startswith(each)), None)
        if lost is not None and loss is not None:
            lost.append(loss)


class Mem0:
    """mem0 on the database `url`. Methods block, and may be called from several threads.

    What the framework lost on its way is raised as INTERNAL, by the words of its log.
    """

    def __init__(self, url: str, folder: Path, chat: ModelAt, embedder: ModelAt, *, max_tokens: int) -> None:
        os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(folder)}
        from mem0 import Memory
        from mem0.memory import notices

        notices._fetch_remote_config = lambda: None  # noqa: SLF001 - it asks a host of its maker's in any search
        logger = logging.getLogger("mem0")
        logger.propagate = False  # its log holds texts of turns
        logger.handlers[:] = [_Losses(logging.WARNING)]
        logger.setLevel(logging.WARNING)
        models = {
            "llm": {
                "provider": "openai",
                "config": {
                    "model": chat.model, "openai_base_url": chat.url, "api_key": chat.key, "max_tokens": max_tokens,
                },
            },
            "embedder": {
                "provider": "openai",
                "config": {"model": embedder.model, "openai_base_url": embedder.url, "api_key": embedder.key},
            },
        }  # fmt: skip
        store = {
            "provider": "pgvector",
            "config": {
                "connection_string": url,
                "collection_name": "mem0",
                "embedding_model_dims": embedder.dimension,
                "hnsw": False,
                "maxconn": 16,
            },
        }
        history = folder / "history.sqlite"
        _check_history(history)
        self._memory = Memory.from_config({**models, "vector_store": store, "history_db_path": str(history)})
        self._memory.llm.generate_response = checked(self._memory.llm.generate_response)
        self._memory.vector_store._ensure_collection()  # noqa: SLF001 - two first calls at once would both make it
        self._memory.entity_store._ensure_collection()  # noqa: SLF001 - and a fresh process would not clean it
        self._memory.db.connection.execute("PRAGMA secure_delete=ON")
        self.models = models_of(chat, embedder)

    def add(self, space: str, messages: Sequence[Record], metadata: Record, *, prompt: str) -> list[str]:
        """Extracts memories from messages; their ids, none where there was nothing to remember."""
        with _no_losses():
            found = self._memory.add(list(messages), user_id=space, metadata=metadata, prompt=prompt)
        return [each["id"] for each in found["results"]]

    def search(self, space: str, query: str, filters: Record, *, k: int) -> list[Record]:
        """Its memories with their scores, best first."""
        with _no_losses():
            found: list[Record] = self._memory.search(
                query, filters={"user_id": space, **filters}, top_k=k, threshold=0.0
            )["results"]
        return found

    def memories(self, space: str, **wanted: str) -> list[Record]:
        """Every memory of a space with these fields of metadata: `id`, `data` (its text) and its metadata."""
        rows = self._memory.vector_store.list(filters={"user_id": space, **wanted}, top_k=_ALL)[0]
        return [{"id": row.id, **row.payload} for row in rows]

    def memory(self, space: str, memory_id: str) -> Record | None:
        """One memory of a space; `None` where there is none, or it is another space's.

        An id has one form, that of `str(UUID)`: the store would find it by others as well, and refuse what is none.
        """
        try:
            known = str(uuid.UUID(memory_id)) == memory_id
        except ValueError:
            known = False
        if not known:
            return None
        row = self._memory.vector_store.get(vector_id=memory_id)
        return {"id": row.id, **row.payload} if row is not None and row.payload.get("user_id") == space else None

    def erase(self, space: str, memory_ids: Sequence[str]) -> None:
        """Deletes memories, their entities, their history, and the messages that the framework keeps of the space.

        It keeps the last ten messages of a space and shows them to the model at the next add; which of them a memory
        came from it does not know.
        """
        with _no_losses():
            for memory_id in memory_ids:
                self._memory.delete(memory_id)
        with self._history() as db:
            db.executemany("DELETE FROM history WHERE memory_id = ?", [(each,) for each in memory_ids])
            db.execute("DELETE FROM messages WHERE session_scope = ?", (self._scope(space),))

    def left_in_history(self, space: str, memory_ids: Sequence[str]) -> int:
        """How many rows of history and messages there are of these memories and this space."""
        with self._history() as db:
            marks = ",".join("?" * len(memory_ids))
            rows = db.execute(f"SELECT count(*) FROM history WHERE memory_id IN ({marks})", list(memory_ids))  # noqa: S608
            messages = db.execute("SELECT count(*) FROM messages WHERE session_scope = ?", (self._scope(space),))
            return int(rows.fetchone()[0]) + int(messages.fetchone()[0])

    def entities(self, space: str) -> list[Record]:
        """The names that it keeps for a space, with the memories that they stand in."""
        rows = self._memory.entity_store.list(filters={"user_id": space}, top_k=_ALL)[0]
        return [{"id": row.id, **row.payload} for row in rows]

    def erase_entities(self, space: str) -> None:
        """Deletes all names of a space."""
        for entity in self.entities(space):
            self._memory.entity_store.delete(vector_id=entity["id"])

    def close(self) -> None:
        """Closes the store's connections and the history."""
        self._memory.vector_store.connection_pool.close()
        self._memory.entity_store.connection_pool.close()
        self._memory.close()

    @staticmethod
    def _scope(space: str) -> str:
        from mem0.memory.main import _build_session_scope

        scope: str = _build_session_scope({"user_id": space})
        return scope

    def _history(self) -> "_Transaction":
        return _Transaction(self._memory.db)


def _check_history(file: Path) -> None:
    """Raises `OSError` where it is none: mem0's own object, half made, would write a trace as it goes."""
    try:
        with closing(sqlite3.connect(file)) as db:
            db.execute("SELECT count(*) FROM sqlite_master")
    except sqlite3.Error as cause:
        raise OSError(f"mem0's history {file} cannot be opened ({cause}): mend it") from cause


class _Transaction:
    """Work on mem0's own SQLite file, between its own."""

    def __init__(self, manager: Any) -> None:
        self._lock, self._db = manager._lock, manager.connection  # noqa: SLF001

    def __enter__(self) -> sqlite3.Connection:
        self._lock.acquire()
        db: sqlite3.Connection = self._db
        return db

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            self._db.rollback() if kind else self._db.commit()
        finally:
            self._lock.release()


class _no_losses:  # noqa: N801 - read as a word of the sentence
    """Raises what the framework lost inside the block."""

    def __enter__(self) -> None:
        self._lost: list[str] = []
        self._token = _lost.set(self._lost)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        _lost.reset(self._token)
        if kind is None and self._lost:
            raise error("INTERNAL", f"mem0 went on without a part of what it was given: {self._lost[0]}.")
