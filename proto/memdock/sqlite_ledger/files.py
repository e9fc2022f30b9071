"""The ledger's files: its owner, its connections, its tables."""

import fcntl
import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memdock.errors import UnavailableError

_VERSION = 1
_BUSY_TIMEOUT_S = 10.0
_OLDEST_SQLITE = (3, 38, 0)  # json_each is built in, RETURNING is known

_SCHEMA = """
CREATE TABLE keys (name TEXT PRIMARY KEY, key BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE turns (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    space TEXT NOT NULL,
    turn_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    digest BLOB NOT NULL,
    state TEXT NOT NULL,
    started INTEGER NOT NULL DEFAULT 0,
    retried INTEGER NOT NULL DEFAULT 0,
    memory_ids TEXT,
    error TEXT,
    content BLOB,
    UNIQUE (space, turn_id)
);
CREATE INDEX turns_in_order ON turns (space);
CREATE INDEX turns_pending ON turns (space) WHERE state = 'PENDING';
CREATE INDEX turns_failed ON turns (space) WHERE state = 'FAILED';
CREATE TABLE erasures (
    erasure_id INTEGER PRIMARY KEY AUTOINCREMENT,
    space TEXT NOT NULL,
    kind TEXT NOT NULL,
    request_id TEXT NOT NULL,
    fingerprint BLOB NOT NULL,
    intent TEXT,
    answer BLOB
);
CREATE UNIQUE INDEX erasures_by_request ON erasures (space, request_id) WHERE request_id != '';
CREATE INDEX erasures_open ON erasures (space) WHERE intent IS NOT NULL;
CREATE TABLE usage (
    space TEXT NOT NULL,
    model TEXT NOT NULL,
    purpose TEXT NOT NULL,
    calls INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    estimated INTEGER NOT NULL,
    PRIMARY KEY (space, model, purpose)
) WITHOUT ROWID;
"""


class Owner:
    """The right to use a file or folder, `what` in words: an advisory lock on a file beside it, which the kernel frees
    at a kill. Raises `UnavailableError` where another process has it; `instead` says what one can do but stop that.
    """

    def __init__(self, path: Path, what: str, instead: str) -> None:
        lock_path = path.with_name(path.name + ".owner")
        self._descriptor = os.open(lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(self._descriptor, 32).decode(errors="replace").strip() or "unknown"
            os.close(self._descriptor)
            raise UnavailableError(
                "STORE_UNREACHABLE",
                f"{what} is in use by process {holder}; stop that one, or {instead}.",
            ) from None
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Lets another process take the ledger."""
        os.close(self._descriptor)


def is_of_the_disk(error: sqlite3.Error) -> bool:
    """Whether it says that the file cannot be read or written, or is damaged (which has no class of its own)."""
    return isinstance(error, sqlite3.OperationalError) or type(error) is sqlite3.DatabaseError


def open_writer(path: Path) -> sqlite3.Connection:
    """The only connection that writes: every commit is on the disk, what is deleted is overwritten."""
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        needed = ".".join(map(str, _OLDEST_SQLITE))
        raise UnavailableError("STORE_UNREACHABLE", f"SQLite {needed} is needed, this is {sqlite3.sqlite_version}.")
    path.touch(mode=0o600)  # it holds what people said; SQLite gives the files beside it the same mode
    with _opened(path) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA secure_delete = ON")
        _create_tables(connection, path)
    return connection


def open_reader(path: Path) -> tuple[sqlite3.Connection, bytes]:
    """A connection that reads beside the writer, and the key under which this ledger keeps content digests."""
    with _opened(path) as connection:
        connection.execute("PRAGMA query_only = ON")
        row = connection.execute("SELECT key FROM keys WHERE name = 'digest'").fetchone()
        if row is None:
            raise sqlite3.DatabaseError("its key is gone")
    return connection, bytes(row[0])


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection, which is closed where the block fails."""
    try:
        connection = sqlite3.connect(path, timeout=_BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)
    except sqlite3.Error as problem:
        raise _not_opened(path, problem) from None
    try:
        yield connection
    except BaseException as problem:
        connection.close()
        if isinstance(problem, sqlite3.Error):
            raise _not_opened(path, problem) from None
        raise


def _not_opened(path: Path, problem: Exception) -> UnavailableError:
    return UnavailableError(
        "STORE_UNREACHABLE", f"The ledger {path} cannot be opened ({problem}); name another file, or mend it."
    )


def _create_tables(connection: sqlite3.Connection, path: Path) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version == 0:
        connection.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA user_version = {_VERSION};")
        connection.execute("INSERT INTO keys VALUES ('digest', ?)", (secrets.token_bytes(32),))
        connection.execute("COMMIT")
    elif version != _VERSION:
        raise UnavailableError(
            "STORE_UNREACHABLE",
            f"The ledger {path} has layout {version}, this program needs {_VERSION}; use the program that wrote it.",
        )
