"""The one seam of every hop: `Service.call(method, request, call)` on wire messages.

A client's transport, the gateway's router and a served system all satisfy it, so keys, metrics and retries are
services around services.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from string import Formatter
from types import MappingProxyType
from typing import Any, Protocol

from google.protobuf.message import Message

from memdock.v1 import memory_pb2 as pb

MEMORY_SERVICE = "memdock.v1.MemoryService"
GATEWAY_SERVICE = "memdock.v1.GatewayService"


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One call of the protocol and its HTTP binding; `{system}`, `{space_id}` in `path` are fields of the request."""

    name: str
    request: type[Message]
    response: type[Message]
    verb: str
    path: str
    service: str = MEMORY_SERVICE

    @property
    def path_fields(self) -> tuple[str, ...]:
        """The fields of the request that stand in `path`."""
        return _fields_of(self.path)

    @property
    def grpc_path(self) -> str:
        """`/package.Service/Method`."""
        return f"/{self.service}/{self.name}"


@cache
def _fields_of(path: str) -> tuple[str, ...]:
    return tuple(name for _, name, _, _ in Formatter().parse(path) if name)


_SPACE = "/v1/systems/{system}/spaces/{space_id}"


def _method(name: str, verb: str, path: str, service: str = MEMORY_SERVICE) -> Method:
    request, response = getattr(pb, f"{name}Request"), getattr(pb, f"{name}Response")
    return Method(name=name, request=request, response=response, verb=verb, path=path, service=service)


_METHODS = (
    _method("Describe", "GET", "/v1/systems/{system}"),
    _method("AddTurns", "POST", f"{_SPACE}/turns"),
    _method("Flush", "POST", f"{_SPACE}/flush"),
    _method("Retrieve", "POST", f"{_SPACE}/retrieve"),
    _method("Forget", "POST", f"{_SPACE}/forget"),
    _method("Reset", "POST", f"{_SPACE}/reset"),
    _method("ListTurns", "GET", f"{_SPACE}/turns"),
    _method("ListMemories", "GET", f"{_SPACE}/memories"),
    _method("ListSystems", "GET", "/v1/systems", GATEWAY_SERVICE),
)
METHODS: Mapping[str, Method] = MappingProxyType({method.name: method for method in _METHODS})
"""Every call by its name, in the order of the .proto."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What travels beside a request. `deadline` is in seconds of `time.monotonic()`; `None`: no deadline.

    `credential` is the bearer token; `trace_parent` the W3C header's value; empty: none.
    """

    request_id: str = ""
    deadline: float | None = None
    credential: str = field(default="", repr=False)
    trace_parent: str = ""

    def left_s(self) -> float | None:
        """Seconds until the deadline, not below 0; `None` without one."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())


class Service(Protocol):
    """Anything that answers calls of the protocol."""

    async def call(self, method: Method, request: Any, call: Call) -> Any:
        """Answers with `method.response`, or raises `memdock.errors.MemdockError`."""
