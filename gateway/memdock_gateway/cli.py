"""The command `memdock-gateway`."""

import asyncio
import os
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import click
import uvloop

from memdock.variables import unknown_variables
from memdock_gateway import folder as folders
from memdock_gateway.assembly import check_files, require_safe
from memdock_gateway.config import Config, ConfigError
from memdock_gateway.config_file import config_of, load_config
from memdock_gateway.log import set_up_logs
from memdock_gateway.server import serve as serve_until_stopped

Command = TypeVar("Command", bound=Callable[..., Any])

EXAMPLE = "rag-dense=grpc://127.0.0.1:7470"
VARIABLES = ("MEMDOCK_GATEWAY_CONFIG", "MEMDOCK_GATEWAY_PORT_FILE")

_GUIDE = """One address for many memory systems: keys, limits, queues, retries, metrics, traces.

\b
A first gateway, in a folder of its own:
  memdock-gateway init gw --system rag-dense=grpc://127.0.0.1:7470
  memdock-gateway serve --config gw/gateway.yaml
  curl -H "Authorization: Bearer $(cat gw/first.key)" http://127.0.0.1:7451/v1/systems

\b
The HTTP face tells about itself:
  /openapi.json   every call, derived from the protocol
  /livez /readyz  the process; the systems behind it
  /metrics        for Prometheus

\b
Keys are made and changed by `memdock keys create|rotate|list|revoke --file gw/keys.json`;
a running gateway takes the change within a second.
"""


def _config_option(*, required: bool) -> Callable[[Command], Command]:
    return click.option(
        "--config",
        type=click.Path(path_type=Path, dir_okay=False),
        required=required,
        envvar="MEMDOCK_GATEWAY_CONFIG",
        show_envvar=True,
        help="The configuration file (YAML).",
    )


def _pair(_context: click.Context, _option: click.Parameter, texts: tuple[str, ...]) -> list[tuple[str, str]]:
    pairs = [(name, address) for name, _, address in (text.partition("=") for text in texts)]
    if not all(address for _, address in pairs):
        raise click.BadParameter(f"must be NAME=ADDRESS, such as {EXAMPLE}")
    return pairs


@click.group(help=_GUIDE)
@click.version_option(version("memdock-gateway"))
def main() -> None:
    unknown = unknown_variables(os.environ, VARIABLES)
    if unknown:
        raise click.ClickException(f"unknown variable {', '.join(unknown)}; known are {', '.join(VARIABLES)}")


@main.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--system",
    "systems",
    multiple=True,
    metavar="NAME=ADDRESS",
    default=[EXAMPLE],
    show_default=EXAMPLE,
    callback=_pair,
    help="A system behind the gateway; may be repeated.",
)
@click.option("--tenant", default="default", show_default=True, help="Whose the first key is.")
def init(folder: Path, systems: list[tuple[str, str]], tenant: str) -> None:
    """Write a ready configuration, a first API key and a space key into FOLDER."""
    try:
        folders.create_folder(folder, tenant=tenant, systems=systems, now=datetime.now(UTC).replace(microsecond=0))
        load_config(folder / folders.CONFIG_NAME)
    except (ConfigError, OSError, ValueError) as problem:
        raise click.ClickException(str(problem)) from None
    click.echo(f"{folder / folders.CONFIG_NAME}      the configuration; add and change systems there")
    click.echo(
        f"{folder / folders.FIRST_KEY_NAME}         an API key that may do everything; hand it out, then delete it"
    )
    click.echo(f"{folder / folders.KEYS_NAME}         what the gateway knows of API keys; no secrets")
    click.echo(f"{folder / folders.SPACE_KEYS_NAME}   keep a copy: without it no space can be found again")
    click.echo(f"\nStart it: memdock-gateway serve --config {folder / folders.CONFIG_NAME}")


