"""A memory system whose every answer is scripted, for what stands behind a gateway: bytes in, bytes out, over gRPC."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
import grpc.aio

from memdock.error_wire import error_trailers
from memdock.errors import MemdockError
from memdock.service import METHODS
from memdock.types import Limits
from memdock.v1 import memory_pb2 as pb

_HEALTH = "/grpc.health.v1.Health/Check"
_SERVING = b"\x08\x01"
_CODES = {code.value[0]: code for code in grpc.StatusCode}
_BY_PATH = {method.grpc_path: method for method in METHODS.values()}

Script = Callable[[Any], Awaitable[Any]]
"""From a request to its answer: a message, or bytes as they are. A `MemdockError` goes over the wire as one;
`BareError` as gRPC's status alone."""


class BareError(Exception):
    """A status of gRPC without the protocol's details."""

    def __init__(self, code: int, words: str) -> None:
        self.code = code
        super().__init__(words)


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """One call as it came."""

    method: str
    request: Any
    metadata: Mapping[str, str]


@dataclass(slots=True)
class Upstream:
    """`scripts`: by call; a call without one is answered as an empty system would."""

    scripts: dict[str, Script] = field(default_factory=dict)
    received: list[Received] = field(default_factory=list)
    inside: int = 0
    address: str = ""
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    """While it is cleared every call waits."""

    def __post_init__(self) -> None:
        self.gate.set()

    def calls(self, method: str, space_id: str = "") -> list[Received]:
        """Those of a call, in one space where it is given."""
        return [
            one
            for one in self.received
            if one.method == method and space_id in ("", getattr(one.request, "space_id", ""))
        ]

    async def answer(self, path: str, body: bytes, context: Any) -> bytes:
        """One call."""
        method = _BY_PATH[path]
        request = method.request.FromString(body)
        metadata = {key: str(value) for key, value in context.invocation_metadata()}
        self.received.append(Received(method=method.name, request=request, metadata=metadata))
        self.inside += 1
        try:
            await self.gate.wait()
            script = self.scripts.get(method.name)
            answer = await script(request) if script else _plain(request, method.response)
        except MemdockError as error:
            context.set_code(_CODES[error.code])
            context.set_details(error.message)
            context.set_trailing_metadata(tuple(error_trailers(error)))
            return b""
        except BareError as error:
            context.set_code(_CODES[error.code])
            context.set_details(str(error))
            return b""
        finally:
            self.inside -= 1
        return answer if isinstance(answer, bytes) else bytes(answer.SerializeToString())


class _Handlers(grpc.GenericRpcHandler):
    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[Any, Any] | None":
        path = handler_call_details.method

        async def health(body: bytes, context: Any) -> bytes:  # noqa: ARG001 - gRPC gives both
            return _SERVING

        async def call(body: bytes, context: Any) -> bytes:
            return await self._upstream.answer(path, body, context)

        if path == _HEALTH:
            return grpc.unary_unary_rpc_method_handler(health)
        return grpc.unary_unary_rpc_method_handler(call) if path in _BY_PATH else None


@asynccontextmanager
async def serving_upstream() -> AsyncIterator[Upstream]:
    """Serves on a free port of 127.0.0.1."""
    upstream = Upstream()
    options = (("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1))
    server = grpc.aio.server(handlers=(_Handlers(upstream),), options=options)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    upstream.address = f"grpc://127.0.0.1:{port}"
    try:
        yield upstream
    finally:
        upstream.gate.set()
        await server.stop(1.0)


def _plain(request: Any, response: type[Any]) -> Any:
    if isinstance(request, pb.AddTurnsRequest):
        states = [pb.TurnResult(turn_id=turn.turn_id, state=pb.TURN_STATE_PENDING) for turn in request.turns]
        return pb.AddTurnsResponse(results=states)
    if isinstance(request, pb.FlushRequest):
        return pb.FlushResponse(done=True)
    if isinstance(request, pb.DescribeRequest):
        return _described()
    return response()


def _described() -> Any:
    limits = Limits()
    answer = pb.DescribeResponse(
        system="scripted",
        adapter=pb.Software(name="scripted", version="1"),
        framework=pb.Software(name="none", version="1"),
        protocol_versions=["v1"],
        features=[
            pb.FeatureSupport(feature=name, support=pb.SUPPORT_NATIVE)
            for name in pb.Feature.keys()  # noqa: SIM118 - an enum, not a mapping
            if not name.endswith("_UNSPECIFIED")
        ],
        limits=pb.Limits(
            max_turns_per_request=limits.max_turns_per_request,
            max_request_bytes=limits.max_request_bytes,
            max_turn_bytes=limits.max_turn_bytes,
            max_top_k=limits.max_top_k,
            max_query_bytes=limits.max_query_bytes,
            max_page_size=limits.max_page_size,
        ),
        config_digest="sha256:" + "0" * 64,
    )
    answer.limits.max_wait.FromSeconds(30)
    return answer
