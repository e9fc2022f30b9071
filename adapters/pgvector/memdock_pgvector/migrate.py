"""Brings a schema to the layout that this program needs. Safe to run twice and by several processes at once."""

from importlib import resources

import psycopg
from psycopg import AsyncConnection, sql
from psycopg.conninfo import conninfo_to_dict

from memdock.errors import InternalError, UnavailableError
from memdock_pgvector.database import connect, search_path, store_errors

# One lock for all schemas of a database, since they share the extension.
_LOCK = int.from_bytes(b"memdock", "big")
MIN_EXTENSION = (0, 8, 0)  # iterative index scans


async def migrate(url: str, schema: str) -> int:
    """Creates the extension, the schema and what is missing in it, in one transaction; answers how many steps it took.

    Raises `InternalError` with a sentence for people: no right to create the extension, an extension that is too old,
    a schema made by a newer program.
    """
    with store_errors():
        async with await _connect(url) as connection:
            await connection.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
            extension_schema = await _ensure_extension(connection)
            await connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(schema)))
            await connection.execute(search_path(schema, extension_schema))
            return await _apply(connection, schema)


async def _connect(url: str) -> AsyncConnection:
    """The first connection of a start: its failure names the address, since it is told to whoever starts the server."""
    try:
        return await connect(url, autocommit=False)
    except psycopg.OperationalError as cause:
        named = conninfo_to_dict(url)
        where = f"{named['host']}:{named.get('port', 5432)}" if "host" in named else "the local socket"
        why = str(cause).partition("\n")[0]
        raise UnavailableError("STORE_UNREACHABLE", f"PostgreSQL cannot be used at {where}: {why}") from cause


async def _ensure_extension(connection: AsyncConnection) -> str:
    query = (
        "SELECT extversion, nspname FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace"
        " WHERE extname = 'vector'"
    )
    found = await (await connection.execute(query)).fetchone()
    if found is None:
        try:
            await connection.execute("CREATE EXTENSION vector SCHEMA public")
        except (psycopg.errors.InsufficientPrivilege, psycopg.errors.FeatureNotSupported) as cause:
            raise InternalError(
                "INTERNAL", "The extension pgvector is missing: have an administrator run CREATE EXTENSION vector."
            ) from cause
        found = await (await connection.execute(query)).fetchone()
        assert found is not None
    version, extension_schema = found
    if tuple(map(int, version.split("."))) < MIN_EXTENSION:
        needed = ".".join(map(str, MIN_EXTENSION))
        raise InternalError("INTERNAL", f"pgvector is {version}, {needed} is needed: ALTER EXTENSION vector UPDATE.")
    return str(extension_schema)


async def _apply(connection: AsyncConnection, schema: str) -> int:
    await connection.execute(
        "CREATE TABLE IF NOT EXISTS migration"
        " (version integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())"
    )
    cursor = await connection.execute("SELECT coalesce(max(version), 0) FROM migration")
    row = await cursor.fetchone()
    applied: int = row[0] if row else 0
    steps = migrations()
    if applied > len(steps):
        raise InternalError(
            "INTERNAL", f"The schema {schema} has layout {applied}, this program knows {len(steps)}: use a newer one."
        )
    for version, statements in enumerate(steps[applied:], start=applied + 1):
        await connection.execute(statements)
        await connection.execute("INSERT INTO migration (version) VALUES (%s)", [version])
    return len(steps) - applied


def migrations() -> list[bytes]:
    """The steps, oldest first: the files of `schema/` in the order of their names."""
    files = [file for file in resources.files(__package__).joinpath("schema").iterdir() if file.name.endswith(".sql")]
    return [file.read_bytes() for file in sorted(files, key=lambda file: file.name)]
