"""The right to work on a schema: an advisory lock that PostgreSQL frees when its holder's connection ends."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import psycopg
import structlog
from psycopg import AsyncConnection

from memdock.adapter.unreachable import unreachable
from memdock.errors import MemdockError, UnavailableError
from memdock_pgvector.database import connect, store_errors

_RETRY_S = 0.2

_log = structlog.get_logger(__name__)


class Owner:
    """Holds the lock on a connection of its own; takes it again when that connection was lost.

    `on_return` is awaited before the schema is held again: what hung on the lost PostgreSQL can be replaced there.
    """

    def __init__(self, url: str, schema: str, on_return: Callable[[], Awaitable[None]]) -> None:
        self._url = url
        self._on_return = on_return
        self._schema = schema
        self._held = False
        self._keeper: asyncio.Task[None] | None = None

    async def take(self) -> None:
        """Takes the lock; `UnavailableError` when another process has it, or PostgreSQL is away."""
        connection = await self._lock()
        self._held = True
        self._keeper = asyncio.create_task(self._keep(connection))

    def check(self) -> None:
        """Raises `UnavailableError` while the lock is not held: then nothing may be written."""
        if not self._held:
            raise unreachable(f"the schema {self._schema} is not held by this process")

    async def release(self) -> None:
        """Gives the lock up; harmless when it is not held."""
        if self._keeper is not None:
            self._keeper.cancel()
            with suppress(asyncio.CancelledError):
                await self._keeper
            self._keeper = None

    async def _lock(self) -> AsyncConnection:
        with store_errors():
            connection = await connect(self._url)
            cursor = await connection.execute(
                "SELECT pg_try_advisory_lock(hashtextextended('memdock owner ' || %s, 0))", [self._schema]
            )
            row = await cursor.fetchone()
        if row and row[0]:
            return connection
        await connection.close()
        raise UnavailableError(
            "STORE_UNREACHABLE",
            f"The schema {self._schema} is in use by another process; stop that one, or name another system.",
        )

    async def _keep(self, connection: AsyncConnection) -> None:
        try:
            while True:
                self._held = True
                await _until_lost(connection)
                self._held = False
                _log.warning("schema_lost", schema=self._schema)
                connection = await self._lock_again()
                await self._on_return()
                _log.info("schema_held_again", schema=self._schema)
        finally:
            self._held = False
            await connection.close()

    async def _lock_again(self) -> AsyncConnection:
        while True:
            try:
                return await self._lock()
            except MemdockError:
                await asyncio.sleep(_RETRY_S)


async def _until_lost(connection: AsyncConnection) -> None:
    """Returns when the connection is closed; nothing else ever arrives on it."""
    with suppress(psycopg.OperationalError):
        async for _ in connection.notifies():
            continue
