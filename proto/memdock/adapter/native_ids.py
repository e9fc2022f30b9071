"""Which memories of a framework came from which turns: a SQLite file beside the ledger.

Frameworks give their memories ids of their own and seldom tell what a memory came from; an adapter knows, since it
gave the turns in. The file holds a text only of turns that were added together, where an adapter keeps them: once one
of them is forgotten, the others are added again without it. What is erased is gone from the file (`secure_delete`, a
truncated log).
"""

import json
import sqlite3
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memdock.errors import error
from memdock.ledger import pack_content, unpack_content
from memdock.types import Source, Turn

_SCHEMA = """
CREATE TABLE IF NOT EXISTS made (
    space TEXT NOT NULL, memory_id TEXT NOT NULL, turn_id TEXT NOT NULL, session_id TEXT NOT NULL,
    place INTEGER NOT NULL,
    PRIMARY KEY (space, memory_id, turn_id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS made_from ON made (space, turn_id);
CREATE TABLE IF NOT EXISTS kept (
    space TEXT NOT NULL, memory_id TEXT NOT NULL, place INTEGER NOT NULL, turn_id TEXT NOT NULL, content BLOB NOT NULL,
    PRIMARY KEY (space, memory_id, place)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS kept_turns ON kept (space, turn_id);
CREATE TABLE IF NOT EXISTS stored_anew (
    space TEXT NOT NULL, without TEXT NOT NULL, turn_id TEXT NOT NULL,
    PRIMARY KEY (space, without, turn_id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS stored_anew_turns ON stored_anew (space, turn_id);
"""


def source_of(turn: Turn) -> Source:
    """The turn as a memory's source."""
    return Source(session_id=turn.session_id, turn_id=turn.turn_id)


