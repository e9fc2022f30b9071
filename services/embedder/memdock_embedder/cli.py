"""`memdock-embedder serve`."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click
import structlog
from aiohttp import web

from memdock_embedder.app import Face
from memdock_embedder.backends import EmbedderError
from memdock_embedder.choose import SPECS, open_embedder
from memdock_embedder.log import set_up_log
from memdock_embedder.wire import Limits

_FILE = click.Path(path_type=Path, dir_okay=False)
ENVIRONMENT = frozenset(
    {
        "MEMDOCK_EMBEDDER",
        "MEMDOCK_EMBEDDER_LISTEN",
        "MEMDOCK_EMBEDDER_CACHE",
        "MEMDOCK_EMBEDDER_API_KEY",
        "MEMDOCK_EMBEDDER_PLAIN",
    }
)

# How the variables of the other programs begin, which a shell may hold as well.
OTHERS = (
    "MEMDOCK_ADAPTER_",
    "MEMDOCK_CA_FILE",
    "MEMDOCK_CERT_",
    "MEMDOCK_EVAL_",
    "MEMDOCK_GATEWAY_",
    "MEMDOCK_KEY",
    "MEMDOCK_METER_",
    "MEMDOCK_PGVECTOR_",
    "MEMDOCK_SYSTEM",
    "MEMDOCK_TIMEOUT",
    "MEMDOCK_URL",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What one server is started with."""

    embedder: str
    host: str
    port: int
    cache: Path | None
    api_key: str
    plain: bool
    port_file: Path | None


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Embeddings on the OpenAI wire.

    The default model is bundled: no download, no key. Ask it with any OpenAI client; "input_type" is "query" or
    "passage", passage where it is not said.
    """
    ours = {name for name in os.environ if name.startswith("MEMDOCK_") and not name.startswith(OTHERS)}
    unknown = sorted(ours - ENVIRONMENT)
    if unknown:
        raise click.ClickException(f"unknown variable {unknown[0]}: expected {', '.join(sorted(ENVIRONMENT))}")


@main.command()
@click.option("--embedder", default="bundled", envvar="MEMDOCK_EMBEDDER", show_default=True, help=SPECS)
@click.option(
    "--listen", default="127.0.0.1:7460", envvar="MEMDOCK_EMBEDDER_LISTEN", show_default=True, help="HOST:PORT"
)
@click.option("--cache", type=_FILE, envvar="MEMDOCK_EMBEDDER_CACHE", help="File that keeps embeddings.")
@click.option("--api-key", default="", envvar="MEMDOCK_EMBEDDER_API_KEY", help="Key of a remote endpoint.")
@click.option(
    "--plain", is_flag=True, envvar="MEMDOCK_EMBEDDER_PLAIN", help='Do not send "input_type" to a remote endpoint.'
)
@click.option("--port-file", type=_FILE, help='Written once ready: {"http": PORT}.')
def serve(embedder: str, listen: str, cache: Path | None, api_key: str, plain: bool, port_file: Path | None) -> None:
    """Serves embeddings until SIGTERM or SIGINT; requests in work are answered first."""
    host, _, port = listen.rpartition(":")
    if not host or not (port.isascii() and port.isdigit() and int(port) < 2**16):
        raise click.UsageError(f"--listen wants HOST:PORT, not {listen!r}")
    settings = Settings(
        embedder=embedder, host=host, port=int(port), cache=cache, api_key=api_key, plain=plain, port_file=port_file
    )
    set_up_log(sys.stderr)
    try:
        asyncio.run(_serve(settings))
    except EmbedderError as error:
        raise click.ClickException(error.message) from None


async def _serve(settings: Settings) -> None:
    embedder = await open_embedder(
        settings.embedder, cache=settings.cache, api_key=settings.api_key, plain=settings.plain
    )
    # A caller that left must not be worked for: its retry would come on top.
    runner = web.AppRunner(Face(embedder, Limits()).app(), access_log=None, handler_cancellation=True)
    stop = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    try:
        await runner.setup()
        site = web.TCPSite(runner, settings.host, settings.port)
        with _told(f"--listen {settings.host}:{settings.port}: a free port is needed, or port 0"):
            await site.start()
        port = runner.addresses[0][1]
        if settings.port_file:
            with _told(f"--port-file {settings.port_file} cannot be written"):
                _write_port(settings.port_file, port)
        structlog.get_logger("memdock.embedder").info("ready", host=settings.host, port=port, model=embedder.model)
        await stop.wait()
    finally:
        await runner.cleanup()
        await embedder.close()


@contextmanager
def _told(what: str) -> Iterator[None]:
    """Makes a fault of the system a sentence for whoever starts the server."""
    try:
        yield
    except OSError as cause:
        raise click.ClickException(f"{what}: {cause.strerror or cause}") from None


def _write_port(path: Path, port: int) -> None:
    partial = path.with_name(path.name + ".partial")
    partial.write_text(json.dumps({"http": port}))
    partial.replace(path)
