"""The one command of an adapter, `serve`, with the options that all adapters share."""

import os
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from memdock.secret_option import SecretOption
from memdock.server import ServeOptions, run, serve
from memdock.sqlite_ledger import SqliteLedger
from memdock.system import System
from memdock.tls import Tls
from memdock.types import Model
from memdock.variables import unknown_variables

PREFIX = "MEMDOCK_ADAPTER_"
_FILE = click.Path(path_type=Path, dir_okay=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAt:
    """A model behind an OpenAI-style endpoint, such as the meter. `dimension` of an embedding, else 0."""

    url: str
    model: str
    key: str = field(default="none", repr=False)
    dimension: int = 0


def models_of(chat: ModelAt, embedder: ModelAt) -> tuple[Model, Model]:
    """Both as Describe tells them."""
    return (
        Model(purpose="extraction", name=chat.model),
        Model(purpose="embedding", name=embedder.model, dimension=embedder.dimension),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterSettings:
    """What an adapter is started with. `data` exists; `more` has the values of the adapter's own options."""

    system: str
    data: Path
    chat: ModelAt
    embedder: ModelAt
    more: Mapping[str, Any] = field(default_factory=dict)


Open = Callable[[AdapterSettings], AbstractAsyncContextManager[System]]
Opened = AsyncIterator[System]


def adapter_command(name: str, words: str, open_system: Open, options: tuple[click.Option, ...] = ()) -> click.Group:
    """The console command of an adapter.

    `name` is the system's default name; `words` say in the help what it is. `open_system` gives the system, and ends
    what it stands on. `options` are the adapter's own; their variables begin with `MEMDOCK_ADAPTER_`, too.
    """
    serve_command = click.Command("serve", params=[*_options(name), *options], callback=_serve_by(open_system))
    serve_command.help = "Serve until SIGTERM or SIGINT; what is accepted by then is safe."
    known = {option.envvar for option in serve_command.params if isinstance(option.envvar, str)}
    secrets = [option for option in serve_command.params if isinstance(option, SecretOption)]
    known |= {variable for option in secrets for variable in option.variables}

    def refuse_unknown() -> None:
        if unknown := unknown_variables(os.environ, known):
            raise click.ClickException(f"unknown variable {unknown[0]}: expected {', '.join(sorted(known))}")

    group = click.Group(f"memdock-{name}", callback=refuse_unknown, help=words)
    group.context_settings = {"help_option_names": ["-h", "--help"]}
    group.add_command(serve_command)
    return group


def option(flag: str, help_text: str, *, secret: bool = False, **more: Any) -> click.Option:
    """An option with its variable: `--neo4j-url` is also `MEMDOCK_ADAPTER_NEO4J_URL`.

    That of a `secret` may name a file by `..._FILE` in its place.
    """
    variable = PREFIX + flag.removeprefix("--").replace("-", "_").upper()
    default = {"show_default": True} if more.get("default") not in (None, "") else {}
    kind = SecretOption if secret else click.Option
    return kind([flag], help=help_text, envvar=variable, show_envvar=True, **default, **more)


def _options(name: str) -> list[click.Parameter]:
    return [
        option("--system", "The system's name.", default=name, callback=_system_name),
        option("--data", "Folder of the ledger and of embedded stores.", default=Path("memdock-data"),
               type=click.Path(path_type=Path, file_okay=False)),
        option("--chat-url", "OpenAI-style endpoint of the chat model, such as http://host/v1.", required=True,
               callback=_address),
        option("--chat-model", "The chat model's name.", required=True),
        option("--chat-key", "Its key.", default="none", secret=True),
        option("--embedder-url", "OpenAI-style endpoint of the embedder.", required=True, callback=_address),
        option("--embedder-model", "The embedding model's name.", required=True),
        option("--embedder-dimension", "How long its vectors are.", required=True, type=click.IntRange(1, 16_000)),
        option("--embedder-key", "Its key.", default="none", secret=True),
        option("--grpc", "HOST:PORT of the gRPC face; port 0: a free one.", default="127.0.0.1:0"),
        option("--http", "HOST:PORT of the HTTP face.", default="127.0.0.1:0"),
        option("--token", "Bearer token that callers must send; empty: none.", default="", secret=True),
        click.Option(["--tls-cert"], type=_FILE, help="PEM file of the certificate of both faces."),
        click.Option(["--tls-key"], type=_FILE, help="PEM file of its key."),
        click.Option(["--tls-ca"], type=_FILE, help="PEM file of the authority of callers' certificates."),
        click.Option(["--port-file"], type=_FILE, help='Written once ready: {"grpc": PORT, "http": PORT}.'),
    ]  # fmt: skip


_SHARED = frozenset(
    {
        "system", "data", "chat_url", "chat_model", "chat_key", "embedder_url", "embedder_model", "embedder_dimension",
        "embedder_key", "grpc", "http", "token", "tls_cert", "tls_key", "tls_ca", "port_file",
    }
)  # fmt: skip


def _serve_by(open_system: Open) -> Callable[..., None]:
    def serve_command(**given: Any) -> None:
        tls = None
        if given["tls_cert"] or given["tls_key"] or given["tls_ca"]:
            tls = Tls(cert_file=given["tls_cert"], key_file=given["tls_key"], ca_file=given["tls_ca"])
        faces = ServeOptions(
            grpc=given["grpc"], http=given["http"], token=given["token"], tls=tls, port_file=given["port_file"]
        )
        settings = AdapterSettings(
            system=given["system"],
            data=given["data"].absolute(),
            chat=ModelAt(url=given["chat_url"], model=given["chat_model"], key=given["chat_key"]),
            embedder=ModelAt(
                url=given["embedder_url"],
                model=given["embedder_model"],
                key=given["embedder_key"],
                dimension=given["embedder_dimension"],
            ),
            more={name: value for name, value in given.items() if name not in _SHARED},
        )
        run(_serve(settings, open_system, faces))

    return serve_command


async def _serve(settings: AdapterSettings, open_system: Open, faces: ServeOptions) -> None:
    settings.data.mkdir(parents=True, exist_ok=True)
    async with open_system(settings) as system:
        await serve(system, SqliteLedger(settings.data / "turns.sqlite"), faces)


def _system_name(_context: click.Context, _parameter: click.Parameter, name: str) -> str:
    if not re.fullmatch("[a-z0-9][a-z0-9-]{0,62}", name):
        raise click.BadParameter("small letters, digits and -, at most 63, no - at the start")
    return name


def _address(_context: click.Context, _parameter: click.Parameter, url: str) -> str:
    if not url.startswith(("http://", "https://")):
        raise click.BadParameter("expected an address such as http://host/v1")
    return url.rstrip("/")
