"""A service over gRPC: one channel, messages as bytes."""

from typing import Any
from urllib.parse import urlsplit

import grpc
import grpc.aio

from memdock.error_wire import DETAILS_KEY, error_from_status
from memdock.errors import MemdockError
from memdock.service import METHODS, Call, Method
from memdock.tls import Tls, channel_credentials
from memdock.transport import Endpoint, time_left_s
from memdock.wire import MAX_ANSWER_BYTES, answer_from_bytes, not_of_the_protocol

_OPTIONS = (
    ("grpc.max_receive_message_length", MAX_ANSWER_BYTES),
    ("grpc.max_send_message_length", -1),  # the server tells its own limit
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    ("grpc.enable_http_proxy", 0),
    ("grpc.keepalive_time_ms", 30_000),
)


class GrpcTransport:
    """The service at a `grpc://` or `grpcs://` endpoint. To be made inside the event loop that will call."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._channel = _channel(endpoint)
        self._calls: dict[str, grpc.aio.UnaryUnaryMultiCallable[Any, Any]] = {
            name: self._channel.unary_unary(method.grpc_path) for name, method in METHODS.items()
        }

    async def call(self, method: Method, request: Any, call: Call) -> Any:
        """One call; errors as `memdock.errors` has them."""
        metadata = tuple(self._endpoint.call_headers(call).items())
        rpc = self._calls[method.name](request.SerializeToString(), timeout=time_left_s(call), metadata=metadata)
        try:
            body = await rpc
        except grpc.aio.AioRpcError as error:
            raise self._error(error) from None
        return answer_from_bytes(method.response, body)

    async def close(self) -> None:
        """Closes the channel."""
        await self._channel.close()

    def _error(self, error: grpc.aio.AioRpcError) -> MemdockError:
        if _is_own_limit(error):
            return not_of_the_protocol(f"{self._endpoint.label} sends more than {MAX_ANSWER_BYTES} bytes")
        details = next((value for key, value in error.trailing_metadata() or () if key == DETAILS_KEY), None)
        code = error.code().value[0]
        return error_from_status(code, details if isinstance(details, bytes) else None, self._endpoint.label)


def _channel(endpoint: Endpoint) -> grpc.aio.Channel:
    parts = urlsplit(endpoint.url)
    if parts.scheme == "grpcs":
        return grpc.aio.secure_channel(parts.netloc, channel_credentials(endpoint.tls or Tls()), options=_OPTIONS)
    return grpc.aio.insecure_channel(parts.netloc, options=_OPTIONS)


def _is_own_limit(error: grpc.aio.AioRpcError) -> bool:
    # Both ends say RESOURCE_EXHAUSTED without details; gRPC names the end that refused only in words.
    return error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED and (error.details() or "").startswith("CLIENT:")
