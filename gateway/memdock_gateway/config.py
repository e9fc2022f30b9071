"""What a gateway's configuration may say, validated whole before anything starts; `config_file` reads it from a file.

Credentials are never in it, only the names of the files that hold them. Paths are relative to the folder of the file.
"""

import re
from pathlib import Path
from typing import Annotated, Protocol, Self
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PrivateAttr, ValidationInfo, model_validator
from pydantic_core import PydanticCustomError

from memdock.check import SYSTEM
from memdock.face import is_loopback
from memdock.tls import Tls
from memdock.types import Limits

SCHEMES = ("grpc", "grpcs", "http", "https")
_LISTEN = re.compile(r"(?P<host>\[[0-9a-fA-F:]+\]|[^:\[\]/\s]+):(?P<port>[0-9]{1,5})")
_HEADER = re.compile(r"[A-Za-z0-9-]{1,64}")
_FINGERPRINT = re.compile(r"sha256:[0-9a-f]{64}")
_DEFAULTS = Limits()
_MAX_LIMIT = 2**31 - 1

Location = tuple[int | str, ...]
"""Where something stands in the configuration: `("systems", 0, "address")`."""


class ConfigError(Exception):
    """The configuration cannot be used; each line of the message names a place and says what is wrong there."""


class Source(Protocol):
    """Knows where in its file a part of the configuration stands."""

    def mistake(self, location: Location, sentence: str) -> str:
        """`gateway.yaml:12: systems[0].deadline_s: sentence`."""


def field_name(location: Location) -> str:
    """`systems[0].address`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).removeprefix(".")


def _wrong(sentence: str, *place: int | str) -> PydanticCustomError:
    """A mistake at `place` inside the value that is validated."""
    return PydanticCustomError("config", "{sentence}", {"sentence": sentence, "place": place})


def _in_folder(path: Path, info: ValidationInfo) -> Path:
    return Path((info.context or {}).get("folder", ".")) / path.expanduser()


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise _wrong(f"there is no file {str(path)!r}")
    return path


def _in_existing_folder(path: Path) -> Path:
    if not path.parent.is_dir():
        raise _wrong(f"there is no folder {str(path.parent)!r}")
    return path


def _listen_address(address: str) -> str:
    found = _LISTEN.fullmatch(address)
    if not found or int(found["port"]) > 65535:
        raise _wrong(f"{address!r} is not host:port, such as 127.0.0.1:7450 (port 0: any free one)")
    return address


def _system_name(name: str) -> str:
    if not SYSTEM.fullmatch(name):
        raise _wrong("must begin with a-z or 0-9 and go on with a-z, 0-9 and -, at most 63 in all")
    return name


def _system_address(address: str) -> str:
    parts = _split(address)
    if parts is None or parts.scheme not in SCHEMES or not parts.hostname:
        raise _wrong(f"must be an address such as grpc://host:port; schemes: {', '.join(SCHEMES)}")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise _wrong("an address holds a host, a port and a path; a credential goes into token_file")
    if parts.scheme.startswith("grpc") and (parts.port is None or parts.path not in ("", "/")):
        raise _wrong(f"must be {parts.scheme}://host:port and nothing more")
    return address


def _split(address: str) -> SplitResult | None:
    if not address.isprintable() or " " in address:  # urlsplit leaves such characters out and says nothing
        return None
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError:
        return None
    return parts


def _collector_address(address: str) -> str:
    parts = _split(address)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise _wrong("must be an address such as http://collector:4318")
    return address


def _header_name(name: str) -> str:
    if not _HEADER.fullmatch(name):
        raise _wrong("is no header's name: a-z, 0-9 and -, at most 64")
    return name


def _fingerprint(text: str) -> str:
    if not _FINGERPRINT.fullmatch(text):
        raise _wrong("must be sha256: and 64 hexadecimal digits, as `init` and `rotate-space-key` print it")
    return text


ExistingFile = Annotated[Path, AfterValidator(_in_folder), AfterValidator(_existing)]
NewFile = Annotated[Path, AfterValidator(_in_folder), AfterValidator(_in_existing_folder)]
ListenAddress = Annotated[str, AfterValidator(_listen_address)]
SystemName = Annotated[str, AfterValidator(_system_name)]
SystemAddress = Annotated[str, AfterValidator(_system_address)]
CollectorAddress = Annotated[str, AfterValidator(_collector_address)]
HeaderName = Annotated[str, AfterValidator(_header_name)]
Fingerprint = Annotated[str, AfterValidator(_fingerprint)]
# Neither `true` nor "5" is a number.
Whole = Annotated[int, Field(strict=True)]
Number = Annotated[float, Field(strict=True)]


class Section(BaseModel):
    """A mapping of the file: the fields that it names, and no other."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class TlsConfig(Section):
    """PEM files. `ca_file`: whose certificates are trusted; `cert_file`, `key_file`: how the gateway shows itself.

    Towards a system without `ca_file`: the machine's authorities. As a listener without it: callers need none.
    """

    ca_file: ExistingFile | None = None
    cert_file: ExistingFile | None = None
    key_file: ExistingFile | None = None

    @model_validator(mode="after")
    def _pair(self) -> Self:
        if (self.cert_file is None) != (self.key_file is None):
            raise _wrong("cert_file and key_file go together; give both or none")
        return self

    def files(self) -> Tls:
        """The same as the protocol's type."""
        return Tls(ca_file=self.ca_file, cert_file=self.cert_file, key_file=self.key_file)


