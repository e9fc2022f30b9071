"""The gateway's parts put together from its configuration; what cannot work is refused before anything listens."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from memdock.key_file import KeyFileError
from memdock.tls import Tls
from memdock.transport import Endpoint, Transport, open_transport
from memdock_gateway.audit import Audit
from memdock_gateway.callers import Anybody, Callers, KeyFileCallers
from memdock_gateway.config import Config, ConfigError, SystemConfig, TlsConfig
from memdock_gateway.gate import Gate
from memdock_gateway.metrics import Metrics
from memdock_gateway.observe import Observer
from memdock_gateway.readiness import Readiness
from memdock_gateway.router import Router
from memdock_gateway.space_key import DEVELOPMENT_KEY, SpaceKey, SpaceNames, fitting_keys
from memdock_gateway.tracing import open_traces
from memdock_gateway.upstream import Upstream


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a running gateway consists of, behind its faces."""

    gate: Gate
    observer: Observer
    callers: Callers
    transports: Mapping[str, Transport]
    audit: Audit | None


def require_safe(config: Config, *, insecure_dev: bool) -> None:
    """Raises `ConfigError` unless the gateway protects what is behind it, or nobody but this machine reaches it."""
    if insecure_dev:
        if not config.listen.loopback:
            raise ConfigError("--insecure-dev listens on loopback addresses only; set listen.grpc and listen.http so")
        return
    missing = [name for name in ("keys_file", "space_key", "audit_file") if getattr(config, name) is None]
    if missing:
        raise ConfigError(
            f"the configuration lacks {', '.join(missing)}; `memdock-gateway init FOLDER` writes all of them, "
            "and --insecure-dev does without, on a loopback address"
        )


def check_files(config: Config) -> None:
    """Raises `ConfigError` when a file that the configuration names cannot be used: keys, credentials, space key."""
    _space_keys(config)
    _callers(config)
    for system in config.systems:
        _endpoint(system)


def assemble(config: Config) -> Parts:
    """The parts; to be called inside the event loop that will serve. Raises `ConfigError`."""
    space_keys = _space_keys(config)
    transports = {system.name: open_transport(_endpoint(system)) for system in config.systems}
    upstreams = {
        system.name: Upstream(
            system.name,
            transports[system.name],
            SpaceNames(space_keys[system.space_key_version], system.name),
            deadline_s=system.deadline_s,
            concurrency=system.concurrency,
            queue=system.queue,
        )
        for system in config.systems
    }
    callers = _callers(config)
    audit = Audit(config.audit_file) if config.audit_file else None
    metrics = Metrics({name: upstream.lane for name, upstream in upstreams.items()})
    router = Router(upstreams, config.limits.limits(), audit)
    observer = Observer(metrics, open_traces(config.telemetry))
    gate = Gate(callers, router, Readiness(transports), observer)
    return Parts(gate=gate, observer=observer, callers=callers, transports=transports, audit=audit)


def tls_files(tls: TlsConfig | None) -> Tls | None:
    """The section as the protocol's type."""
    return None if tls is None else Tls(ca_file=tls.ca_file, cert_file=tls.cert_file, key_file=tls.key_file)


def _space_keys(config: Config) -> Mapping[int, SpaceKey]:
    if config.space_key:
        return fitting_keys(config.space_key.file, config.space_key.fingerprints)
    return {system.space_key_version: DEVELOPMENT_KEY for system in config.systems}


def _callers(config: Config) -> Callers:
    if config.keys_file is None:
        return Anybody()
    try:
        return KeyFileCallers(config.keys_file)
    except KeyFileError as problem:
        raise ConfigError(str(problem)) from None


def _endpoint(system: SystemConfig) -> Endpoint:
    try:
        return Endpoint(
            url=system.address,
            name=system.name,
            credential=_secret(system.token_file) if system.token_file else "",
            headers={name.lower(): _secret(path) for name, path in system.header_files.items()},
            tls=tls_files(system.tls),
        )
    except ValueError as problem:
        raise ConfigError(f"system {system.name}: {problem}") from None


def _secret(path: Path) -> str:
    """The one line of a credential's file. Raises `ValueError` naming the file."""
    try:
        text = path.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        raise ValueError(f"{path} cannot be read as a credential") from None
    if not text or not text.isprintable():
        raise ValueError(f"{path} must hold a credential of one line")
    return text
