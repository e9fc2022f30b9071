"""The gRPC face: any `Service` behind grpc.aio, with health and, where grpcio-reflection is installed, reflection.

Errors go out as a code and trailers without `abort`: no exception and no log line of gRPC's own. Requests come in as
bytes, so that a caller can be refused before anything is parsed.
"""

import asyncio
import importlib.util
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import grpc
import grpc.aio

from memdock.check import check
from memdock.error_wire import error_trailers
from memdock.errors import MemdockError
from memdock.face import (
    CANCELLED,
    Admit,
    CheckReady,
    Observe,
    Served,
    admit_all,
    always_ready,
    as_error,
    bounded,
    cannot_listen,
    host_and_port,
    log_served,
    read_call,
    refuse_repeated,
)
from memdock.health import HealthHandler
from memdock.server_grpc import GrpcServer
from memdock.service import GATEWAY_SERVICE, MEMORY_SERVICE, METHODS, Call, Method, Service
from memdock.tls import Tls, server_credentials
from memdock.types import Limits
from memdock.wire import MAX_ANSWER_BYTES, from_bytes

# What gRPC writes to standard error by itself is no line of our log, and tells again what is raised here.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

_CODES = {code.value[0]: code for code in grpc.StatusCode}

Context = grpc.aio.ServicerContext[Any, Any]
Handler = Callable[[bytes, Context], Awaitable[bytes]]


class GrpcFace(grpc.GenericRpcHandler):
    """Handlers of every call of the protocol over one service."""

    def __init__(self, service: Service, *, limits: Limits, admit: Admit, observe: Observe) -> None:
        self._service = service
        self._limits = limits
        self._admit = admit
        self._observe = observe
        self.answering: set[asyncio.Task[None]] = set()
        """The tasks of calls that are not answered yet, down to the last byte."""
        self._handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
            method.grpc_path: grpc.unary_unary_rpc_method_handler(self._handler(method)) for method in METHODS.values()
        }

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[Any, Any] | None":
        """The handler of a path; `None` lets gRPC answer UNIMPLEMENTED."""
        return self._handlers.get(handler_call_details.method)

    def _handler(self, method: Method) -> Handler:
        async def handle(body: bytes, context: Context) -> bytes:
            started = time.perf_counter()
            self._keep_until_answered()
            metadata = context.invocation_metadata() or ()
            headers = {key: value for key, value in metadata if isinstance(value, str)}
            call = read_call(headers, context.time_remaining())
            reason, reply = CANCELLED, b""
            try:
                if len(headers) < len(metadata):
                    refuse_repeated(key for key, _ in metadata)
                reply = await self._answer(method, body, call)
                context.set_trailing_metadata((("x-request-id", call.request_id),))
                reason = ""
            except Exception as fault:  # noqa: BLE001  a bug must neither reach gRPC nor show its words to a caller
                error = as_error(fault, method.name, call.request_id)
                _refuse(context, error, call)
                reason = error.reason
            finally:
                elapsed_ms = (time.perf_counter() - started) * 1e3
                self._observe(
                    Served(
                        method=method.name,
                        face="grpc",
                        request_id=call.request_id,
                        reason=reason,
                        elapsed_ms=elapsed_ms,
                        request_bytes=len(body),
                        answer_bytes=len(reply),
                    )
                )
            return reply

        return handle

    def _keep_until_answered(self) -> None:
        task = asyncio.current_task()  # gRPC's own, which ends when the answer is written
        assert task is not None
        self.answering.add(task)
        task.add_done_callback(self.answering.discard)

    async def _answer(self, method: Method, body: bytes, call: Call) -> bytes:
        await self._admit(method, {}, call)
        request = from_bytes(method.request, body)
        check(request, self._limits)
        response = await self._service.call(method, request, call)
        return bounded(response.SerializeToString())


def grpc_server(
    service: Service,
    address: str,
    *,
    limits: Limits | None = None,
    tls: Tls | None = None,
    admit: Admit = admit_all,
    check_ready: CheckReady = always_ready,
    observe: Observe = log_served,
) -> tuple[GrpcServer, int]:
    """A server, not yet started, and the port that it is bound to; `address` is `host:port`, port 0 a free one.

    Raises `OSError` naming the address when it cannot be bound, and `ConfigurationError` when `tls` cannot be used. To
    be called inside the event loop that will serve; a server that was started must be stopped before that loop ends, or
    the process never does.
    """
    limits = limits or Limits()
    face = GrpcFace(service, limits=limits, admit=admit, observe=observe)
    health = HealthHandler(check_ready, (MEMORY_SERVICE, GATEWAY_SERVICE))
    server = grpc.aio.server(handlers=(face, health), options=_options(limits))
    _add_reflection(server)
    port = _bind(server, address, tls)
    return GrpcServer(server, port, face.answering), port


def _options(limits: Limits) -> Sequence[tuple[str, Any]]:
    return (
        ("grpc.so_reuseport", 0),  # without it a port in use is bound a second time, silently
        ("grpc.max_receive_message_length", limits.max_request_bytes),
        ("grpc.max_send_message_length", MAX_ANSWER_BYTES),
        # Then a client asks for the addresses of its name again, and finds servers that came later. Calls end first.
        ("grpc.max_connection_age_ms", 300_000),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", 10_000),
    )


def _bind(server: grpc.aio.Server, address: str, tls: Tls | None) -> int:
    host_and_port(address)
    try:
        if tls is None:
            return server.add_insecure_port(address)
        return server.add_secure_port(address, server_credentials(tls))
    except RuntimeError:
        raise cannot_listen(address, "the port is in use, or the address is not this machine's") from None


def _add_reflection(server: grpc.aio.Server) -> None:
    if importlib.util.find_spec("grpc_reflection") is None:
        return
    from grpc_reflection.v1alpha import reflection

    reflection.enable_server_reflection((MEMORY_SERVICE, GATEWAY_SERVICE, reflection.SERVICE_NAME), server)


def _refuse(context: Context, error: MemdockError, call: Call) -> None:
    context.set_code(_CODES[error.code])
    context.set_details(error.message)
    context.set_trailing_metadata((*error_trailers(error), ("x-request-id", call.request_id)))
