"""The gateway as a process: both faces over one gate on one event loop, from the configuration to the last answer."""

import asyncio
import contextlib
import json
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Self

import structlog

from memdock.callers import KeyFileCallers, keep_reloading
from memdock.face_grpc import grpc_server
from memdock.face_http import HttpFace
from memdock.http_server import HttpServer
from memdock.signals import told_to_end
from memdock.whole_file import write_whole
from memdock_gateway.app import http_app
from memdock_gateway.assembly import Parts, assemble
from memdock_gateway.config import Config

GRPC_GOODBYE_S = 1.0


class Gateway:
    """A running gateway: `async with Gateway(config) as gateway:` takes calls inside and has drained after it.

    Raises `ConfigError` where a part cannot be used and `OSError` where an address cannot be bound.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._ends = contextlib.AsyncExitStack()
        # The bound port of each face, `grpc` and `http`.
        self.ports: Mapping[str, int] = {}

    async def __aenter__(self) -> Self:
        async with contextlib.AsyncExitStack() as ends:
            parts = assemble(self._config)
            _close_parts(parts, ends)
            self.ports = await self._open_faces(parts, ends)
            ends.push_async_callback(parts.gate.drain, self._config.drain_s)
            self._ends = ends.pop_all()
        structlog.get_logger().info("serving", systems=list(parts.transports), **self.ports)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        structlog.get_logger().info("draining")
        await self._ends.aclose()
        structlog.get_logger().info("stopped")

    async def _open_faces(self, parts: Parts, ends: contextlib.AsyncExitStack) -> Mapping[str, int]:
        limits, listen, gate = self._config.limits.limits(), self._config.listen, parts.gate
        tls = listen.tls.files() if listen.tls else None
        over_grpc, grpc_port = grpc_server(
            gate,
            listen.grpc,
            limits=limits,
            tls=tls,
            admit=gate.admit,
            check_ready=gate.check_ready,
            observe=gate.observe,
        )
        face = HttpFace(
            gate,
            limits=limits,
            admit=gate.admit,
            check_ready=gate.check_ready,
            metrics=parts.observer.metrics,
            observe=gate.observe,
        )
        over_http = HttpServer(http_app(face, version("memdock-gateway")), listen.http, tls=tls)
        ends.push_async_callback(over_http.stop)
        await over_http.start()
        ends.push_async_callback(over_grpc.stop, GRPC_GOODBYE_S)
        await over_grpc.start()
        return {"grpc": grpc_port, "http": over_http.port}


async def serve(config: Config, port_file: Path | None) -> None:
    """Serves until SIGTERM or SIGINT, then lets those who are inside end. A second signal ends at once.

    `port_file` gets `{"grpc": port, "http": port}` once calls are taken.
    """
    ending = told_to_end()
    async with Gateway(config) as gateway:
        if port_file is not None:
            write_whole(port_file, json.dumps(gateway.ports))
        await ending.wait()


def _close_parts(parts: Parts, ends: contextlib.AsyncExitStack) -> None:
    ends.callback(parts.observer.close)
    if parts.audit:
        ends.callback(parts.audit.close)
    for transport in parts.transports.values():
        ends.push_async_callback(transport.close)
    if isinstance(parts.callers, KeyFileCallers):
        watching = asyncio.create_task(keep_reloading(parts.callers))
        ends.callback(watching.cancel)
