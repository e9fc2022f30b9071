"""From settings to a system that can be served: the database, the embedder, the ledger, and their end."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version

from memdock.errors import InternalError, error
from memdock.system import SystemInfo
from memdock.types import Feature, Model, Software, Support
from memdock_embedder.backends import Embedder, EmbedderError
from memdock_embedder.choose import open_embedder
from memdock_pgvector.database import Database
from memdock_pgvector.migrate import migrate
from memdock_pgvector.pg_ledger import PgLedger
from memdock_pgvector.settings import Ranking, Settings
from memdock_pgvector.system import RagSystem

_NATIVE = (
    Feature.FILTER_SESSIONS,
    Feature.FILTER_TIME,
    Feature.FORGET_MEMORIES,
    Feature.FORGET_TURNS,
    Feature.FORGET_SESSIONS,
    Feature.FORGET_DRY_RUN,
    Feature.LIST_MEMORIES,
    Feature.SOURCES,
    Feature.SCORES,
    Feature.EVENT_TIME,
    Feature.BUFFERING,
    Feature.USAGE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """What `memdock.server.serve` needs."""

    system: RagSystem
    ledger: PgLedger


@asynccontextmanager
async def open_database(settings: Settings) -> AsyncIterator[Database]:
    """The migrated database of a system; runs PostgreSQL where no address is given."""
    async with AsyncExitStack() as ends:
        url = settings.database
        if not url:
            # Of the extra `embedded`, which is not there where the database always is another's.
            from memdock.adapter.postgres import EmbeddedPostgres

            embedded = EmbeddedPostgres(settings.data)
            ends.push_async_callback(embedded.stop)
            await embedded.start()
            url = embedded.url
        await migrate(url, settings.system)
        database = Database(url, settings.system)
        ends.push_async_callback(database.close)
        await database.open()
        yield database


@asynccontextmanager
async def open_embedding(settings: Settings) -> AsyncIterator[Embedder]:
    """The embedder; a failure to open it is told as a `MemdockError`."""
    try:
        embedder = await open_embedder(settings.embedder, cache=settings.embedding_cache, api_key=settings.embedder_key)
    except EmbedderError as cause:
        raise error(cause.reason, cause.message) from cause
    try:
        yield embedder
    finally:
        await embedder.close()


@asynccontextmanager
async def open_system(settings: Settings) -> AsyncIterator[Opened]:
    """A system and its ledger; closes what they stand on."""
    async with open_database(settings) as database, open_embedding(settings) as embedder:
        await _claim(database, settings.ranking)
        info = await _describe(settings, database, embedder)
        system = RagSystem(info, database, embedder, settings.ranking, cached=settings.embedding_cache is not None)
        yield Opened(system=system, ledger=PgLedger(database))


async def _claim(database: Database, ranking: Ranking) -> None:
    """Writes down at the first start whether the system keeps terms; refuses to rank by words that were never kept."""
    async with database.connection() as connection:
        await connection.execute(
            "INSERT INTO claim (keeps_terms) VALUES (%s) ON CONFLICT DO NOTHING", [ranking.keeps_terms]
        )
        row = await (await connection.execute("SELECT keeps_terms FROM claim")).fetchone()
    if ranking.keeps_terms and row and not row[0]:
        raise InternalError(
            "INTERNAL",
            f"The system {database.schema} was made for dense search and keeps no words: start it with --fusion dense,"
            " or give the other system a name of its own.",
        )


async def _describe(settings: Settings, database: Database, embedder: Embedder) -> SystemInfo:
    async with database.connection() as connection:
        cursor = await connection.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'")
        row = await cursor.fetchone()
    return SystemInfo(
        name=settings.system,
        adapter=Software(name="memdock-pgvector", version=version("memdock-pgvector")),
        framework=Software(name="pgvector", version=row[0] if row else ""),
        features=dict.fromkeys(_NATIVE, Support.NATIVE),
        models=(Model(purpose="embedding", name=embedder.model, dimension=embedder.dimension),),
        config={**settings.ranking.config(), "embedder": embedder.model, "dimension": embedder.dimension},
    )
