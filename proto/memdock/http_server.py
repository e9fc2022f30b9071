"""uvicorn on a loop that is shared with gRPC: bound at once, stopped by its owner, deaf to signals."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Iterator
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from memdock.errors import InvalidArgumentError, sentence
from memdock.face import cannot_listen, host_and_port, new_request_id
from memdock.http_reply import all_headers, problem_reply
from memdock.tls import Tls

MAX_HEAD_BYTES = 16 * 1024
"""The most that the URL and the headers of a request may take, with 32 bytes more for each header.

The count and the bound are those of gRPC (RFC 9113, 6.5.2), so that both faces take the same.
"""

HEAD_TIMEOUT_S = 20.0
"""How long a request's URL and headers may take to come, from the connection or the first byte on."""

_BACKLOG = 2048
_MALFORMED = InvalidArgumentError("MALFORMED_REQUEST", "the request is not HTTP/1.1 as RFC 9112 has it")
_HEAD_TOO_LARGE = InvalidArgumentError(
    "MALFORMED_REQUEST",
    f"the URL and the headers take more than {MAX_HEAD_BYTES} bytes, each header counted with 32 more; send fewer",
)
_HEAD_TOO_SLOW = InvalidArgumentError(
    "MALFORMED_REQUEST", f"the URL and the headers did not come within {HEAD_TIMEOUT_S:.0f} s; send the request again"
)


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
                http=_Connection,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
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


class HeadTooLargeError(Exception):
    """Ends the parsing of a request whose head is past its bound."""


class _Connection(HttpToolsProtocol):
    """uvicorn's connection with bounds on a request's head, its bytes and its time, and with refusals as problems.

    uvicorn has neither bound: a client could hold a connection for ever with a byte now and then.
    """

    _untold_bytes = 0
    """What came since the parser last told of something whole: it keeps a header, or a trailer, until its end."""
    _refusal = _MALFORMED
    _head_comes = True
    """Whether what comes next belongs to a head."""
    _head_deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_came()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._head_comes and self._head_deadline is None:
            self._await_head()
        self._untold_bytes += len(data)
        super().data_received(data)
        if self._untold_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
            self._refusal = _HEAD_TOO_LARGE
            self.send_400_response("")

    def on_headers_complete(self) -> None:
        self._untold_bytes = 0
        self._head_came()
        self._head_comes = False
        if len(self.url) + sum(len(name) + len(value) + 32 for name, value in self.headers) > MAX_HEAD_BYTES:
            self._refusal = _HEAD_TOO_LARGE
            raise HeadTooLargeError
        super().on_headers_complete()
        self.headers = []  # trailers come here too, and are no headers of the request

    def on_body(self, body: bytes) -> None:
        self._untold_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._untold_bytes = 0
        self._head_comes = True
        super().on_message_complete()

    def _await_head(self) -> None:
        self._head_deadline = self.loop.call_later(HEAD_TIMEOUT_S, self._head_late)

    def _head_came(self) -> None:
        if self._head_deadline is not None:
            self._head_deadline.cancel()
            self._head_deadline = None

    def _head_late(self) -> None:
        if self.transport.is_closing():
            return
        if not self._untold_bytes:  # nobody has begun to ask
            self.transport.close()
            return
        self._refusal = _HEAD_TOO_SLOW
        self.send_400_response("")

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002  the library's own words
        request_id = new_request_id()
        reply = problem_reply(self._refusal, request_id)
        headers = [*all_headers(reply, request_id), (b"connection", b"close")]
        lines = [b"HTTP/1.1 400 Bad Request", *(b": ".join(header) for header in headers), b"", reply.body]
        self.transport.write(b"\r\n".join(lines))
        self.transport.close()


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
    host, port = host_and_port(address)
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.create_server((host, port), family=family, backlog=_BACKLOG)
        # Connections inherit it. asyncio sets it only where a socket names its protocol, which this one does not; an
        # answer in two writes then waits 40 ms for the client's acknowledgement.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listening
    except OSError as problem:
        raise cannot_listen(address, sentence(problem)) from None


def _tls_options(tls: Tls | None) -> dict[str, Any]:
    if tls is None:
        return {}
    options: dict[str, Any] = {"ssl_certfile": tls.cert_file, "ssl_keyfile": tls.key_file}
    if tls.ca_file is not None:
        options |= {"ssl_ca_certs": str(tls.ca_file), "ssl_cert_reqs": ssl.CERT_REQUIRED}
    return options
