"""uvicorn on a loop that is shared with gRPC: bound at once, stopped by its owner, deaf to signals."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Iterator
from typing import Any

import uvicorn

from memdock.tls import Tls

_BACKLOG = 2048


class HttpServer:
    """An ASGI application on `address` (`host:port`, port 0 for a free one).

    Raises `OSError` naming the address when it cannot be bound.
    """

    def __init__(self, app: Any, address: str, *, tls: Tls | None = None) -> None:
        self._socket = _bind(address)
        self.port: int = self._socket.getsockname()[1]
        self._server = _Embedded(
            uvicorn.Config(
                app,
                loop="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                date_header=False,
                timeout_graceful_shutdown=1,
                **_tls_options(tls),
            )
        )
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Returns when calls are taken."""
        self._task = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        up = asyncio.create_task(self._server.up.wait())
        await asyncio.wait({self._task, up}, return_when=asyncio.FIRST_COMPLETED)
        if self._task.done():
            up.cancel()
            await self._task

    async def stop(self) -> None:
        """Closes the port and the connections."""
        if self._task is None:
            self._socket.close()
        else:
            self._server.should_exit = True
            await self._task


class _Embedded(uvicorn.Server):
    """Tells when it is up, and leaves the process's signals alone."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.up = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.up.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _bind(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.create_server((host.strip("[]"), int(port)), family=family, backlog=_BACKLOG)
        # Connections inherit it. asyncio sets it only where a socket names its protocol, which this one does not; an
        # answer in two writes then waits 40 ms for the client's acknowledgement.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listening
    except (OSError, ValueError) as problem:
        raise OSError(f"cannot listen on {address!r}: {problem}; give host:port with a free port, or port 0") from None


def _tls_options(tls: Tls | None) -> dict[str, Any]:
    if tls is None:
        return {}
    options: dict[str, Any] = {"ssl_certfile": tls.cert_file, "ssl_keyfile": tls.key_file}
    if tls.ca_file is not None:
        options |= {"ssl_ca_certs": str(tls.ca_file), "ssl_cert_reqs": ssl.CERT_REQUIRED}
    return options
