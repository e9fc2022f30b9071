"""The gateway's parts put together from its configuration; what cannot work is refused before anything listens."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from memdock.callers import Anybody, Callers, KeyFileCallers
from memdock.key_file import KeyFileError
from memdock.tls import Tls, client_context
from memdock.transport import Endpoint, Transport, open_transport
from memdock_gateway.audit import Audit
from memdock_gateway.config import Config, SystemConfig, TlsConfig
from memdock_gateway.gate import Gate
from memdock_gateway.metrics import Metrics
from memdock_gateway.observe import Observer
from memdock_gateway.readiness import Readiness
from memdock_gateway.router import Router
from memdock_gateway.space_key import DEVELOPMENT_KEY, SpaceKey, SpaceKeyError, SpaceNames, fitting_keys
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
        if config.open_face:
            raise config.wrong("must be a loopback address with --insecure-dev", "listen", config.open_face)
        return
    missing = [name for name in ("keys_file", "space_key", "audit_file") if getattr(config, name) is None]
    if missing:
        raise config.wrong(
            f"lacks {', '.join(missing)}; `memdock-gateway init FOLDER` writes all of them, "
            "and --insecure-dev does without, on a loopback address"
        )


def check_files(config: Config) -> None:
    """Raises `ConfigError` when a file that the configuration names cannot be used. Makes none."""
    _space_keys(config)
    _callers(config)
    _endpoints(config)
    if config.listen.tls:
        _usable_tls(config, config.listen.tls, "listen", "tls")
    if config.audit_file and config.audit_file.exists():
        _audit(config, config.audit_file).close()


def assemble(config: Config) -> Parts:
    """The parts; to be called inside the event loop that will serve. Raises `ConfigError`."""
    space_keys = _space_keys(config)
    transports = {endpoint.name: open_transport(endpoint) for endpoint in _endpoints(config)}
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
    audit = _audit(config, config.audit_file) if config.audit_file else None
    metrics = Metrics({name: upstream.lane for name, upstream in upstreams.items()})
    router = Router(upstreams, config.limits.limits(), audit)
    observer = Observer(metrics, open_traces(config.telemetry))
    gate = Gate(callers, router, Readiness(transports), observer)
    return Parts(gate=gate, observer=observer, callers=callers, transports=transports, audit=audit)


def _usable_tls(config: Config, tls: TlsConfig, *location: int | str) -> Tls:
    files = tls.files()
    try:
        client_context(files)
    except ValueError:
        raise config.wrong("its files must hold PEM, and key_file the key of cert_file", *location) from None
    return files


def _space_keys(config: Config) -> Mapping[int, SpaceKey]:
    if config.space_key is None:
        return {system.space_key_version: DEVELOPMENT_KEY for system in config.systems}
    try:
        return fitting_keys(config.space_key.file, config.space_key.fingerprints)
    except SpaceKeyError as problem:
        raise config.wrong(str(problem), "space_key", "file") from None


def _callers(config: Config) -> Callers:
    if config.keys_file is None:
        return Anybody()
    try:
        return KeyFileCallers(config.keys_file)
    except KeyFileError as problem:
        raise config.wrong(str(problem), "keys_file") from None


def _audit(config: Config, path: Path) -> Audit:
    try:
        return Audit(path)
    except OSError as problem:
        raise config.wrong(f"{path} cannot be written: {problem.strerror}", "audit_file") from None


def _endpoints(config: Config) -> list[Endpoint]:
    return [_endpoint(config, system, "systems", index) for index, system in enumerate(config.systems)]


def _endpoint(config: Config, system: SystemConfig, *at: int | str) -> Endpoint:
    def secret(path: Path, *field: str) -> str:
        try:
            return _one_line(path)
        except ValueError as problem:
            raise config.wrong(str(problem), *at, *field) from None

    return Endpoint(
        url=system.address,
        name=system.name,
        credential=secret(system.token_file, "token_file") if system.token_file else "",
        headers={name.lower(): secret(path, "header_files", name) for name, path in system.header_files.items()},
        tls=_usable_tls(config, system.tls, *at, "tls") if system.tls else None,
    )


def _one_line(path: Path) -> str:
    try:
        text = path.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        raise ValueError(f"{path} cannot be read as a credential of ASCII characters") from None
    if not text or not text.isprintable():
        raise ValueError(f"{path} must hold a credential of one line")
    return text
