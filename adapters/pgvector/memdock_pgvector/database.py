"""The way to PostgreSQL: a pool of connections inside one schema, and what a store that is away means to a caller."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import orjson
import psycopg
from psycopg import AsyncConnection, sql
from psycopg.conninfo import make_conninfo
from psycopg.types.json import set_json_dumps, set_json_loads
from psycopg_pool import AsyncConnectionPool

from memdock.adapter.unreachable import unreachable
from memdock.errors import UnavailableError
from memdock_pgvector.vectors import register_vector

CONNECT_TIMEOUT_S = 5


@contextmanager
def store_errors() -> Iterator[None]:
    """Turns "the store is away" into STORE_UNREACHABLE; other errors of PostgreSQL are faults of ours and pass."""
    try:
        yield
    except (psycopg.OperationalError, psycopg.InterfaceError) as cause:
        raise unreachable(type(cause).__name__) from cause


def search_path(schema: str, extension_schema: str) -> sql.Composed:
    """Our tables first, then the schema in which the extension lives."""
    return sql.SQL("SET search_path = {}, {}").format(sql.Identifier(schema), sql.Identifier(extension_schema))


async def connect(url: str, *, autocommit: bool = True) -> AsyncConnection:
    """One connection outside of any pool, in UTC."""
    conninfo = make_conninfo(url, connect_timeout=CONNECT_TIMEOUT_S, options="-c timezone=UTC -c jit=off")
    return await AsyncConnection.connect(conninfo, autocommit=autocommit)


class Database:
    """A pool of connections to `url` whose search path is `schema`, which `migrate` has made.

    A caller waits at most `wait_s` for a connection. Connections are not tested before they are handed out (that is a
    round trip for each call); after an error all that lie idle are, and the broken ones replaced.
    """

    def __init__(self, url: str, schema: str, *, max_connections: int = 16, wait_s: float = 5.0) -> None:
        self.url = url
        self.schema = schema
        self._replacing: asyncio.Task[None] | None = None
        self._pool = AsyncConnectionPool(
            # JIT compiles for longer than any of these queries runs.
            make_conninfo(url, connect_timeout=CONNECT_TIMEOUT_S, options="-c timezone=UTC -c jit=off"),
            kwargs={"autocommit": True},
            min_size=1,
            max_size=max_connections,
            timeout=wait_s,
            # Try again soon after PostgreSQL went away: the pool's pauses double up to this.
            reconnect_timeout=2.0,
            configure=self._configure,
            open=False,
        )

    async def open(self) -> None:
        """Connects; STORE_UNREACHABLE when nobody answers."""
        with store_errors():
            await self._pool.open(wait=True, timeout=CONNECT_TIMEOUT_S)

    async def close(self) -> None:
        """Closes the connections; harmless twice."""
        if self._replacing is not None:
            await asyncio.gather(self._replacing, return_exceptions=True)
        await self._pool.close()

    async def _configure(self, connection: AsyncConnection) -> None:
        await use_schema(connection, self.schema)

    async def replace_broken(self) -> None:
        """Tests the connections that lie idle, and replaces those that are broken."""
        await self._pool.check()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[AsyncConnection]:
        """A connection on which each statement is a transaction of its own."""
        try:
            with store_errors():
                async with self._pool.connection() as connection:
                    yield connection
        except UnavailableError:
            if self._replacing is None or self._replacing.done():
                self._replacing = asyncio.create_task(self.replace_broken())
            raise

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection]:
        """A connection inside a transaction: committed at the end, rolled back by an exception."""
        async with self.connection() as connection, connection.transaction():
            yield connection

    async def check_ready(self, *, within_s: float = 2.0) -> None:
        """Returns when a statement can be run; STORE_UNREACHABLE otherwise, after at most `within_s`."""
        try:
            async with asyncio.timeout(within_s), self.connection() as connection:
                await connection.execute("SELECT 1 FROM space LIMIT 1")
        except TimeoutError:
            raise unreachable("it does not answer in time") from None


async def use_schema(connection: AsyncConnection, schema: str) -> None:
    """Puts a connection into a migrated schema and teaches it vectors."""
    cursor = await connection.execute(
        "SELECT nspname FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace WHERE extname = 'vector'"
    )
    found = await cursor.fetchone()
    await connection.execute(search_path(schema, found[0] if found else "public"))
    await register_vector(connection)
    set_json_dumps(orjson.dumps, connection)
    set_json_loads(orjson.loads, connection)
