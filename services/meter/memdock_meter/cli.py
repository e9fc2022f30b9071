"""`memdock-meter serve`, `usage` and `purge`."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import click
import structlog
from aiohttp import web

from memdock_meter.app import Face
from memdock_meter.config import Config, host_and_port, read_config, system_keys
from memdock_meter.log import set_up_log
from memdock_meter.meter import Meter
from memdock_meter.problems import ConfigError
from memdock_meter.store import Store, UsageLine

_FILE = click.Path(path_type=Path, dir_okay=False)
ENVIRONMENT = frozenset({"MEMDOCK_METER_CONFIG", "MEMDOCK_METER_LISTEN"})

# How the variables of the other programs begin, which a shell may hold as well.
OTHERS = (
    "MEMDOCK_ADAPTER_",
    "MEMDOCK_CA_FILE",
    "MEMDOCK_CERT_",
    "MEMDOCK_EMBEDDER",
    "MEMDOCK_EVAL_",
    "MEMDOCK_GATEWAY_",
    "MEMDOCK_KEY",
    "MEMDOCK_PGVECTOR_",
    "MEMDOCK_SYSTEM",
    "MEMDOCK_TIMEOUT",
    "MEMDOCK_URL",
)

_CONFIG = click.option(
    "--config", "config_file", type=_FILE, envvar="MEMDOCK_METER_CONFIG", required=True, help="The YAML file."
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """The one door through which memory systems reach models.

    Speaks OpenAI's wire (chat completions, also streamed, and embeddings) to each system, counts what it uses, holds
    it to its budget and rate, tries again where an endpoint fails, and can record answers and replay them.
    """
    ours = {name for name in os.environ if name.startswith("MEMDOCK_") and not name.startswith(OTHERS)}
    unknown = sorted(ours - ENVIRONMENT)
    if unknown:
        raise click.ClickException(f"unknown variable {unknown[0]}: expected {', '.join(sorted(ENVIRONMENT))}")


@main.command()
@_CONFIG
@click.option("--listen", envvar="MEMDOCK_METER_LISTEN", help="HOST:PORT, before that of the file.")
@click.option("--port-file", type=_FILE, help='Written once ready: {"http": PORT}.')
def serve(config_file: Path, listen: str | None, port_file: Path | None) -> None:
    """Serve until SIGTERM or SIGINT; calls in work are answered first."""
    set_up_log(sys.stderr)
    config = _read(config_file, listen)
    _run(_serve(config, port_file))


@main.command()
@_CONFIG
@click.option("--system", help="Only this one.")
@click.option("--space", help="Only this space's calls.")
def usage(config_file: Path, system: str | None, space: str | None) -> None:
    """Print what was used, from the store, as JSON lines; the server may run meanwhile."""
    lines = _run(_usage(_read(config_file), system, space))
    if not lines:
        click.echo("no calls are counted there", err=True)
    for line in lines:
        click.echo(json.dumps({name: getattr(line, name) for name in UsageLine.__slots__}))


@main.command()
@_CONFIG
@click.option("--system", required=True)
@click.option("--space", required=True)
def purge(config_file: Path, system: str, space: str) -> None:
    """Erase the recordings of a space."""
    deleted = _run(_purge(_read(config_file), system, space))
    click.echo(f"erased {deleted} recording{'' if deleted == 1 else 's'} of {system}, space {space}")


def _read(path: Path, listen: str | None = None) -> Config:
    try:
        return read_config(path, listen=listen)
    except ConfigError as error:
        raise click.ClickException(str(error)) from None


def _run(work: Coroutine[Any, Any, Any]) -> Any:
    try:
        return asyncio.run(work)
    except ConfigError as error:
        raise click.ClickException(str(error)) from None


@asynccontextmanager
async def _store(config: Config, system: str | None) -> AsyncIterator[Store]:
    """The store that a meter keeps. Raises `ConfigError` where there is none, or none of its calls are the system's."""
    if not config.store.exists():
        raise ConfigError(f"there is no store {config.store} yet: a meter that serves by this configuration makes it")
    store = Store(config.store)
    try:
        known = config.systems.keys() | {line.system for line in await store.usage()}
        if system is not None and system not in known:
            raise ConfigError(f"--system: there is no system {system}, known are {', '.join(sorted(known))}")
        yield store
    finally:
        await store.close()


async def _usage(config: Config, system: str | None, space: str | None) -> list[UsageLine]:
    async with _store(config, system) as store:
        return await store.usage(system=system, space=space)


async def _purge(config: Config, system: str, space: str) -> int:
    async with _store(config, system) as store:
        return await store.forget(system, space)


async def _serve(config: Config, port_file: Path | None) -> None:
    keys = system_keys(config)
    meter = await Meter.open(config)
    # A caller that left must not be paid for any longer.
    runner = web.AppRunner(Face(meter, keys).app(), access_log=None, handler_cancellation=True, shutdown_timeout=20)
    stop = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    host, port = host_and_port(config.listen)
    try:
        await runner.setup()
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as cause:
            raise ConfigError(f"listen {config.listen}: a free port is needed, or port 0 ({cause.strerror})") from cause
        bound = runner.addresses[0][1]
        if port_file:
            _write_port(port_file, bound)
        structlog.get_logger("memdock.meter").info("ready", host=host, port=bound, mode=config.mode)
        await stop.wait()
    finally:
        await runner.cleanup()
        await meter.close()


def _write_port(path: Path, port: int) -> None:
    partial = path.with_name(path.name + ".partial")
    try:
        partial.write_text(json.dumps({"http": port}))
        partial.replace(path)
    except OSError as cause:
        raise ConfigError(f"--port-file {path} cannot be written: {cause.strerror}") from cause
