"""The HTTP face: any `Service` as a plain ASGI application.

Not built on a framework: the binding is one table, and a middleware that wraps `receive` hides a client that leaves.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any

import orjson

from memdock.check import check
from memdock.errors import DeadlineExceededError, NotFoundError
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
    log_served,
    read_call,
    readiness,
    refuse_repeated,
)
from memdock.http_reply import Reply, Send, json_reply, problem_reply, send_reply, server_timing
from memdock.http_request import (
    ClientGoneError,
    Receive,
    Scope,
    deadline_of,
    gone,
    parse_request,
    raw_path_of,
    read_body,
    read_headers,
)
from memdock.routes import find_method, wrong_verb
from memdock.service import Call, Method, Service
from memdock.types import Limits
from memdock.wire import to_json

Metrics = Callable[[], bytes]
"""The metrics in Prometheus' text form."""

READ_TIMEOUT_S = 60.0
"""The longest that a body may take to come, whatever the caller's deadline."""

PAGES = ("/livez", "/readyz", "/metrics")


@dataclass(slots=True)
class Exchange:
    """One request on its way through the face, and what is known of it so far."""

    scope: Scope
    headers: dict[str, str]
    receive: Receive
    call: Call
    started: float
    method: Method | None = None
    body: bytes = b""


class HttpFace:
    """The binding over one service, with `/livez`, `/readyz` and, where `metrics` is given, `/metrics`."""

    def __init__(
        self,
        service: Service,
        *,
        limits: Limits | None = None,
        admit: Admit = admit_all,
        check_ready: CheckReady = always_ready,
        metrics: Metrics | None = None,
        observe: Observe = log_served,
    ) -> None:
        self._service = service
        self._limits = limits or Limits()
        self._admit = admit
        self._check_ready = check_ready
        self._metrics = metrics
        self._observe = observe

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI entry; serves HTTP only."""
        if scope["type"] != "http":
            raise NotImplementedError(f"only http is served, not {scope['type']}")
        headers = read_headers(scope)
        exchange = Exchange(scope, headers, receive, read_call(headers, None), time.perf_counter())
        is_page = raw_path_of(scope) in PAGES
        reason, reply = CANCELLED, None
        try:
            reply = await (self._page(exchange) if is_page else self._answer(exchange))
            reason = ""
        except ClientGoneError:
            return
        except Exception as fault:  # noqa: BLE001  a bug must neither reach the server nor show its words to a caller
            error = as_error(fault, exchange.method.name if exchange.method else "", exchange.call.request_id)
            reply, reason = problem_reply(error, exchange.call.request_id), error.reason
        finally:
            if not is_page:
                self._tell(exchange, reason, reply)
        await send_reply(send, reply, exchange.call.request_id)

    async def _page(self, exchange: Exchange) -> Reply:
        """Health and metrics."""
        if exchange.scope["method"] not in ("GET", "HEAD"):
            raise wrong_verb("GET", "HEAD")
        path = raw_path_of(exchange.scope)
        if path == "/livez":
            return json_reply(orjson.dumps({"live": True}))
        if path == "/readyz":
            return json_reply(orjson.dumps({"ready": True, "systems": await readiness(self._check_ready)}))
        if self._metrics is None:
            raise NotFoundError("PATH_NOT_FOUND", "no metrics are kept here")
        return Reply(200, [("content-type", "text/plain; version=0.0.4; charset=utf-8")], self._metrics())

    async def _answer(self, exchange: Exchange) -> Reply:
        """A call of the protocol: the caller is admitted before the body is read, the body bounded before parsing."""
        scope, headers = exchange.scope, exchange.headers
        exchange.method, path = find_method(scope["method"], raw_path_of(scope))
        if len(headers) < len(scope["headers"]):
            refuse_repeated(name.decode("latin-1").lower() for name, _ in scope["headers"])
        exchange.call = replace(exchange.call, deadline=deadline_of(headers))
        await self._admit(exchange.method, path, exchange.call)
        exchange.body = await self._read_body(exchange)
        request = parse_request(exchange.method, path, scope["query_string"], headers, exchange.body)
        check(request, self._limits)
        work = self._service.call(exchange.method, request, exchange.call)
        response = await within(exchange.call, exchange.receive, work)
        total_ms = (time.perf_counter() - exchange.started) * 1e3
        return json_reply(bounded(to_json(response)), ("server-timing", server_timing(response, total_ms)))

    async def _read_body(self, exchange: Exchange) -> bytes:
        try:
            async with asyncio.timeout(READ_TIMEOUT_S), asyncio.timeout(exchange.call.left_s()):
                return await read_body(exchange.headers, exchange.receive, self._limits)
        except TimeoutError:
            if exchange.call.left_s() == 0:
                raise out_of_time() from None
            late = f"the body did not come within {READ_TIMEOUT_S:g} s: send as many bytes as Content-Length says"
            raise DeadlineExceededError("DEADLINE_EXCEEDED", late) from None

    def _tell(self, exchange: Exchange, reason: str, reply: Reply | None) -> None:
        self._observe(
            Served(
                method=exchange.method.name if exchange.method else "",
                face="http",
                request_id=exchange.call.request_id,
                reason=reason,
                elapsed_ms=(time.perf_counter() - exchange.started) * 1e3,
                request_bytes=len(exchange.body),
                answer_bytes=len(reply.body) if reply else 0,
            )
        )


async def within(call: Call, receive: Receive, work: Coroutine[Any, Any, Any]) -> Any:
    """The result of `work`, which is cancelled when the deadline passes or the client closes the connection."""
    task = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(gone(receive))
    try:
        done, _ = await asyncio.wait((task, leaving), timeout=call.left_s(), return_when=asyncio.FIRST_COMPLETED)
        if task in done:
            return task.result()
        if leaving in done:
            raise ClientGoneError
        raise out_of_time()
    finally:
        task.cancel()
        leaving.cancel()
        await asyncio.gather(task, leaving, return_exceptions=True)


def out_of_time() -> DeadlineExceededError:
    """The error when the deadline of the call passes here."""
    return DeadlineExceededError("DEADLINE_EXCEEDED", "the time that X-Timeout-Ms gave is used up")
