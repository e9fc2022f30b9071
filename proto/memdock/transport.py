"""How a client reaches a service: one address, one credential, one channel or session.

A transport is itself a `Service`. It sends its own credential and never the `Call`'s, which is a caller's and stays on
its hop. It does not retry; see `memdock.retrying`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol
from urllib.parse import urlsplit

from memdock.errors import ConfigurationError, DeadlineExceededError, UnavailableError
from memdock.service import Call, Service
from memdock.tls import Tls

_FORMS = "must be grpc://host:port, grpcs://host:port, http://host[:port][/prefix] or https://host[:port][/prefix]"
_HEADER = re.compile(r"[a-z0-9-]{1,64}")
_PRINTABLE = re.compile(r"[ -~]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where a service is and how to speak to it.

    `url`: `grpc://host:port`, `grpcs://host:port`, `http://host[:port][/prefix]` or `https://...`. `name`: how errors
    call it (default: the URL). `credential`: sent as `Authorization: Bearer`. `headers`: sent with each call, names in
    lower case. `tls`: for `grpcs` and `https` only. Raises `ConfigurationError` when the parts do not fit.
    """

    url: str
    name: str = ""
    credential: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    tls: Tls | None = None

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url)
            port = parts.port
        except ValueError as problem:
            raise ConfigurationError(f"{self.url!r}: {problem}; the address {_FORMS}") from None
        scheme = parts.scheme
        if scheme not in ("grpc", "grpcs", "http", "https") or not parts.hostname:
            raise ConfigurationError(f"{self.url!r} {_FORMS}")
        if parts.username or parts.query or parts.fragment:
            raise ConfigurationError("the address must have no user, query or fragment; a key is given apart")
        if scheme.startswith("grpc") and (port is None or parts.path not in ("", "/")):
            raise ConfigurationError(f"{self.url!r}: a {scheme} address is {scheme}://host:port and nothing more")
        if self.tls is not None and not scheme.endswith("s"):
            raise ConfigurationError(f"{self.url!r}: TLS files need grpcs:// or https://")
        for header, value in self.headers.items():
            if not _HEADER.fullmatch(header):
                raise ConfigurationError(f"header {header!r} must be of a-z 0-9 and -")
            if not _PRINTABLE.fullmatch(value):
                raise ConfigurationError(f"the value of header {header!r} must be printable ASCII")
        if not _PRINTABLE.fullmatch(self.credential):
            raise ConfigurationError("the key must be printable ASCII, without a line break")

    @property
    def label(self) -> str:
        """How errors call it."""
        return self.name or self.url

    def call_headers(self, call: Call) -> dict[str, str]:
        """The headers of one call, without its deadline."""
        headers = dict(self.headers)
        if self.credential:
            headers["authorization"] = f"Bearer {self.credential}"
        if call.request_id:
            headers["x-request-id"] = call.request_id
        if call.trace_parent:
            headers["traceparent"] = call.trace_parent
        return headers


class Transport(Service, Protocol):
    """A service that is reached over the network."""

    async def check_ready(self, timeout_s: float) -> None:
        """Returns when the service says that it can serve, within `timeout_s`; else raises `UnavailableError`."""

    async def close(self) -> None:
        """Closes the connection; calls still going on are cancelled."""


def open_transport(endpoint: Endpoint, *, threaded: bool = False) -> Transport:
    """The transport of the address's scheme; it connects with its first call. HTTP needs the extra `http`.

    `threaded`: for an event loop that is not the process's main one (see `memdock.transport_grpc`).
    """
    if endpoint.url.startswith("grpc"):
        from memdock.transport_grpc import GrpcTransport

        return GrpcTransport(endpoint, threaded=threaded)
    from memdock.transport_http import HttpTransport

    return HttpTransport(endpoint)


def time_left_s(call: Call) -> float | None:
    """Seconds for the call; raises `DeadlineExceededError` when none are left."""
    left_s = call.left_s()
    if left_s is not None and left_s <= 0:
        raise out_of_time()
    return left_s


def out_of_time() -> DeadlineExceededError:
    """The error when the caller's own clock ends the call."""
    return DeadlineExceededError("DEADLINE_EXCEEDED", "the time of the call is used up")


def not_ready(endpoint: Endpoint) -> UnavailableError:
    """The error of a readiness check that failed."""
    return UnavailableError("ADAPTER_UNREACHABLE", f"{endpoint.label} does not say that it is ready")
