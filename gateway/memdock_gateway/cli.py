"""The command `memdock-gateway`."""

import asyncio
import os
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import click
import uvloop

from memdock_gateway import folder as folders
from memdock_gateway.assembly import check_files, require_safe
from memdock_gateway.config import Config, ConfigError, load_config
from memdock_gateway.log import set_up_logs
from memdock_gateway.server import serve as serve_until_stopped

VARIABLES = ("MEMDOCK_CONFIG", "MEMDOCK_PORT_FILE")

_GUIDE = """One address for many memory systems: keys, limits, queues, retries, metrics, traces.

\b
A first gateway, in a folder of its own:
  memdock-gateway init gw --system rag-dense=grpc://127.0.0.1:7460
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

_config_option = click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    envvar="MEMDOCK_CONFIG",
    show_envvar=True,
    help="The configuration file (YAML).",
)


@click.group(help=_GUIDE)
@click.version_option(version("memdock-gateway"))
def main() -> None:
    unknown = sorted(name for name in os.environ if name.startswith("MEMDOCK_") and name not in VARIABLES)
    if unknown:
        raise click.ClickException(f"unknown variable {', '.join(unknown)}; known are {', '.join(VARIABLES)}")


@main.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--system",
    "systems",
    multiple=True,
    metavar="NAME=ADDRESS",
    help="A system behind the gateway; may be repeated.  [default: rag-dense=grpc://127.0.0.1:7460]",
)
@click.option("--tenant", default="default", show_default=True, help="Whose the first key is.")
def init(folder: Path, systems: tuple[str, ...], tenant: str) -> None:
    """Write a ready configuration, a first API key and a space key into FOLDER."""
    pairs = dict(_pair(system) for system in systems or ("rag-dense=grpc://127.0.0.1:7460",))
    try:
        folders.create_folder(folder, tenant=tenant, systems=pairs, now=datetime.now(UTC).replace(microsecond=0))
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
@_config_option
@click.option(
    "--insecure-dev",
    is_flag=True,
    help="Do without what the configuration lacks of keys_file, space_key and audit_file; loopback addresses only.",
)
@click.option(
    "--port-file",
    type=click.Path(path_type=Path, dir_okay=False),
    envvar="MEMDOCK_PORT_FILE",
    show_envvar=True,
    help='Gets {"grpc": port, "http": port} once calls are taken.',
)
def serve(config: Path, insecure_dev: bool, port_file: Path | None) -> None:
    """Run the gateway until SIGTERM or SIGINT; calls that are inside are answered first."""
    loaded = _load(config, insecure_dev=insecure_dev)
    lines = set_up_logs()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve_until_stopped(loaded, port_file))
    except (ConfigError, OSError, ValueError) as problem:
        raise click.ClickException(str(problem)) from None
    finally:
        lines.write_out()


@main.command()
@_config_option
@click.option("--insecure-dev", is_flag=True, help="Check it as `serve --insecure-dev` would.")
def check(config: Path, insecure_dev: bool) -> None:
    """Tell whether `serve` would take the configuration; nothing is started."""
    loaded = _load(config, insecure_dev=insecure_dev)
    click.echo(f"{config} can be used: {', '.join(system.name for system in loaded.systems)}")


@main.command()
@_config_option
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


def _load(path: Path, *, insecure_dev: bool) -> Config:
    try:
        config = load_config(path)
        require_safe(config, insecure_dev=insecure_dev)
        check_files(config)
    except ConfigError as problem:
        raise click.ClickException(str(problem)) from None
    return config


def _pair(text: str) -> tuple[str, str]:
    name, separator, address = text.partition("=")
    if not separator:
        raise click.BadParameter(f"{text!r} is not NAME=ADDRESS, such as rag-dense=grpc://127.0.0.1:7460")
    return name, address
