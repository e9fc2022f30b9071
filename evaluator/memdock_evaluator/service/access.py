"""Around every request: its id, the headers of every answer, a log line and a count; never its content."""

import time
from collections.abc import Mapping, MutableMapping
from typing import Any
from urllib.parse import urlsplit

import structlog
from starlette.types import ASGIApp, Receive, Scope, Send

from memdock.errors import PermissionDeniedError
from memdock.face import is_loopback, read_call
from memdock.http_reply import problem_reply, send_reply
from memdock.http_request import read_headers
from memdock_evaluator.service.metrics import Metrics

_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),  # a link to a report holds its ticket
)
_FOREIGN = PermissionDeniedError("CALL_FORBIDDEN", "a page of another site may not call here")
_NO_STORE = (b"cache-control", b"no-store")


class Access:
    """An ASGI application around the face."""

    def __init__(self, app: ASGIApp, metrics: Metrics, *, loopback: bool) -> None:
        """`loopback`: nobody is asked for a key, and so only pages of this machine's may call."""
        self._app, self._metrics, self._loopback = app, metrics, loopback
        self._log = structlog.get_logger("memdock.evaluation")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI entry; serves HTTP only."""
        if scope["type"] != "http":
            raise NotImplementedError(f"only http is served, not {scope['type']}")
        request_id = read_call(read_headers(scope), None).request_id
        state = scope["state"] = {"request_id": request_id}
        started_s, status = time.perf_counter(), 0

        async def send_with_headers(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [*message.get("headers", ()), *_HEADERS]
                names = {name for name, _ in headers}
                if b"x-request-id" not in names:
                    headers.append((b"x-request-id", request_id.encode()))
                if b"cache-control" not in names:
                    headers.append(_NO_STORE)
                message["headers"] = headers
                self._metrics.request(_route(scope), status, time.perf_counter() - started_s)
            await send(message)

        try:
            if self._loopback and not _is_own(read_headers(scope)):
                reply = problem_reply(_FOREIGN, request_id)
                await send_reply(send_with_headers, reply, request_id)
                return
            await self._app(scope, receive, send_with_headers)
        finally:
            key: Any = state.get("key")
            self._log.info(
                "request",
                verb=scope["method"],
                route=_route(scope),
                status=status,
                ms=round((time.perf_counter() - started_s) * 1e3, 1),
                request_id=request_id,
                tenant=key.tenant if key else "",
                key=key.key_id if key else "",
                run=scope.get("path_params", {}).get("run_id", "")[:64] if status < 400 else "",
            )


def _is_own(headers: Mapping[str, str]) -> bool:
    """Whether no page of another site is behind the request, which a browser of this machine has let through.

    Such a page may also have had its own name lead here: then the name is in `Host`.
    """
    host, origin = headers.get("host", ""), headers.get("origin")
    with_port = host if ":" in host.rpartition("]")[2] else f"{host}:80"
    return is_loopback(with_port) and (origin is None or urlsplit(origin).netloc.lower() == host.lower())


def _route(scope: Scope) -> str:
    """The route's pattern; a path that is none is not quoted, for a caller's words are no label."""
    return str(getattr(scope.get("route"), "path", "none"))
