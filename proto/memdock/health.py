"""grpc.health.v1 by hand: two calls, one field in, one enum out; no dependency and no stubs of a second version."""

import asyncio
from collections.abc import AsyncIterator, Collection
from typing import Any

import grpc
import grpc.aio

from memdock.errors import UnavailableError
from memdock.face import CheckReady, readiness

SERVICE = "grpc.health.v1.Health"
CHECK_PATH = f"/{SERVICE}/Check"
WATCH_INTERVAL_S = 1.0

SERVING = b"\x08\x01"
NOT_SERVING = b"\x08\x02"
SERVICE_UNKNOWN = b"\x08\x03"

Context = grpc.aio.ServicerContext[Any, Any]


class HealthHandler(grpc.GenericRpcHandler):
    """`Check` and `Watch` for the server as a whole (empty name) and for the named services; one readiness for all."""

    def __init__(self, check_ready: CheckReady, services: Collection[str]) -> None:
        self._check_ready = check_ready
        self._requests = {b"", *(_request(service) for service in services)}
        self._handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
            CHECK_PATH: grpc.unary_unary_rpc_method_handler(self._check),
            f"/{SERVICE}/Watch": grpc.unary_stream_rpc_method_handler(self._watch),
        }

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[Any, Any] | None":
        """The handler of a path of the health service."""
        return self._handlers.get(handler_call_details.method)

    async def _check(self, body: bytes, context: Context) -> bytes:
        status = await self._status(body)
        if status == SERVICE_UNKNOWN:
            context.set_code(grpc.StatusCode.NOT_FOUND)
            context.set_details("no such service")
        return status

    async def _watch(self, body: bytes, context: Context) -> AsyncIterator[bytes]:  # noqa: ARG002  gRPC gives it
        told = b""
        while True:
            status = await self._status(body)
            if status != told:
                told = status
                yield status
            await asyncio.sleep(WATCH_INTERVAL_S)

    async def _status(self, body: bytes) -> bytes:
        if body not in self._requests:
            return SERVICE_UNKNOWN
        try:
            await readiness(self._check_ready)
        except UnavailableError:
            return NOT_SERVING
        return SERVING


def _request(service: str) -> bytes:
    """HealthCheckRequest with `service`, its field 1."""
    name = service.encode()
    return bytes((0x0A, len(name))) + name