@main.command()
@_config_option(required=False)
@click.option(
    "--insecure-dev",
    is_flag=True,
    help="Do without what the configuration lacks of keys_file, space_key and audit_file; loopback addresses only.",
)
@click.option(
    "--system",
    "systems",
    multiple=True,
    metavar="NAME=ADDRESS",
    callback=_pair,
    help="With --insecure-dev, in place of --config: a system to try; may be repeated.",
)
@click.option("--grpc", metavar="HOST:PORT", help="Beside --system: where the gRPC face listens, not 127.0.0.1:7450.")
@click.option("--http", metavar="HOST:PORT", help="Beside --system: where the HTTP face listens, not 127.0.0.1:7451.")
@click.option(
    "--port-file",
    type=click.Path(path_type=Path, dir_okay=False),
    envvar="MEMDOCK_GATEWAY_PORT_FILE",
    show_envvar=True,
    help='Gets {"grpc": port, "http": port} once calls are taken.',
)
def serve(
    config: Path | None,
    insecure_dev: bool,
    systems: list[tuple[str, str]],
    grpc: str | None,
    http: str | None,
    port_file: Path | None,
) -> None:
    """Run the gateway until SIGTERM or SIGINT; calls that are inside are answered first.

    \b
    With a configuration, or, to try it on this machine, with a system alone and no keys:
      memdock-gateway serve --config gw/gateway.yaml
      memdock-gateway serve --insecure-dev --system rag-dense=grpc://127.0.0.1:7470
    """
    if bool(config) == bool(systems):
        raise click.UsageError(
            f"give either --config FILE or, to try it without keys, --insecure-dev --system {EXAMPLE}"
        )
    if config and (grpc or http):
        raise click.UsageError(
            "--grpc and --http go with --system; with --config set listen.grpc and listen.http there"
        )
    if systems and not insecure_dev:
        raise click.UsageError("--system without --config asks nobody for a key; say so with --insecure-dev")
    listen = {face: address for face, address in (("grpc", grpc), ("http", http)) if address}
    loaded = _usable(lambda: load_config(config) if config else config_of(systems, listen), insecure_dev=insecure_dev)
    lines = set_up_logs()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve_until_stopped(loaded, port_file))
    except (ConfigError, OSError, ValueError) as problem:
        raise click.ClickException(str(problem)) from None
    finally:
        lines.write_out()


@main.command()
@_config_option(required=True)
@click.option("--insecure-dev", is_flag=True, help="Check it as `serve --insecure-dev` would.")
def check(config: Path, insecure_dev: bool) -> None:
    """Tell whether `serve` would take the configuration; nothing is started."""
    loaded = _usable(lambda: load_config(config), insecure_dev=insecure_dev)
    click.echo(f"{config} can be used: {', '.join(system.name for system in loaded.systems)}")


@main.command()
@_config_option(required=True)
def rotate_space_key(config: Path) -> None:
    """Add a version to the space key.

    Spaces keep the names that they were written under, so no system changes by itself: a system goes on with its
    version until its `space_key_version` is changed, and then its spaces are empty until their turns are sent again.
    """
    try:
        added, fingerprint = folders.rotate_space_key(load_config(config))
    except (ConfigError, OSError) as problem:
        raise click.ClickException(str(problem)) from None
    click.echo(f"Version {added} is in the key file. Add to {config}, under space_key.fingerprints:")
    click.echo(f"    {added}: {fingerprint}")
    click.echo("Then, for each system that shall move (see `Rotating the space key` in the gateway's README):")
    click.echo("  Reset its spaces, stop the gateway, set")
    click.echo(f"    space_key_version: {added}")
    click.echo("  start the gateway, and send the turns again.")


def _usable(load: Callable[[], Config], *, insecure_dev: bool) -> Config:
    """The configuration, once it is known that a gateway can be made of it."""
    try:
        config = load()
        require_safe(config, insecure_dev=insecure_dev)
        check_files(config)
    except ConfigError as problem:
        raise click.ClickException(str(problem)) from None
    return config
