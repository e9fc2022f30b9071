"""`SqliteLedger`: the Ledger protocol over one writing thread and one reading connection."""

import sqlite3
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

from memdock.errors import UnavailableError
from memdock.ledger import (
    Admission,
    Begun,
    Counts,
    ErasureKind,
    Intent,
    LedgerRow,
    PendingTurn,
    Recorded,
    Resolution,
    Settled,
    Taken,
)
from memdock.sqlite_ledger import cost_rows, erasure_rows, turn_rows
from memdock.sqlite_ledger.files import Owner, is_of_the_disk, open_reader, open_writer
from memdock.sqlite_ledger.writer import Writer
from memdock.types import Component, ModelUsage, Residue, Selection, Turn, TurnRecord, TurnResult

Result = TypeVar("Result")


class SqliteLedger:
    """A ledger in the file `path` (its folder must exist), with SQLite's `-wal`, `-shm` and an `.owner` file beside it.

    WAL with synchronous=FULL: what was accepted survives a kill and a power cut. secure_delete and a truncated WAL:
    what was erased is gone from the files. Writes and long reads go through one thread that commits all that wait at
    once; the short, indexed reads of every Retrieve run where they are asked for.
    """

    shares_transaction = False

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path).absolute()
        self._opened: _Opened | None = None

    async def open(self) -> None:
        if not self.path.parent.is_dir():
            raise UnavailableError("STORE_UNREACHABLE", f"The ledger's folder {self.path.parent} does not exist.")
        self._opened = _Opened(self.path)

    async def close(self) -> None:
        if self._opened is not None:
            opened, self._opened = self._opened, None
            await opened.close()

    async def check_ready(self) -> None:
        await self._run(lambda connection: connection.execute("SELECT count(*) FROM keys").fetchone())

    async def admit(self, space: str, turns: Sequence[Turn]) -> Admission:
        key = self._open.digest_key
        try:
            return await self._run(lambda connection: turn_rows.admit(connection, key, space, turns))
        except turn_rows.ConflictError as conflict:
            return Admission(conflicts=conflict.indexes)

    async def pending(self, space: str, *, upto: int | None = None, limit: int) -> Sequence[PendingTurn]:
        return await self._run(lambda connection: turn_rows.pending(connection, space, upto, limit))

    async def last_pending(self, space: str) -> int:
        return self._read(lambda connection: turn_rows.last_pending(connection, space))

    async def start(self, space: str, seqs: Sequence[int]) -> None:
        await self._run(lambda connection: turn_rows.start(connection, space, seqs))

    async def settle(
        self,
        space: str,
        settled: Sequence[Settled],
        *,
        usage: Sequence[ModelUsage] = (),
        write: Callable[[Any], Awaitable[None]] | None = None,
    ) -> None:
        if write is not None:
            raise TypeError("this ledger has no transaction to share: return a Batch without `write`")

        def work(connection: sqlite3.Connection) -> None:
            turn_rows.settle(connection, space, settled)
            cost_rows.add(connection, space, usage)

        await self._run(work)

    async def counts(self, space: str, *, upto: int | None = None) -> Counts:
        return self._read(lambda connection: turn_rows.counts(connection, space, upto))

    async def failed(self, space: str, *, limit: int) -> Sequence[LedgerRow]:
        return await self._run(lambda connection: turn_rows.failed(connection, space, limit))

    async def turns(self, space: str, *, after: int, limit: int) -> Sequence[LedgerRow]:
        return await self._run(lambda connection: turn_rows.page(connection, space, after, limit))

    async def find(self, space: str, turn_ids: Sequence[str]) -> Mapping[str, TurnRecord]:
        return self._read(lambda connection: turn_rows.find(connection, space, turn_ids))

    async def busy_spaces(self) -> Sequence[str]:
        return self._read(
            lambda connection: [
                space
                for (space,) in connection.execute(
                    "SELECT space FROM turns WHERE state = 'PENDING'"
                    " UNION SELECT space FROM erasures WHERE intent IS NOT NULL"
                )
            ]
        )

    async def resolve(self, space: str, selection: Selection) -> Resolution:
        return await self._run(lambda connection: erasure_rows.resolve(connection, space, selection))

    async def begin_erasure(
        self, space: str, kind: ErasureKind, selection: Selection, *, request_id: str, fingerprint: bytes
    ) -> Begun:
        return await self._run(
            lambda connection: erasure_rows.begin(connection, space, kind, selection, request_id, fingerprint)
        )

    async def open_erasures(self, space: str) -> Sequence[Intent]:
        return self._read(lambda connection: erasure_rows.open_of(connection, space))

    async def recorded(self, space: str, memory_ids: Sequence[str]) -> Recorded:
        return await self._run(lambda connection: erasure_rows.recorded(connection, space, memory_ids))

    async def foresee(self, intent: Intent, *, turn_ids: Sequence[str], memory_ids: Sequence[str]) -> None:
        await self._run(lambda connection: erasure_rows.foresee(connection, intent, turn_ids, memory_ids))

    async def erase(
        self,
        intent: Intent,
        *,
        turn_ids: Sequence[str] = (),
        memory_ids: Sequence[str] = (),
        changed: Sequence[TurnResult] = (),
    ) -> Taken:
        def take(connection: sqlite3.Connection) -> tuple[str, ...]:
            erasure_rows.forget_memories(connection, intent.space, memory_ids)
            erasure_rows.change_turns(connection, intent, changed)
            return erasure_rows.forget_turns(connection, intent.space, turn_ids, upto=intent.last_seq)

        def scrub(connection: sqlite3.Connection) -> Residue:
            busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            return Residue(
                component=Component.RAW_TURNS,
                items=erasure_rows.count_contents(connection, intent, turn_ids),
                verified=not busy,
                note="the write-ahead log could not be emptied" if busy else "",
            )

        return Taken(turn_ids=await self._run(take), residue=await self._open.writer.run_alone(scrub))

    async def finish_erasure(self, intent: Intent, *, answer: bytes, usage: Sequence[ModelUsage] = ()) -> None:
        def work(connection: sqlite3.Connection) -> None:
            if intent.kind is ErasureKind.FORGET:
                cost_rows.add(connection, intent.space, usage)
            erasure_rows.finish(connection, intent, answer)

        await self._run(work)

    async def abandon_erasure(self, intent: Intent) -> None:
        await self._run(lambda connection: erasure_rows.abandon(connection, intent))

    async def spend(self, space: str, usage: Sequence[ModelUsage]) -> None:
        await self._run(lambda connection: cost_rows.add(connection, space, usage))

    async def spent(self, space: str) -> Sequence[ModelUsage]:
        return self._read(lambda connection: cost_rows.total(connection, space))

    @property
    def _open(self) -> "_Opened":
        if self._opened is None:
            raise UnavailableError("STORE_UNREACHABLE", f"The ledger {self.path} is not open.")
        return self._opened

    async def _run(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        return await self._open.writer.run(work)

    def _read(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        try:
            return work(self._open.reader)
        except sqlite3.Error as error:
            if not is_of_the_disk(error):
                raise
            raise UnavailableError(
                "STORE_UNREACHABLE", "The ledger cannot be read; look at its disk.", retry_after_s=1.0
            ) from error


class _Opened:
    """What is held while the ledger is open."""

    def __init__(self, path: Path) -> None:
        self._owner = Owner(path, f"The ledger {path}", "name another file")
        with ExitStack() as undo:
            undo.callback(self._owner.release)
            writing = open_writer(path)
            undo.callback(writing.close)
            self.reader, self.digest_key = open_reader(path)
            self.writer = Writer(writing)
            undo.pop_all()

    async def close(self) -> None:
        await self.writer.close()
        self.reader.close()
        self._owner.release()
