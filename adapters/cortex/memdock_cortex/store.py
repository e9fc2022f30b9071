"""Notes in chroma: a collection a user, in one SQLite file, from which what is erased is gone.

One lock around all of it: chroma's library and a connection of ours to its file would wait for each other for good.
"""

import shutil
import sqlite3
import threading
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import chromadb
from chromadb.config import Settings
from chromadb.errors import ChromaError, NotFoundError

Fields = Mapping[str, Any]
_NEW = ".new"  # of a collection that takes the place of another; no user's name has a dot
_BATCH = 1000
_SMALL_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What is stored of a note: its text, the metadata beside it (numbers and strings), its vector where asked for."""

    note_id: str
    text: str
    fields: Fields
    vector: Sequence[float] = ()


class Store:
    """chroma in a folder; raises `OSError` where that cannot be opened.

    Methods block, and may be called from several threads.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._lock = threading.Lock()
        self._scrubbing = threading.Lock()
        self._deletions = self._scrubbed = 0
        try:
            self._client = chromadb.PersistentClient(path=str(folder), settings=Settings(anonymized_telemetry=False))
        except ChromaError as problem:
            raise OSError(f"the notes in {folder} cannot be opened: {problem}") from problem
        self._finish_rewriting()
        self._drop_orphans()

    def count(self, user: str) -> int:
        """How many notes a user has."""
        with self._lock:
            found = self._collection(user)
            return 0 if found is None else int(found.count())

    def notes(self, user: str, note_ids: Collection[str] | None = None, *, vectors: bool = False) -> list[Note]:
        """A user's notes, or those of these ids; with their vectors where asked for."""
        with self._lock:
            found = self._collection(user)
            if found is None or (note_ids is not None and not note_ids):
                return []
            include = ["documents", "metadatas", *(["embeddings"] if vectors else [])]
            got = found.get(ids=None if note_ids is None else list(note_ids), include=include)
        places = range(len(got["ids"]))
        return [
            Note(
                note_id=got["ids"][place],
                text=got["documents"][place],
                fields=got["metadatas"][place],
                vector=[float(each) for each in got["embeddings"][place]] if vectors else (),
            )
            for place in places
        ]

    def get(self, user: str, **asked: Any) -> Any:
        """A collection's `get`."""
        with self._lock:
            found = self._collection(user)
            return {} if found is None else found.get(**asked)

    def query(self, user: str, **asked: Any) -> Any:
        """A collection's `query`."""
        with self._lock:
            found = self._collection(user)
            nothing: dict[str, Any] = {name: [[]] for name in ("ids", "documents", "metadatas", "distances")}
            return nothing if found is None else found.query(**asked)

    def write(self, user: str, notes: Sequence[Note]) -> None:
        """Stores notes in one transaction, in the place of those with the same ids."""
        before = {note.note_id: note.fields for note in self.notes(user, [note.note_id for note in notes])}
        with self._lock:
            collection = self._create(_name(user))
            collection.upsert(
                ids=[note.note_id for note in notes],
                documents=[note.text for note in notes],
                embeddings=[list(note.vector) for note in notes],
                # Fields that are not named would stay.
                metadatas=[{**dict.fromkeys(before.get(note.note_id, {})), **note.fields} for note in notes],
            )

    def erase(
        self, user: str, note_ids: Collection[str], rewritten: Collection[str] = (), *, for_good: bool = True
    ) -> tuple[int, int]:
        """Erases notes, and earlier states of those that were `rewritten`.

        How many notes, and how many rows of chroma's log of writes, are left. Unless `for_good`, nothing is looked for,
        and the file keeps pieces of them until something else is erased for good.
        """
        with self._lock:
            found = self._collection(user)
            if found is not None and note_ids:
                found.delete(ids=list(note_ids))
                if self._is_indexed(found):
                    self._rewrite(user, found)
            self._drop_log({*note_ids, *rewritten})
        if not for_good:
            return 0, 0
        logged = self._scrub({*note_ids, *rewritten})
        return len(self.notes(user, note_ids)), logged

    def reset(self, user: str) -> tuple[int, int]:
        """Erases all of a user's notes; what is left, as `erase` tells it."""
        with self._lock:
            found = self._collection(user)
            if found is not None:
                self._client.delete_collection(_name(user))
                self._drop_orphans()
        logged = self._scrub(())
        return self.count(user), logged

    def check(self) -> None:
        """Raises while the file cannot be read."""
        with self._lock:
            self._client.heartbeat()
            with closing(self._file()) as db:
                db.execute("SELECT count(*) FROM collections")

    def close(self) -> None:
        """Lets chroma go."""
        self._client.close()

    def _collection(self, user: str) -> Any:
        try:
            return self._client.get_collection(_name(user), embedding_function=None)
        except NotFoundError:
            return None

    def _scrub(self, note_ids: Collection[str]) -> int:
        """Writes the file anew without what was deleted; how many rows the log still has of states that are past.

        Of those that wait for it, one does it for all.
        """
        with self._lock:
            self._deletions += 1
            wanted = self._deletions
        with self._scrubbing:
            if self._scrubbed < wanted:
                with self._lock, closing(self._file()) as db:
                    covered = self._deletions
                    db.execute("INSERT INTO embedding_fulltext_search (embedding_fulltext_search) VALUES ('optimize')")
                    db.execute("VACUUM")
                self._scrubbed = covered
        with self._lock, closing(self._file()) as db:
            return len(_past_writes(db, note_ids))

    def _is_indexed(self, collection: Any) -> bool:
        """Whether an index file is there, which chroma begins near a thousand notes; what is deleted stays in it."""
        with closing(self._file()) as db:
            rows = db.execute("SELECT id FROM segments WHERE collection = ?", (str(collection.id),)).fetchall()
        return any((self._folder / str(row[0]) / "data_level0.bin").exists() for row in rows)

    def _rewrite(self, user: str, old: Any) -> None:
        """Puts another collection, with an index of its own, in the place of a user's."""
        new = self._create(_name(user) + _NEW)
        ids = old.get(include=[])["ids"]
        for start in range(0, len(ids), _BATCH):
            got = old.get(ids=ids[start : start + _BATCH], include=["documents", "metadatas", "embeddings"])
            new.add(**{name: got[name] for name in ("ids", "documents", "metadatas", "embeddings")})
        self._client.delete_collection(_name(user))
        new.modify(name=_name(user))
        self._drop_orphans()

    def _finish_rewriting(self) -> None:
        """After a kill in `_rewrite`: the old collection is whole until it is deleted, and the new one then."""
        names = {each.name for each in self._client.list_collections()}
        for name in names:
            if not name.endswith(_NEW):
                continue
            if name.removesuffix(_NEW) in names:
                self._client.delete_collection(name)
            else:
                self._client.get_collection(name, embedding_function=None).modify(name=name.removesuffix(_NEW))

    def _create(self, name: str) -> Any:
        return self._client.get_or_create_collection(name, metadata={"hnsw:space": "cosine"}, embedding_function=None)

    def _drop_orphans(self) -> None:
        """Removes the index files of collections that are deleted, which chroma leaves."""
        with closing(self._file()) as db:
            held = {str(row[0]) for row in db.execute("SELECT id FROM segments")}
        for path in self._folder.iterdir():
            if path.is_dir() and path.name not in held:
                shutil.rmtree(path)

    def _drop_log(self, note_ids: Collection[str]) -> None:
        """chroma logs each write with its text; when it starts again it needs the newest row of a note alone."""
        with closing(self._file()) as db:
            past = _past_writes(db, note_ids)
            db.executemany("DELETE FROM embeddings_queue WHERE seq_id = ?", [(each,) for each in past])

    def _file(self) -> sqlite3.Connection:
        path = self._folder / "chroma.sqlite3"
        db = sqlite3.connect(path, timeout=60, isolation_level=None)
        if path.stat().st_size < _SMALL_BYTES:
            db.execute("PRAGMA temp_store = MEMORY")  # to write it anew takes a third of the time then
        return db


def _past_writes(db: sqlite3.Connection, note_ids: Collection[str]) -> list[int]:
    """The rows of chroma's log that tell states of these notes which are past."""
    rows = db.execute("SELECT id, seq_id FROM embeddings_queue ORDER BY seq_id") if note_ids else ()
    writes: dict[str, list[int]] = {note_id: [] for note_id in note_ids}
    for note_id, place in rows:
        if note_id in writes:
            writes[note_id].append(place)
    return [place for places in writes.values() for place in places[:-1]]


def _name(user: str) -> str:
    return f"memories_{user}"
