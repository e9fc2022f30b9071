"""`memdock-pgvector serve | migrate | reindex`."""

import asyncio
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from memdock.errors import MemdockError
from memdock.secret_option import SecretOption
from memdock.server import ServeOptions, run, serve
from memdock.tls import Tls
from memdock.variables import unknown_variables
from memdock_embedder.choose import SPECS
from memdock_pgvector.opening import open_database, open_embedding, open_system
from memdock_pgvector.ranking import Fusion
from memdock_pgvector.reindex import reindex
from memdock_pgvector.settings import Ranking, Settings

Command = TypeVar("Command", bound=Callable[..., Any])

_DEFAULTS = Ranking()
_FILE = click.Path(path_type=Path, dir_okay=False)
_VARIABLES = frozenset(
    f"MEMDOCK_PGVECTOR_{name}"
    for name in (
        "SYSTEM", "DATABASE", "DATABASE_FILE", "DATA", "EMBEDDER", "EMBEDDER_KEY", "EMBEDDER_KEY_FILE",
        "EMBEDDING_CACHE", "FUSION", "REPLY_CHARS", "INDEX_FROM", "EF_SEARCH", "GRPC", "HTTP", "TOKEN", "TOKEN_FILE",
    )
)  # fmt: skip


def _option(flag: str, help_text: str, **more: Any) -> Callable[[Command], Command]:
    variable = "MEMDOCK_PGVECTOR_" + flag.removeprefix("--").replace("-", "_").upper()
    assert variable in _VARIABLES
    return click.option(flag, help=help_text, envvar=variable, show_envvar=True, **more)


def _system_name(_context: click.Context, _parameter: click.Parameter, name: str) -> str:
    if not re.fullmatch("[a-z0-9][a-z0-9-]{0,62}", name):
        raise click.BadParameter("small letters, digits and -, at most 63, no - at the start")
    return name


def _address(_context: click.Context, _parameter: click.Parameter, address: str) -> str:
    if address and not address.startswith(("postgresql://", "postgres://")):
        raise click.BadParameter("expected postgresql://USER:PASSWORD@HOST:PORT/NAME")
    return address


def _store_options(command: Command) -> Command:
    for option in (
        _option("--data", "Folder of the PostgreSQL that is run here.", default=Path("memdock-data"),
                show_default=True, type=click.Path(path_type=Path, file_okay=False)),
        _option("--database", "postgresql:// address; without it PostgreSQL is run here, in --data.", default="",
                callback=_address, cls=SecretOption),
        _option("--system", "The system's name, and its schema in the database.", default="rag-hybrid",
                show_default=True, callback=_system_name),
    ):  # fmt: skip
        command = option(command)
    return command


def _embedder_options(command: Command) -> Command:
    for option in (
        _option("--reply-chars", "How much of an assistant's turn is embedded.", default=_DEFAULTS.reply_chars,
                show_default=True, type=click.IntRange(min=0)),
        _option("--embedding-cache", "File that keeps vectors by a hash of their text. No erasure reaches it.",
                type=_FILE),
        _option("--embedder-key", "Key of a remote embedder.", default="", cls=SecretOption),
        _option("--embedder", SPECS, default="bundled", show_default=True),
    ):  # fmt: skip
        command = option(command)
    return command


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Retrieval over conversations in PostgreSQL with pgvector, behind the Memdock protocol."""
    unknown = unknown_variables(os.environ, _VARIABLES)
    if unknown:
        raise click.ClickException(f"unknown variable {unknown[0]}: expected {', '.join(sorted(_VARIABLES))}")


@main.command(name="serve")
@_store_options
@_embedder_options
@_option("--fusion", "What ranks the memories.", type=click.Choice([fusion.value for fusion in Fusion]),
         default=_DEFAULTS.fusion.value, show_default=True)  # fmt: skip
@_option("--index-from", "Memories from which on a space is searched by an HNSW index (dense only).",
         default=_DEFAULTS.index_from, show_default=True, type=click.IntRange(min=1))  # fmt: skip
@_option("--ef-search", "How many neighbours a search of that index looks at.", default=_DEFAULTS.ef_search,
         show_default=True, type=click.IntRange(1, 1000))  # fmt: skip
@_option("--grpc", "HOST:PORT of the gRPC face; port 0: a free one.", default="127.0.0.1:0", show_default=True)
@_option("--http", "HOST:PORT of the HTTP face.", default="127.0.0.1:0", show_default=True)
@_option("--token", "Bearer token that callers must send; empty: none.", default="", cls=SecretOption)
@click.option("--tls-cert", type=_FILE, help="PEM file of the certificate of both faces.")
@click.option("--tls-key", type=_FILE, help="PEM file of its key.")
@click.option("--tls-ca", type=_FILE, help="PEM file of the authority that callers' certificates must be of.")
@click.option("--port-file", type=_FILE, help='Written once ready: {"grpc": PORT, "http": PORT}.')
def serve_command(**options: Any) -> None:
    """Serves one system until SIGTERM or SIGINT; what is accepted by then is safe."""
    tls = None
    if options["tls_cert"] or options["tls_key"] or options["tls_ca"]:
        tls = Tls(cert_file=options["tls_cert"], key_file=options["tls_key"], ca_file=options["tls_ca"])
    ranking = Ranking(
        fusion=Fusion(options["fusion"]),
        reply_chars=options["reply_chars"],
        index_from=options["index_from"],
        ef_search=options["ef_search"],
    )
    faces = ServeOptions(
        grpc=options["grpc"], http=options["http"], token=options["token"], tls=tls, port_file=options["port_file"]
    )
    run(_serve(_settings(options, ranking), faces))


@main.command(name="migrate")
@_store_options
def migrate_command(**options: Any) -> None:
    """Makes or updates the tables of a system. `serve` does so by itself; safe to run twice, and by two at once."""

    async def migrate_only() -> None:
        async with open_database(_settings(options, _DEFAULTS)):
            click.echo(f"the schema {options['system']} is up to date")

    _run_once(migrate_only())


@main.command(name="reindex")
@_store_options
@_embedder_options
@click.option("--space", "spaces", multiple=True, help="Only this space (may be repeated).")
def reindex_command(spaces: tuple[str, ...], **options: Any) -> None:
    """Gives the spaces that another embedder made the vectors of --embedder. A run that was stopped goes on.

    The system may go on serving meanwhile with its old embedder; each space changes at once when its vectors are
    complete. Then start the system again with the new one.
    """
    ranking = Ranking(reply_chars=options["reply_chars"])

    async def reindex_all() -> None:
        settings = _settings(options, ranking)
        async with open_database(settings) as database, open_embedding(settings) as embedder:
            async for progress in reindex(database, embedder, reply_chars=ranking.reply_chars, spaces=spaces):
                click.echo(f"{progress.space}: {progress.done} of {progress.total}")
            click.echo(f"all of it is by {embedder.model} now")

    _run_once(reindex_all())


def _settings(options: dict[str, Any], ranking: Ranking) -> Settings:
    return Settings(
        system=options["system"],
        ranking=ranking,
        database=options["database"],
        data=options["data"],
        embedder=options.get("embedder", "bundled"),
        embedder_key=options.get("embedder_key", ""),
        embedding_cache=options.get("embedding_cache"),
    )


async def _serve(settings: Settings, faces: ServeOptions) -> None:
    async with open_system(settings) as opened:
        await serve(opened.system, opened.ledger, faces)


def _run_once(work: Any) -> None:
    try:
        asyncio.run(work)
    except (MemdockError, OSError, ValueError) as problem:
        raise click.ClickException(getattr(problem, "message", str(problem))) from None