class NativeIds:
    """The file is made where it is missing; `OSError` where it cannot be opened.

    Methods take one lock and a few microseconds; those that write also the disk's time, those that erase several times
    that.
    """

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        try:
            self._db = sqlite3.connect(path, check_same_thread=False, timeout=30, isolation_level=None)
            for pragma in ("journal_mode=WAL", "synchronous=FULL", "secure_delete=ON"):
                self._db.execute(f"PRAGMA {pragma}")
            self._db.executescript(_SCHEMA)
        except sqlite3.Error as cause:
            raise OSError(f"the file of native ids {path} cannot be opened ({cause}): mend it") from cause

    def add(
        self, space: str, memory_ids: Sequence[str], sources: Sequence[Source], *, keep: Sequence[Turn] = ()
    ) -> None:
        """Notes that each of these memories came from all of these turns. `keep`: turns that are kept whole with the
        first of the memories, until it is removed or they are dropped.
        """
        kept = [(space, memory_ids[0], n, turn.turn_id, pack_content(turn)) for n, turn in enumerate(keep)]
        with self._writing() as db:
            db.executemany(
                "INSERT OR IGNORE INTO made VALUES (?, ?, ?, ?, (SELECT count(*) FROM made WHERE space = ?))",
                [
                    (space, memory, source.turn_id, source.session_id, space)
                    for memory in memory_ids
                    for source in sources
                ],
            )
            db.executemany("INSERT OR REPLACE INTO kept VALUES (?, ?, ?, ?, ?)", kept)

    def memories_of(self, space: str, turn_ids: Collection[str]) -> list[str]:
        """The memories in which any of these turns has a part, oldest first."""
        query = "SELECT DISTINCT memory_id FROM made WHERE space = ? AND turn_id = ? ORDER BY place"
        found = [row[0] for turn_id in turn_ids for row in self._rows(query, (space, turn_id))]
        return list(dict.fromkeys(found))

    def sources_of(self, space: str, memory_ids: Collection[str]) -> Mapping[str, tuple[Source, ...]]:
        """The turns that each of these memories came from; a memory that is not known is left out."""
        query = "SELECT session_id, turn_id FROM made WHERE space = ? AND memory_id = ? ORDER BY place"
        found = {
            memory_id: tuple(Source(session_id=row[0], turn_id=row[1]) for row in self._rows(query, (space, memory_id)))
            for memory_id in memory_ids
        }
        return {memory_id: sources for memory_id, sources in found.items() if sources}

    def all_of(self, space: str) -> list[str]:
        """All memories of a space, oldest first."""
        query = "SELECT memory_id FROM made WHERE space = ? GROUP BY memory_id ORDER BY min(place)"
        return [row[0] for row in self._rows(query, (space,))]

    def kept(self, space: str, memory_id: str) -> list[Turn]:
        """The turns that are kept of a memory, in their order; their times are in UTC."""
        query = "SELECT turn_id, content FROM kept WHERE space = ? AND memory_id = ? ORDER BY place"
        return [unpack_content(turn_id, content) for turn_id, content in self._rows(query, (space, memory_id))]

    def drop(self, space: str, turn_ids: Collection[str]) -> None:
        """Keeps these turns no longer, nor that they were stored anew; whose sources they are stays."""
        with self._erasing() as db:
            for table in ("kept", "stored_anew"):
                gone = [(space, each) for each in turn_ids]
                db.executemany(f"DELETE FROM {table} WHERE space = ? AND turn_id = ?", gone)  # noqa: S608 - ours

    def store_anew(self, space: str, memory_id: str, turn_ids: Collection[str]) -> None:
        """Forgets an erased memory of which these turns were stored anew, and notes that they were, without the others
        that it came from.
        """
        sources = self.sources_of(space, [memory_id]).get(memory_id, ())
        without = {source.turn_id for source in sources}.difference(turn_ids)
        with self._writing() as db:
            db.executemany(
                "INSERT OR IGNORE INTO stored_anew VALUES (?, ?, ?)",
                [(space, gone, turn_id) for gone in without for turn_id in turn_ids],
            )
        self.remove(space, [memory_id])

    def stored_anew(self, space: str, without: Collection[str]) -> list[str]:
        """The turns that were ever stored anew without any of these, and are not dropped since."""
        query = "SELECT turn_id FROM stored_anew WHERE space = ? AND without = ?"
        return list(dict.fromkeys(row[0] for each in without for row in self._rows(query, (space, each))))

    def remove(self, space: str, memory_ids: Collection[str]) -> None:
        """Forgets memories that are erased, and what is kept of them."""
        with self._erasing() as db:
            for table in ("made", "kept"):
                gone = [(space, each) for each in memory_ids]
                db.executemany(f"DELETE FROM {table} WHERE space = ? AND memory_id = ?", gone)  # noqa: S608 - ours

    def remove_turns(self, space: str, turn_ids: Collection[str], *, but: Collection[str] = ()) -> None:
        """Takes these turns out of the sources of all memories, `but` of these; a memory without another source is not
        known then. What is kept of a turn stays until its memory is removed.
        """
        query = "DELETE FROM made WHERE space = ? AND turn_id = ? AND memory_id NOT IN (SELECT value FROM json_each(?))"
        spared = json.dumps(list(but))
        with self._erasing() as db:
            db.executemany(query, [(space, each, spared) for each in turn_ids])

    def rename(self, space: str, names: Mapping[str, str]) -> None:
        """Gives memories other ids; what was noted under both is one."""
        with self._writing() as db:
            rows = [(new, space, old) for old, new in names.items()]
            db.executemany("UPDATE OR REPLACE made SET memory_id = ? WHERE space = ? AND memory_id = ?", rows)

    def remove_space(self, space: str) -> None:
        """Forgets a space."""
        with self._erasing() as db:
            for table in ("made", "kept", "stored_anew"):
                db.execute(f"DELETE FROM {table} WHERE space = ?", (space,))  # noqa: S608 - ours

    def close(self) -> None:
        """Closes the file."""
        with self._lock:
            self._db.close()

    def _rows(self, query: str, values: tuple[str, ...]) -> list[tuple[Any, ...]]:
        with self._lock, _told():
            return self._db.execute(query, values).fetchall()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._lock, _told(), self._db:
            self._db.execute("BEGIN IMMEDIATE")
            yield self._db

    @contextmanager
    def _erasing(self) -> Iterator[sqlite3.Connection]:
        with self._writing() as db:
            yield db
        with self._lock, _told():
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as cause:
        raise error("STORE_UNREACHABLE", f"The file of native ids cannot be used now: {cause}.") from cause