class Listen(Section):
    """Where the two faces listen; port 0 takes any free port."""

    grpc: ListenAddress = "127.0.0.1:7450"
    http: ListenAddress = "127.0.0.1:7451"
    tls: TlsConfig | None = None

    @model_validator(mode="after")
    def _has_certificate(self) -> Self:
        if self.tls and not self.tls.cert_file:
            raise _wrong("needs cert_file and key_file", "tls")
        return self


class SystemConfig(Section):
    """One memory system behind the gateway."""

    name: SystemName
    address: SystemAddress
    # A file with the bearer token that the adapter asks for.
    token_file: ExistingFile | None = None
    # Header name -> a file with its value, for adapters that ask for something else.
    header_files: dict[HeaderName, ExistingFile] = {}
    tls: TlsConfig | None = None
    # No call takes longer, whatever its caller allows.
    deadline_s: Number = Field(default=60, gt=0, le=3600)
    # Calls inside the adapter at once; waiting Flushes do not count.
    concurrency: Whole = Field(default=64, ge=1, le=10_000)
    # Calls that wait for one of those places; one more is QUEUE_FULL.
    queue: Whole = Field(default=256, ge=0, le=100_000)
    # Which version of the space key names this system's spaces.
    space_key_version: Whole = Field(default=1, ge=1)

    @model_validator(mode="after")
    def _tls_fits(self) -> Self:
        if self.tls and not self.address.startswith(("grpcs://", "https://")):
            raise _wrong("needs an address that starts with grpcs:// or https://", "tls")
        return self


class SpaceKeyConfig(Section):
    """The keyed hash that names spaces at the adapters, and what it must be: version -> fingerprint."""

    file: ExistingFile
    fingerprints: dict[Annotated[Whole, Field(ge=1)], Fingerprint]


class LimitsConfig(Section):
    """What a request may hold; checked before anything reaches an adapter."""

    max_turns_per_request: Whole = Field(default=_DEFAULTS.max_turns_per_request, ge=1, le=_MAX_LIMIT)
    max_request_bytes: Whole = Field(default=_DEFAULTS.max_request_bytes, ge=1024, le=_MAX_LIMIT)
    max_turn_bytes: Whole = Field(default=_DEFAULTS.max_turn_bytes, ge=1, le=_MAX_LIMIT)
    max_top_k: Whole = Field(default=_DEFAULTS.max_top_k, ge=1, le=_MAX_LIMIT)
    max_query_bytes: Whole = Field(default=_DEFAULTS.max_query_bytes, ge=1, le=_MAX_LIMIT)
    max_page_size: Whole = Field(default=_DEFAULTS.max_page_size, ge=1, le=_MAX_LIMIT)

    def limits(self) -> Limits:
        """The same as the protocol's type. How long a Flush waits is cut by each system's own limit and deadline."""
        return Limits(**self.model_dump())


class Telemetry(Section):
    """Traces go to `otlp_endpoint` (OTLP over HTTP, such as http://collector:4318); absent: none are made.

    A caller's sampling flag decides; `sample_ratio` is for calls that come without one.
    """

    otlp_endpoint: CollectorAddress | None = None
    sample_ratio: Number = Field(default=0.1, ge=0, le=1)


def _systems(systems: tuple[SystemConfig, ...]) -> tuple[SystemConfig, ...]:
    if not systems:
        raise _wrong("must list at least one system")
    names: set[str] = set()
    for index, system in enumerate(systems):
        if system.name in names:
            raise _wrong(f"the name {system.name} is there twice; give each system its own", index, "name")
        names.add(system.name)
    return systems


class Config(Section):
    """The whole file."""

    listen: Listen = Listen()
    keys_file: ExistingFile | None = None
    space_key: SpaceKeyConfig | None = None
    audit_file: NewFile | None = None
    systems: Annotated[tuple[SystemConfig, ...], AfterValidator(_systems)]
    limits: LimitsConfig = LimitsConfig()
    telemetry: Telemetry = Telemetry()
    # How long calls that are inside may still take after SIGTERM.
    drain_s: Number = Field(default=30, ge=0, le=3600)

    _source: Source | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _names_its_space_keys(self) -> Self:
        for index, system in enumerate(self.systems if self.space_key else ()):
            version = system.space_key_version
            if self.space_key and version not in self.space_key.fingerprints:
                raise _wrong(
                    f"lacks version {version}, which systems[{index}] ({system.name}) uses; "
                    "add its fingerprint, or change that system's space_key_version",
                    "space_key",
                    "fingerprints",
                )
        return self

    def come_from(self, source: Source) -> None:
        """Lets `wrong` name the places of a file."""
        self._source = source

    def wrong(self, sentence: str, *location: int | str) -> ConfigError:
        """The error for what shows only later: a file that cannot be used, a part that is needed."""
        if self._source is None:
            return ConfigError(f"{field_name(location)}: {sentence}" if location else sentence)
        return ConfigError(self._source.mistake(location, sentence))

    @property
    def open_face(self) -> str | None:
        """The face that somebody outside this machine may reach, `grpc` or `http`; `None`: neither."""
        addresses = {"grpc": self.listen.grpc, "http": self.listen.http}
        return next((face for face, one in addresses.items() if not is_loopback(one)), None)
