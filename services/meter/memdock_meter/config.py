"""The configuration file: endpoints, the systems that may reach them, and how far."""

import ipaddress
from pathlib import Path
from typing import Annotated, Literal, TypeVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from memdock_meter.problems import ConfigError, first_problem
from memdock_meter.yaml_file import read_fields

Mode = Literal["live", "record", "replay"]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]


def _address(url: str) -> str:
    parts = urlsplit(url)  # raises ValueError for brackets, `port` for a number that is none
    spaced = any(map(str.isspace, url))
    if not url.startswith(("http://", "https://")) or not parts.hostname or parts.port == 0 or spaced:
        raise ValueError("give an address like https://host/v1")
    return url.rstrip("/")


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class UpstreamConfig(_Part):
    """An OpenAI-style endpoint. `url` is what `/chat/completions` and `/embeddings` are added to."""

    url: Annotated[str, AfterValidator(_address)]
    key_file: Path | None = None
    timeout_s: float = Field(default=120.0, gt=0, le=3600)
    """Of one try."""
    tries: int = Field(default=4, ge=1, le=20)
    longest_wait_s: float = Field(default=60.0, ge=0, le=3600)
    """Where an endpoint asks for a longer wait before the next try, its refusal is passed on."""


class SystemConfig(_Part):
    """A memory system: the endpoints that it reaches, and its bounds; `None` or 0: none."""

    chat: Name | None = None
    embeddings: Name | None = None
    key_file: Path | None = None
    """What it must show as `Authorization: Bearer ...`; then its name need not stand in the path."""
    budget: float | None = Field(default=None, gt=0)
    """Money, in the price table's currency, since the store began; then its calls are refused."""
    concurrency: int = Field(default=64, ge=1, le=10_000)
    requests_per_minute: int | None = Field(default=None, ge=1)


class Config(_Part):
    """All of the file. Paths count from its folder."""

    listen: str = "127.0.0.1:7480"
    store: Path = Path("meter.sqlite")
    mode: Mode = "live"
    prices: Path | None = None
    trust_network: bool = False
    """Whether systems without keys may be served on an address that others reach."""
    upstreams: dict[Name, UpstreamConfig] = Field(min_length=1)
    systems: dict[Name, SystemConfig] = Field(min_length=1)

    @model_validator(mode="after")
    def _fits(self) -> "Config":
        for name, system in self.systems.items():
            for kind in ("chat", "embeddings"):
                wanted = getattr(system, kind)
                if wanted is not None and wanted not in self.upstreams:
                    known = ", ".join(sorted(self.upstreams))
                    raise ValueError(f"systems.{name}.{kind} names {wanted!r}, which is no upstream: known are {known}")
            if system.budget is not None and self.prices is None:
                raise ValueError(f"systems.{name}.budget needs prices: name the file of the price table")
        return self


def read_config(path: Path, *, listen: str | None = None) -> Config:
    """The file's configuration with its paths made whole; `listen` goes before the file. Raises `ConfigError`."""
    fields = read_fields(path)
    try:
        config = Config.model_validate(fields if listen is None else fields | {"listen": listen})
    except ValidationError as error:
        raise ConfigError(f"{path}: {first_problem(error)}") from error
    host, _ = host_and_port(config.listen)
    without = [name for name, system in config.systems.items() if system.key_file is None]
    if without and not _is_loopback(host) and not config.trust_network:
        raise ConfigError(
            f"{path}: systems.{without[0]} has no key_file, and {config.listen} can be reached by others: give it one, "
            "or set trust_network where only these systems reach the address"
        )
    return config.model_copy(
        update={
            "store": path.parent / config.store,
            "prices": config.prices and path.parent / config.prices,
            "upstreams": {name: _rooted(each, path.parent) for name, each in config.upstreams.items()},
            "systems": {name: _rooted(each, path.parent) for name, each in config.systems.items()},
        }
    )


PartT = TypeVar("PartT", UpstreamConfig, SystemConfig)


def host_and_port(listen: str) -> tuple[str, int]:
    """Raises `ConfigError`."""
    host, _, port = listen.rpartition(":")
    if not host or not (port.isascii() and port.isdigit() and int(port) < 2**16):
        raise ConfigError(f"listen: give HOST:PORT, not {listen!r}")
    return host.strip("[]"), int(port)


def secret(path: Path | None) -> str:
    """A key file's content, "" without a file; raises `ConfigError`."""
    if path is None:
        return ""
    try:
        key = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: the key cannot be read from it") from error
    if not key or not (key.isascii() and key.isprintable()):
        raise ConfigError(f"{path}: it holds no key that a header can carry: give one line of ASCII")
    return key


def system_keys(config: Config) -> dict[str, str]:
    """Each system's key, "" where it needs none; raises `ConfigError`, also where a key would name two systems."""
    keys = {name: secret(each.key_file) for name, each in config.systems.items()}
    owners: dict[str, str] = {}
    for name, key in keys.items():
        if key and (owner := owners.setdefault(key, name)) != name:
            first, second = (config.systems[each].key_file for each in (owner, name))
            raise ConfigError(
                f"systems.{owner} and systems.{name} have the same key ({first}, {second}), and a key names its "
                "system: give each a key of its own"
            )
    return keys


def _rooted(part: PartT, folder: Path) -> PartT:
    return part.model_copy(update={"key_file": part.key_file and folder / part.key_file})


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
