"""A service over gRPC: one channel, messages as bytes.

Two kinds of channel, because grpc.aio works with one event loop a process: with a second one both report
BlockingIOError at every event (grpcio 1.71 to 1.85). The blocking client, which has a loop of its own beside its
caller's, therefore takes the channel that runs on gRPC's threads.
"""

import asyncio
from typing import Any, Protocol
from urllib.parse import urlsplit

import grpc
import grpc.aio

from memdock.error_wire import error_from_trailers
from memdock.errors import MemdockError
from memdock.health import CHECK_PATH, SERVING
from memdock.service import METHODS, Call, Method
from memdock.tls import Tls, channel_credentials
from memdock.transport import Endpoint, not_ready, time_left_s
from memdock.wire import MAX_ANSWER_BYTES, answer_from_bytes, not_of_the_protocol

OWN_LIMIT = "CLIENT: Received message larger than max"

Metadata = tuple[tuple[str, str], ...]

_OPTIONS = (
    ("grpc.max_receive_message_length", MAX_ANSWER_BYTES),
    ("grpc.max_send_message_length", -1),  # the server tells its own limit
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 100),  # going round, a call fails at once until the next try to connect
    ("grpc.enable_http_proxy", 0),
    ("grpc.keepalive_time_ms", 30_000),
    # Calls go round all addresses that a name has, such as a headless Service's, of those that answer.
    ("grpc.service_config", '{"loadBalancingConfig": [{"round_robin": {}}]}'),
)
_PATHS = (*(method.grpc_path for method in METHODS.values()), CHECK_PATH)


class Channel(Protocol):
    """A connection that carries bytes; raises `grpc.RpcError`."""

    async def unary(self, path: str, body: bytes, timeout_s: float | None, metadata: Metadata) -> bytes:
        """One call; to cancel it cancels the call on the wire."""

    async def close(self) -> None:
        """Closes it."""


class GrpcTransport:
    """The service at a `grpc://` or `grpcs://` endpoint. To be made inside the event loop that will call."""

    def __init__(self, endpoint: Endpoint, *, threaded: bool = False) -> None:
        self._endpoint = endpoint
        self._channel: Channel = ThreadedChannel(endpoint) if threaded else LoopChannel(endpoint)

    async def call(self, method: Method, request: Any, call: Call) -> Any:
        """One call; errors as `memdock.errors` has them."""
        metadata = tuple(self._endpoint.call_headers(call).items())
        try:
            body = await self._channel.unary(method.grpc_path, request.SerializeToString(), time_left_s(call), metadata)
        except grpc.RpcError as error:
            raise self._error(error) from None
        return answer_from_bytes(method.response, body)

    async def check_ready(self, timeout_s: float) -> None:
        """Asks the standard health service."""
        try:
            status = await self._channel.unary(CHECK_PATH, b"", timeout_s, ())
        except grpc.RpcError:
            raise not_ready(self._endpoint) from None
        if status != SERVING:
            raise not_ready(self._endpoint)

    async def close(self) -> None:
        """Closes the channel."""
        await self._channel.close()

    def _error(self, error: Any) -> MemdockError:
        if _is_own_limit(error):
            return not_of_the_protocol(f"{self._endpoint.label} sends more than {MAX_ANSWER_BYTES} bytes")
        trailers = tuple(error.trailing_metadata() or ())
        return error_from_trailers(error.code().value[0], trailers, self._endpoint.label, error.details() or "")


class LoopChannel:
    """grpc.aio on the running event loop."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._channel: grpc.aio.Channel = _open(grpc.aio, endpoint)
        self._calls = {path: self._channel.unary_unary(path) for path in _PATHS}

    async def unary(self, path: str, body: bytes, timeout_s: float | None, metadata: Metadata) -> bytes:
        """One call."""
        answer: bytes = await self._calls[path](body, timeout=timeout_s, metadata=metadata)
        return answer

    async def close(self) -> None:
        """Closes the channel and cancels what is going on."""
        await self._channel.close()


class ThreadedChannel:
    """gRPC on its own threads, awaited from any event loop."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._channel: grpc.Channel = _open(grpc, endpoint)
        self._calls = {path: self._channel.unary_unary(path) for path in _PATHS}

    async def unary(self, path: str, body: bytes, timeout_s: float | None, metadata: Metadata) -> bytes:
        """One call."""
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        rpc: Any = self._calls[path].future(body, timeout=timeout_s, metadata=metadata)
        rpc.add_done_callback(lambda _: loop.call_soon_threadsafe(ended.set))
        try:
            await ended.wait()
        except asyncio.CancelledError:
            rpc.cancel()
            raise
        answer: bytes = rpc.result()
        return answer

    async def close(self) -> None:
        """Closes the channel and cancels what is going on."""
        self._channel.close()


def _open(library: Any, endpoint: Endpoint) -> Any:
    """A channel of `grpc` or of `grpc.aio`."""
    parts = urlsplit(endpoint.url)
    if parts.scheme == "grpcs":
        return library.secure_channel(parts.netloc, channel_credentials(endpoint.tls or Tls()), options=_OPTIONS)
    return library.insecure_channel(parts.netloc, options=_OPTIONS)


def _is_own_limit(error: Any) -> bool:
    # Both ends say RESOURCE_EXHAUSTED without details; gRPC names the end that refused only in words.
    return error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED and OWN_LIMIT in (error.details() or "")
