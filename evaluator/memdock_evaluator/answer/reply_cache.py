"""Replies of models, kept for the next run that asks the same: a SQLite file, which several processes may share.

It holds digests of requests, never a prompt, and the replies as they came. Each reply is kept with the spaces whose
memories stood in its prompt; `purge` takes away all that was derived from a space, and keeps it from coming back.
"""

import os
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from memdock_evaluator.answer.completion import Completion

_APPLICATION = 0x4D64_4B52
"""Written into the file's head, so that no other database is taken for a cache."""

_BUSY_TIMEOUT_S = 10.0
_PRAGMAS = (
    "PRAGMA synchronous = NORMAL",
    "PRAGMA secure_delete = ON",  # what is purged is overwritten
)
_TABLES = (
    """CREATE TABLE IF NOT EXISTS replies (
      key BLOB PRIMARY KEY, text TEXT NOT NULL, input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL,
      estimated INTEGER NOT NULL
    ) WITHOUT ROWID""",
    "CREATE TABLE IF NOT EXISTS spaces (space TEXT, key BLOB, PRIMARY KEY (space, key)) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS spaces_by_key ON spaces (key)",
    "CREATE TABLE IF NOT EXISTS purged (space TEXT PRIMARY KEY) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS payers (key BLOB, run TEXT, PRIMARY KEY (key, run)) WITHOUT ROWID",
    f"PRAGMA application_id = {_APPLICATION}",
)

ResultT = TypeVar("ResultT")


class CacheError(Exception):
    """The cache cannot be used; the message names the file and says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheFacts:
    """How much there is. `spaces`: replies by space; a reply of several counts for each, one of none for none."""

    replies: int
    bytes: int
    spaces: Mapping[str, int]


class ReplyCache:
    """All methods raise `CacheError`."""

    def __init__(self, address: str, *, create: bool = True) -> None:
        """`address`: a path on this machine, also as `file://`; other places cannot be shared safely."""
        if "://" in address and not address.startswith("file://"):
            raise CacheError(f"the cache {address}: it must be a file on this machine, such as replies.sqlite")
        self.path = Path(address.removeprefix("file://"))
        if not create and not self.path.is_file():
            raise CacheError(f"there is no cache {self.path}")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))  # replies are as private as what they tell
        except OSError as error:
            raise CacheError(f"the cache {self.path} cannot be opened ({error.strerror})") from error
        self._database = self._tried(lambda: sqlite3.connect(self.path, timeout=_BUSY_TIMEOUT_S, isolation_level=None))
        try:
            self._tried(self._begin)
        except CacheError:
            self._database.close()
            raise

    def _begin(self) -> None:
        for pragma in _PRAGMAS:
            self._database.execute(pragma)
        with self._transaction():  # with the lock, so that what another process just makes is seen whole
            of_ours = self._database.execute("PRAGMA application_id").fetchone()[0] == _APPLICATION
            if not of_ours and self._database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                raise CacheError(f"{self.path} is another database, no cache of replies: give another file")
            for statement in _TABLES:  # also what a cache of an earlier version lacks
                self._database.execute(statement)
        self._write_ahead()

    def _write_ahead(self) -> None:
        """A killed process leaves the file whole, and readers do not wait for a writer. SQLite itself waits for
        nobody in this one change, and fails where another process has just begun with the file."""
        end = time.monotonic() + _BUSY_TIMEOUT_S
        while True:
            try:
                self._database.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                    raise
                time.sleep(0.01)

    def get(self, key: bytes, spaces: Sequence[str]) -> Completion | None:
        """The reply to a request, which from now on is also known to derive from `spaces`."""
        return self._tried(lambda: self._get(key, spaces))

    def put(self, key: bytes, reply: Completion, spaces: Sequence[str], *, run: str = "") -> None:
        """Keeps a reply, unless one of `spaces` was purged. `run`: the id of the run that paid for it, "" for none."""
        self._tried(lambda: self._put(key, reply, spaces, run))

    def was_paid_by(self, key: bytes, run: str) -> bool:
        """Whether this run asked the model for the reply, rather than found it here."""
        query = "SELECT EXISTS (SELECT 1 FROM payers WHERE key = ? AND run = ?)"
        return self._tried(lambda: bool(self._database.execute(query, (key, run)).fetchone()[0]))

    def purge(self, space: str) -> int:
        """Takes away what derives from a space, from the file's pages too, and gives the number of replies."""
        return self._tried(lambda: self._purge(space))

    def facts(self) -> CacheFacts:
        """What `memdock-eval cache show` tells."""
        return self._tried(self._facts)

    def close(self) -> None:
        """Closes the file."""
        self._tried(self._database.close)

    def _get(self, key: bytes, spaces: Sequence[str]) -> Completion | None:
        found = self._database.execute(
            "SELECT text, input_tokens, output_tokens, estimated FROM replies WHERE key = ?", (key,)
        ).fetchone()
        if found is None:
            return None
        self._derive(key, spaces)
        text, input_tokens, output_tokens, estimated = found
        return Completion(text=text, input_tokens=input_tokens, output_tokens=output_tokens, estimated=bool(estimated))

    def _derive(self, key: bytes, spaces: Sequence[str]) -> None:
        self._database.executemany(
            "INSERT OR IGNORE INTO spaces SELECT ?1, ?2 WHERE NOT EXISTS (SELECT 1 FROM purged WHERE space = ?1) "
            "AND EXISTS (SELECT 1 FROM replies WHERE key = ?2)",
            [(space, key) for space in spaces],
        )

    def _put(self, key: bytes, reply: Completion, spaces: Sequence[str], run: str) -> None:
        with self._transaction():
            purged = (self._database.execute("SELECT 1 FROM purged WHERE space = ?", (space,)) for space in spaces)
            if any(row.fetchone() for row in purged):
                return
            self._database.execute(
                "INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?, ?)",
                (key, reply.text, reply.input_tokens, reply.output_tokens, reply.estimated),
            )
            if run:
                self._database.execute("INSERT OR IGNORE INTO payers VALUES (?, ?)", (key, run))
            self._derive(key, spaces)

    def _purge(self, space: str) -> int:
        with self._transaction():
            keys = self._database.execute("SELECT key FROM spaces WHERE space = ?", (space,)).fetchall()
            self._database.executemany("DELETE FROM replies WHERE key = ?", keys)
            self._database.executemany("DELETE FROM spaces WHERE key = ?", keys)
            self._database.executemany("DELETE FROM payers WHERE key = ?", keys)
            self._database.execute("INSERT OR IGNORE INTO purged VALUES (?)", (space,))
        busy, _, _ = self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            said = "the replies are gone, but another process keeps old pages in use: purge again when it has ended"
            raise CacheError(f"the cache {self.path}: {said}")
        return len(keys)

    def _facts(self) -> CacheFacts:
        (replies,) = self._database.execute("SELECT count(*) FROM replies").fetchone()
        spaces = self._database.execute("SELECT space, count(*) FROM spaces GROUP BY space ORDER BY space").fetchall()
        return CacheFacts(replies=replies, bytes=self.path.stat().st_size, spaces=dict(spaces))

    def _transaction(self) -> "_Transaction":
        return _Transaction(self._database)

    def _tried(self, work: Callable[[], ResultT]) -> ResultT:
        try:
            return work()
        except (sqlite3.Error, OSError) as error:
            raise CacheError(f"the cache {self.path} cannot be used ({error})") from error


class _Transaction:
    """Whole or not at all, with the lock of the file from its beginning."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def __enter__(self) -> None:
        self._database.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._database.execute("COMMIT" if kind is None else "ROLLBACK")
