"""The gateway's configuration file: YAML, validated whole before anything starts.

A mistake is told as `gateway.yaml:12: systems[0].deadline_s: what is wrong`, all mistakes at once. Paths are relative
to the folder of the file. Credentials are never in the file, only the names of the files that hold them.
"""

import ipaddress
import re
from pathlib import Path
from typing import Annotated, Any, Self
from urllib.parse import urlsplit

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, model_validator
from pydantic_core import PydanticCustomError

from memdock.types import Limits

SCHEMES = ("grpc", "grpcs", "http", "https")
_LISTEN = re.compile(r"(?P<host>\[[0-9a-fA-F:]+\]|[^:\[\]/\s]+):(?P<port>\d{1,5})")
_DEFAULTS = Limits()


class ConfigError(Exception):
    """The configuration cannot be used; each line of the message names a place and what is wrong there."""


def _wrong(sentence: str) -> PydanticCustomError:
    return PydanticCustomError("config", "{sentence}", {"sentence": sentence})


def _in_folder(path: Path, info: ValidationInfo) -> Path:
    return Path((info.context or {}).get("folder", ".")) / path.expanduser()


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise _wrong(f"there is no file {path}")
    return path


def _in_existing_folder(path: Path) -> Path:
    if not path.parent.is_dir():
        raise _wrong(f"there is no folder {path.parent}")
    return path


def _listen_address(address: str) -> str:
    found = _LISTEN.fullmatch(address)
    if not found or int(found["port"]) > 65535:
        raise _wrong(f"{address!r} is not host:port, such as 127.0.0.1:7450 (port 0: any free one)")
    return address


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def _system_address(address: str) -> str:
    parts = urlsplit(address)
    if parts.scheme not in SCHEMES or not parts.hostname:
        raise _wrong(f"{address!r} is not an address such as grpc://host:port; schemes: {', '.join(SCHEMES)}")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise _wrong("an address holds a host, a port and a path; a credential goes into token_file")
    return address


