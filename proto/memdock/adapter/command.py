"""The one command of an adapter, `serve`, with the options that all adapters share."""

import os
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import click

from memdock.adapter.folder import data_folder, opening
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
class Settings:
    """What every adapter is started with. `data` exists; `more` has the values of the adapter's own options."""

    system: str
    data: Path
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def facts(self) -> Mapping[str, str]:
        """What must be the same at each start on the folder (`memdock.adapter.folder`)."""
        return {"system": self.system}


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterSettings(Settings):
    """What an adapter around a framework is started with: the framework asks these models."""

    chat: ModelAt
    embedder: ModelAt

    @property
    def facts(self) -> Mapping[str, str]:
        """Beside the system its embedder: vectors of two cannot be compared."""
        embedder = f"{self.embedder.model}, {self.embedder.dimension} numbers"
        return {"system": self.system, "embedder": embedder}


SettingsT = TypeVar("SettingsT", bound=Settings)
Open = Callable[[SettingsT], AbstractAsyncContextManager[System]]
Opened = AsyncIterator[System]


def adapter_command(
    name: str, words: str, open_system: Open[AdapterSettings], options: tuple[click.Option, ...] = ()
) -> click.Group:
    """The console command of an adapter around a framework, which asks models.

    `name` is the system's default name; `words` say in the help what it is. `open_system` gives the system, and ends
    what it stands on. `options` are the adapter's own; their variables begin with `MEMDOCK_ADAPTER_`, too.
    """
    return served_command(name, words, _with_models, open_system, (*_MODELS, *options))


def served_command(
    name: str,
    words: str,
    read: Callable[[Settings], SettingsT],
    open_system: Open[SettingsT],
    options: Sequence[click.Option],
) -> click.Group:
    """The console command of any adapter; `read` makes the settings of its kind, out of `more`."""
    serve_command = click.Command("serve", params=[*_options(name), *options])
    serve_command.help = "Serve until SIGTERM or SIGINT; what is accepted by then is safe."
    known = {option.envvar for option in serve_command.params if isinstance(option.envvar, str)}
    secrets = [option for option in serve_command.params if isinstance(option, SecretOption)]
    serve_command.callback = _serve_by(read, open_system, secrets)
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
        option("--data", "Folder of the ledger and of embedded stores.", default=Path("memdock-data") / name,
               type=click.Path(path_type=Path, file_okay=False)),
        option("--grpc", "HOST:PORT of the gRPC face; port 0: a free one.", default="127.0.0.1:0"),
        option("--http", "HOST:PORT of the HTTP face.", default="127.0.0.1:0"),
        option("--token", "Bearer token that callers must send; empty: none.", default="", secret=True),
        click.Option(["--tls-cert"], type=_FILE, help="PEM file of the certificate of both faces."),
        click.Option(["--tls-key"], type=_FILE, help="PEM file of its key."),
        click.Option(["--tls-ca"], type=_FILE, help="PEM file of the authority of callers' certificates."),
        click.Option(["--port-file"], type=_FILE, help='Written once ready: {"grpc": PORT, "http": PORT}.'),
    ]  # fmt: skip


_FACES = ("grpc", "http", "token", "tls_cert", "tls_key", "tls_ca", "port_file")


def _serve_by(
    read: Callable[[Settings], SettingsT], open_system: Open[SettingsT], secret: Sequence[SecretOption]
) -> Callable[..., None]:
    def serve_command(**given: Any) -> None:
        values = [given[str(each.name)] for each in secret if given[str(each.name)] != each.default]
        grpc, http, token, tls_cert, tls_key, tls_ca, port_file = (given.pop(name) for name in _FACES)
        tls = None
        if tls_cert or tls_key or tls_ca:
            tls = Tls(cert_file=tls_cert, key_file=tls_key, ca_file=tls_ca)
        faces = ServeOptions(grpc=grpc, http=http, token=token, tls=tls, port_file=port_file)
        system, data = given.pop("system"), given.pop("data").absolute()
        run(_serve(read(Settings(system=system, data=data, more=given)), open_system, faces, values))

    return serve_command


async def _serve(
    settings: SettingsT, open_system: Open[SettingsT], faces: ServeOptions, secrets: Sequence[str]
) -> None:
    async with AsyncExitStack() as ends:
        ends.enter_context(data_folder(settings.data, settings.facts))
        with opening(settings.data, secrets):
            system = await ends.enter_async_context(open_system(settings))
        await serve(system, SqliteLedger(settings.data / "turns.sqlite"), faces)


def _system_name(_context: click.Context, _parameter: click.Parameter, name: str) -> str:
    if not re.fullmatch("[a-z0-9][a-z0-9-]{0,62}", name):
        raise click.BadParameter("small letters, digits and -, at most 63, no - at the start")
    return name


def address(_context: click.Context, _parameter: click.Parameter, url: str) -> str:
    """The callback of an option that is an HTTP address."""
    if not url.startswith(("http://", "https://")):
        raise click.BadParameter("expected an address such as http://host/v1")
    return url.rstrip("/")


_MODELS = (
    option("--chat-url", "OpenAI-style endpoint of the chat model, such as http://host/v1.", required=True,
           callback=address),
    option("--chat-model", "The chat model's name.", required=True),
    option("--chat-key", "Its key.", default="none", secret=True),
    option("--embedder-url", "OpenAI-style endpoint of the embedder.", required=True, callback=address),
    option("--embedder-model", "The embedding model's name.", required=True),
    option("--embedder-dimension", "How long its vectors are.", required=True, type=click.IntRange(1, 16_000)),
    option("--embedder-key", "Its key.", default="none", secret=True),
)  # fmt: skip


def _with_models(settings: Settings) -> AdapterSettings:
    more = dict(settings.more)
    chat = ModelAt(url=more.pop("chat_url"), model=more.pop("chat_model"), key=more.pop("chat_key"))
    embedder = ModelAt(
        url=more.pop("embedder_url"),
        model=more.pop("embedder_model"),
        key=more.pop("embedder_key"),
        dimension=more.pop("embedder_dimension"),
    )
    return AdapterSettings(system=settings.system, data=settings.data, chat=chat, embedder=embedder, more=more)
