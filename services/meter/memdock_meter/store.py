"""What is kept: a row for each call, without any text, and recorded answers by a hash of what was asked.

One SQLite file in WAL, written by one thread. A recording belongs to the space whose call it answered, so that it can
be erased with it; deleted content is overwritten (`secure_delete`).
"""

import asyncio
import fcntl
import os
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TypeVar

from memdock_meter.problems import ConfigError
from memdock_meter.wire import Request

ResultT = TypeVar("ResultT")

_SCHEMA = """
CREATE TABLE IF NOT EXISTS call (
    at REAL NOT NULL, system TEXT NOT NULL, space TEXT NOT NULL, kind TEXT NOT NULL, model TEXT NOT NULL,
    status INTEGER NOT NULL, tries INTEGER NOT NULL, input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL,
    estimated INTEGER NOT NULL, money REAL, replayed INTEGER NOT NULL, ms REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS call_of ON call (system, space);
CREATE TABLE IF NOT EXISTS recording (
    system TEXT NOT NULL, space TEXT NOT NULL, digest BLOB NOT NULL,
    content_type TEXT NOT NULL, body BLOB NOT NULL, input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL,
    estimated INTEGER NOT NULL,
    PRIMARY KEY (system, space, digest)
) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRow:
    """What became of one call. `at`: seconds since 1970; `tries`: requests to the endpoint, 0 where none was made.

    `status` is that of the answer given; 499 where the caller had left. `money` is `None` where the price table does
    not know the model. `ms`: wall time, with waits and tries.
    """

    at: float
    system: str
    space: str
    kind: str
    model: str
    status: int
    tries: int
    input_tokens: int
    output_tokens: int
    estimated: bool
    money: float | None
    replayed: bool
    ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageLine:
    """The calls of a system to one model. `requests` counts what the endpoint saw: calls and their further tries.

    `replayed` calls were answered from recordings and cost nothing; their tokens are counted in `replayed_tokens`
    alone. `estimated`: the endpoint did not count some of the tokens. `money` is `None` where no price is known.
    """

    system: str
    kind: str
    model: str
    calls: int
    failed: int
    replayed: int
    requests: int
    input_tokens: int
    output_tokens: int
    replayed_tokens: int
    estimated: bool
    money: float | None
    ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """An answer of status 200 as it was given."""

    content_type: str
    body: bytes
    input_tokens: int
    output_tokens: int
    estimated: bool


_USAGE = """
SELECT system, kind, model, count(*), sum(status >= 400), sum(replayed), sum(tries),
    sum(iif(replayed, 0, input_tokens)), sum(iif(replayed, 0, output_tokens)),
    sum(iif(replayed, input_tokens + output_tokens, 0)), max(iif(replayed, 0, estimated)),
    iif(sum(money IS NULL AND NOT replayed), NULL, total(money)), sum(ms)
FROM call WHERE (?1 IS NULL OR system = ?1) AND (?2 IS NULL OR space = ?2) AND at >= ?3
GROUP BY system, kind, model ORDER BY system, kind, model
"""


class Store:
    """The file. Raises `ConfigError` where it cannot be opened.

    `serves`: the meter that keeps it, of which there is one: what a budget has left is known to that process alone.
    Others may read it, and erase recordings, meanwhile.
    """

    def __init__(self, path: Path, *, serves: bool = False) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._owner = _owned(path) if serves else None
            self._db = sqlite3.connect(path, check_same_thread=False, timeout=30, isolation_level=None)
            for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "secure_delete=ON"):
                self._db.execute(f"PRAGMA {pragma}")
            self._db.executescript(_SCHEMA)
        except (OSError, sqlite3.Error) as error:
            raise ConfigError(f"the store {path} cannot be opened, name another file: {error}") from error
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="meter-store")

    async def add(self, row: CallRow) -> None:
        """Keeps what became of a call."""
        values = [getattr(row, field.name) for field in fields(CallRow)]
        marks = ", ".join("?" * len(values))
        await self._run(lambda: self._db.execute(f"INSERT INTO call VALUES ({marks})", values))  # noqa: S608

    async def usage(self, *, system: str | None = None, space: str | None = None, since: float = 0) -> list[UsageLine]:
        """What was used, a line for each system, kind and model. `since`: seconds since 1970."""
        rows = await self._run(lambda: self._db.execute(_USAGE, (system, space, since)).fetchall())
        names = [field.name for field in fields(UsageLine)]
        found = [dict(zip(names, row, strict=True)) for row in rows]
        return [UsageLine(**{**each, "estimated": bool(each["estimated"])}) for each in found]

    async def spent(self, system: str) -> float:
        """The money that a system's calls have cost."""
        query = "SELECT total(money) FROM call WHERE system = ?"
        row = await self._run(lambda: self._db.execute(query, (system,)).fetchone())
        return float(row[0])

    async def recording(self, request: Request) -> Recording | None:
        """What was answered to the same request of the same space."""
        query = (
            "SELECT content_type, body, input_tokens, output_tokens, estimated FROM recording"
            " WHERE system = ? AND space = ? AND digest = ?"
        )
        key = (request.system, request.space, request.digest)
        row = await self._run(lambda: self._db.execute(query, key).fetchone())
        if row is None:
            return None
        content_type, body, inward, outward, estimated = row
        return Recording(
            content_type=content_type,
            body=body,
            input_tokens=inward,
            output_tokens=outward,
            estimated=bool(estimated),
        )

    async def record(self, request: Request, recording: Recording) -> None:
        """Keeps an answer; an earlier one to the same request stays."""
        values = (
            request.system,
            request.space,
            request.digest,
            recording.content_type,
            recording.body,
            recording.input_tokens,
            recording.output_tokens,
            recording.estimated,
        )
        statement = "INSERT OR IGNORE INTO recording VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
        await self._run(lambda: self._db.execute(statement, values))

    async def forget(self, system: str, space: str) -> int:
        """Erases the recordings of a space; how many there were."""

        def erase() -> int:
            done = self._db.execute("DELETE FROM recording WHERE system = ? AND space = ?", (system, space)).rowcount
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # what was deleted stands in the log until then
            return done

        return await self._run(erase)

    async def close(self) -> None:
        """Writes what is waiting and closes the file."""
        await self._run(self._db.close)
        self._thread.shutdown(wait=True)
        if self._owner is not None:
            os.close(self._owner)

    async def _run(self, work: Callable[[], ResultT]) -> ResultT:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def _owned(path: Path) -> int:
    """A lock on a file beside the store, which the kernel frees however the process ends: its descriptor."""
    descriptor = os.open(path.with_name(path.name + ".owner"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = os.read(descriptor, 32).decode(errors="replace").strip() or "unknown"
        os.close(descriptor)
        raise ConfigError(
            f"the store {path} is in use by the meter of process {holder}: stop that one, or name another store"
        ) from None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return descriptor