ExistingFile = Annotated[Path, AfterValidator(_in_folder), AfterValidator(_existing)]
NewFile = Annotated[Path, AfterValidator(_in_folder), AfterValidator(_in_existing_folder)]
ListenAddress = Annotated[str, AfterValidator(_listen_address)]
SystemAddress = Annotated[str, AfterValidator(_system_address)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TlsConfig(_Section):
    """PEM files. `ca_file`: whose certificates are trusted; `cert_file`, `key_file`: how the gateway shows itself.

    Towards a system without `ca_file`: the machine's authorities. As a listener without it: callers need none.
    """

    ca_file: ExistingFile | None = None
    cert_file: ExistingFile | None = None
    key_file: ExistingFile | None = None

    @model_validator(mode="after")
    def _pair(self) -> Self:
        if (self.cert_file is None) != (self.key_file is None):
            raise _wrong("cert_file and key_file go together")
        return self


class Listen(_Section):
    """Where the two faces listen; port 0 takes any free port."""

    grpc: ListenAddress = "127.0.0.1:7450"
    http: ListenAddress = "127.0.0.1:7451"
    tls: TlsConfig | None = None

    @model_validator(mode="after")
    def _has_certificate(self) -> Self:
        if self.tls and not self.tls.cert_file:
            raise _wrong("tls needs cert_file and key_file")
        return self

    @property
    def loopback(self) -> bool:
        """Nobody outside this machine reaches either face."""
        return all(_is_loopback(address.rpartition(":")[0]) for address in (self.grpc, self.http))


class SystemConfig(_Section):
    """One memory system behind the gateway."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")
    address: SystemAddress
    # A file with the bearer token that the adapter asks for.
    token_file: ExistingFile | None = None
    # Header name -> a file with its value, for adapters that ask for something else.
    header_files: dict[str, ExistingFile] = {}
    tls: TlsConfig | None = None
    # No call takes longer, whatever its caller allows.
    deadline_s: float = Field(default=60, gt=0, le=3600)
    # Calls inside the adapter at once; waiting Flushes do not count.
    concurrency: int = Field(default=64, ge=1, le=10_000)
    # Calls that wait for one of those places; one more is QUEUE_FULL.
    queue: int = Field(default=256, ge=0, le=100_000)
    # Which version of the space key names this system's spaces.
    space_key_version: int = Field(default=1, ge=1)

    @model_validator(mode="after")
    def _tls_fits(self) -> Self:
        if self.tls and not self.address.startswith(("grpcs://", "https://")):
            raise _wrong("tls needs an address that starts with grpcs:// or https://")
        return self


class SpaceKeyConfig(_Section):
    """The keyed hash that names spaces at the adapters, and what it must be: version -> fingerprint."""

    file: ExistingFile
    fingerprints: dict[int, str] = Field(min_length=1)


class LimitsConfig(_Section):
    """What a request may hold; checked before anything reaches an adapter."""

    max_turns_per_request: int = Field(default=_DEFAULTS.max_turns_per_request, ge=1)
    max_request_bytes: int = Field(default=_DEFAULTS.max_request_bytes, ge=1024)
    max_turn_bytes: int = Field(default=_DEFAULTS.max_turn_bytes, ge=1)
    max_top_k: int = Field(default=_DEFAULTS.max_top_k, ge=1)
    max_query_bytes: int = Field(default=_DEFAULTS.max_query_bytes, ge=1)
    max_page_size: int = Field(default=_DEFAULTS.max_page_size, ge=1)

    def limits(self) -> Limits:
        """The same as the protocol's type. How long a Flush waits is cut by each system's own limit and deadline."""
        return Limits(**self.model_dump())


class Telemetry(_Section):
    """Traces go to `otlp_endpoint` (OTLP over HTTP, such as http://collector:4318); absent: none are made.

    A caller's sampling flag decides; `sample_ratio` is for calls that come without one.
    """

    otlp_endpoint: str | None = Field(default=None, pattern=r"^https?://\S+$")
    sample_ratio: float = Field(default=0.1, ge=0, le=1)


class Config(_Section):
    """The whole file."""

    listen: Listen = Listen()
    keys_file: ExistingFile | None = None
    space_key: SpaceKeyConfig | None = None
    audit_file: NewFile | None = None
    systems: tuple[SystemConfig, ...]
    limits: LimitsConfig = LimitsConfig()
    telemetry: Telemetry = Telemetry()
    # How long calls that are inside may still take after SIGTERM.
    drain_s: float = Field(default=30, ge=0, le=3600)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not self.systems:
            raise _wrong("systems: there must be at least one")
        names = [system.name for system in self.systems]
        for name in names:
            if names.count(name) > 1:
                raise _wrong(f"systems: the name {name} is there twice")
        if self.space_key:
            for system in self.systems:
                if system.space_key_version not in self.space_key.fingerprints:
                    raise _wrong(
                        f"space_key.fingerprints lacks version {system.space_key_version}, which {system.name} uses"
                    )
        return self


def load_config(path: Path) -> Config:
    """The validated configuration; `ConfigError` lists every mistake with its line."""
    try:
        text = path.read_text("utf-8")
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        content = yaml.safe_load(text)
    except OSError as problem:
        raise ConfigError(f"{path}: cannot be read: {problem.strerror}") from problem
    except (yaml.YAMLError, UnicodeDecodeError) as problem:
        raise ConfigError(f"{path}: is not YAML: {problem}") from problem
    if not isinstance(content, dict):
        raise ConfigError(f"{path}:1: is not a mapping; it needs at least `systems:`")
    if twice := _given_twice(node, set()):
        raise ConfigError("\n".join(f"{path}:{line}: {key} is given twice" for line, key in twice))
    try:
        return Config.model_validate(content, context={"folder": path.parent})
    except ValidationError as problem:
        lines = (
            f"{path}:{_line(node, mistake['loc'])}: {_field(mistake['loc'])}{mistake['msg']}"
            for mistake in problem.errors(include_url=False, include_input=False)
        )
        raise ConfigError("\n".join(lines)) from None


def check_system(name: str, address: str) -> None:
    """Raises `ConfigError` when a system cannot be configured so."""
    try:
        SystemConfig(name=name, address=address)
    except ValidationError as problem:
        first = problem.errors(include_url=False, include_input=False)[0]
        raise ConfigError(f"{_field(first['loc'])}{first['msg']}") from None


def _field(location: tuple[int | str, ...]) -> str:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).removeprefix(".")
    return f"{path}: " if path else ""


def _given_twice(node: Any, seen: set[int]) -> list[tuple[int, str]]:
    """Line and name of each key that its mapping has already; YAML itself takes the last one and says nothing."""
    if not isinstance(node, yaml.CollectionNode) or id(node) in seen:
        return []
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        return [found for part in node.value for found in _given_twice(part, seen)]
    twice: list[tuple[int, str]] = []
    keys: set[str] = set()
    for key, value in node.value:
        if key.value in keys:
            twice.append((key.start_mark.line + 1, key.value))
        keys.add(key.value)
        twice += _given_twice(value, seen)
    return twice


def _line(node: Any, location: tuple[int | str, ...]) -> int:
    """The line, from 1, of the deepest part of `location` that stands in the file."""
    line = node.start_mark.line
    for part in location:
        if isinstance(node, yaml.SequenceNode) and isinstance(part, int):
            node = node.value[part]
            line = node.start_mark.line
        elif isinstance(node, yaml.MappingNode):
            entry = next((pair for pair in node.value if pair[0].value == str(part)), None)
            if entry is None:
                break
            line, node = entry[0].start_mark.line, entry[1]
        else:
            break
    return int(line) + 1
