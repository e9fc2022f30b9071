"""`PgLedger`: the Ledger protocol on the memory's own database, so that data and ledger commit together."""

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from psycopg import AsyncConnection

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
from memdock.types import Component, ModelUsage, Residue, Selection, Turn, TurnRecord, TurnResult
from memdock_pgvector.database import Database
from memdock_pgvector.pg_ledger import cost_rows, erasure_rows, turn_rows
from memdock_pgvector.pg_ledger.owner import Owner


class PgLedger:
    """A ledger in the schema of an open, migrated `database`. Methods do what `memdock.ledger.Ledger` says."""

    shares_transaction = True

    def __init__(self, database: Database) -> None:
        self._database = database
        self._owner = Owner(database.url, database.schema, database.replace_broken)
        self._key = b""

    async def open(self) -> None:
        await self._owner.take()
        async with self._database.transaction() as connection:
            await connection.execute(
                "INSERT INTO ledger_key (key) VALUES (%s) ON CONFLICT DO NOTHING", [secrets.token_bytes(32)]
            )
            row = await (await connection.execute("SELECT key FROM ledger_key")).fetchone()
            assert row is not None
            self._key = row[0]

    async def close(self) -> None:
        await self._owner.release()

    async def check_ready(self) -> None:
        self._owner.check()
        await self._database.check_ready()

    async def admit(self, space: str, turns: Sequence[Turn]) -> Admission:
        async with self._write() as connection:
            return await turn_rows.admit(connection, self._key, space, turns)

    async def pending(self, space: str, *, upto: int | None = None, limit: int) -> Sequence[PendingTurn]:
        async with self._database.connection() as connection:
            return await turn_rows.pending(connection, space, upto, limit)

    async def last_pending(self, space: str) -> int:
        async with self._database.connection() as connection:
            return await turn_rows.last_pending(connection, space)

    async def start(self, space: str, seqs: Sequence[int]) -> None:
        """Does nothing: a turn that is PENDING has left nothing in the system."""

    async def settle(
        self,
        space: str,
        settled: Sequence[Settled],
        *,
        usage: Sequence[ModelUsage] = (),
        write: Callable[[Any], Awaitable[None]] | None = None,
    ) -> None:
        async with self._write() as connection:
            if write is not None:
                await turn_rows.lock_settled(connection, space, settled)
                await write(connection)
            await turn_rows.settle(connection, space, settled)
            await cost_rows.add(connection, space, usage)

    async def counts(self, space: str, *, upto: int | None = None) -> Counts:
        async with self._database.connection() as connection:
            return await turn_rows.counts(connection, space, upto)

    async def failed(self, space: str, *, limit: int) -> Sequence[LedgerRow]:
        async with self._database.connection() as connection:
            return await turn_rows.failed(connection, space, limit)

    async def turns(self, space: str, *, after: int, limit: int) -> Sequence[LedgerRow]:
        async with self._database.connection() as connection:
            return await turn_rows.page(connection, space, after, limit)

    async def find(self, space: str, turn_ids: Sequence[str]) -> Mapping[str, TurnRecord]:
        async with self._database.connection() as connection:
            return await turn_rows.find(connection, space, turn_ids)

    async def busy_spaces(self) -> Sequence[str]:
        async with self._database.connection() as connection:
            cursor = await connection.execute(
                "SELECT space FROM turn WHERE state = 'PENDING'"
                " UNION SELECT space FROM erasure WHERE intent IS NOT NULL"
            )
            return [space for (space,) in await cursor.fetchall()]

    async def resolve(self, space: str, selection: Selection) -> Resolution:
        async with self._database.connection() as connection:
            return await erasure_rows.resolve(connection, space, selection)

    async def begin_erasure(
        self, space: str, kind: ErasureKind, selection: Selection, *, request_id: str, fingerprint: bytes
    ) -> Begun:
        async with self._write() as connection:
            await turn_rows.lock_space(connection, space)
            return await erasure_rows.begin(connection, space, kind, selection, request_id, fingerprint)

    async def open_erasures(self, space: str) -> Sequence[Intent]:
        async with self._database.connection() as connection:
            return await erasure_rows.open_of(connection, space)

    async def recorded(self, space: str, memory_ids: Sequence[str]) -> Recorded:
        async with self._database.connection() as connection:
            return await erasure_rows.recorded(connection, space, memory_ids)

    async def foresee(self, intent: Intent, *, turn_ids: Sequence[str], memory_ids: Sequence[str]) -> None:
        async with self._write() as connection:
            await erasure_rows.foresee(connection, intent, turn_ids, memory_ids)

    async def erase(
        self,
        intent: Intent,
        *,
        turn_ids: Sequence[str] = (),
        memory_ids: Sequence[str] = (),
        changed: Sequence[TurnResult] = (),
    ) -> Taken:
        async with self._write() as connection:
            taken = await erasure_rows.forget_turns(connection, intent.space, turn_ids, upto=intent.last_seq)
            await erasure_rows.forget_memories(connection, intent.space, memory_ids)
            await erasure_rows.change_turns(connection, intent, changed)
            left = await erasure_rows.count_contents(connection, intent, turn_ids)
        return Taken(turn_ids=taken, residue=Residue(component=Component.RAW_TURNS, items=left, verified=True))

    async def finish_erasure(self, intent: Intent, *, answer: bytes, usage: Sequence[ModelUsage] = ()) -> None:
        async with self._write() as connection:
            if intent.kind is ErasureKind.FORGET:
                await cost_rows.add(connection, intent.space, usage)
            await erasure_rows.finish(connection, intent, answer)

    async def abandon_erasure(self, intent: Intent) -> None:
        async with self._write() as connection:
            await erasure_rows.abandon(connection, intent)

    async def spend(self, space: str, usage: Sequence[ModelUsage]) -> None:
        async with self._write() as connection:
            await cost_rows.add(connection, space, usage)

    async def spent(self, space: str) -> Sequence[ModelUsage]:
        async with self._database.connection() as connection:
            return await cost_rows.total(connection, space)

    @asynccontextmanager
    async def _write(self) -> AsyncIterator[AsyncConnection]:
        """A transaction of the owner."""
        self._owner.check()
        async with self._database.transaction() as connection:
            yield connection
