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


def _table(*methods: Method) -> Mapping[str, Method]:
    return MappingProxyType({method.name: method for method in methods})


METHODS = _table(
    Method(
        name="Describe",
        request=pb.DescribeRequest,
        response=pb.DescribeResponse,
        verb="GET",
        path="/v1/systems/{system}",
    ),
    Method(
        name="AddTurns",
        request=pb.AddTurnsRequest,
        response=pb.AddTurnsResponse,
        verb="POST",
        path=f"{_SPACE}/turns",
    ),
    Method(name="Flush", request=pb.FlushRequest, response=pb.FlushResponse, verb="POST", path=f"{_SPACE}/flush"),
    Method(
        name="Retrieve",
        request=pb.RetrieveRequest,
        response=pb.RetrieveResponse,
        verb="POST",
        path=f"{_SPACE}/retrieve",
    ),
    Method(
        name="Forget",
        request=pb.ForgetRequest,
        response=pb.ForgetResponse,
        verb="POST",
        path=f"{_SPACE}/forget",
    ),
    Method(name="Reset", request=pb.ResetRequest, response=pb.ResetResponse, verb="POST", path=f"{_SPACE}/reset"),
    Method(
        name="ListTurns",
        request=pb.ListTurnsRequest,
        response=pb.ListTurnsResponse,
        verb="GET",
        path=f"{_SPACE}/turns",
    ),
    Method(
        name="ListMemories",
        request=pb.ListMemoriesRequest,
        response=pb.ListMemoriesResponse,
        verb="GET",
        path=f"{_SPACE}/memories",
    ),
    Method(
        name="ListSystems",
        request=pb.ListSystemsRequest,
        response=pb.ListSystemsResponse,
        verb="GET",
        path="/v1/systems",
        service=GATEWAY_SERVICE,
    ),
)


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
