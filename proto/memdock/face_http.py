"""The HTTP face: any `Service` as a plain ASGI application.

Not built on a framework: the binding is one table, and a middleware that wraps `receive` hides a client that leaves.
"""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from memdock.error_wire import problem, problem_headers
from memdock.errors import DeadlineExceededError, MemdockError, NotFoundError
from memdock.face import (
    CANCELLED,
    Admit,
    CheckReady,
    Observe,
    Served,
    admit_all,
    always_ready,
    answer,
    bounded,
    log_served,
    read_call,
    readiness,
)
from memdock.http_request import (
    ClientGoneError,
    Receive,
    Scope,
    gone,
    parse_request,
    raw_path_of,
    read_body,
    read_headers,
    timeout_s_of,
)
from memdock.routes import find_method, wrong_verb
from memdock.service import Call, Method, Service
from memdock.types import Limits
from memdock.wire import to_json

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Metrics = Callable[[], bytes]
"""The metrics in Prometheus' text form."""

PAGES = ("/livez", "/readyz", "/metrics")

_STAGE = re.compile(r"[A-Za-z0-9_.-]{1,64}")


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP answer as it goes out."""

    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes


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
        except MemdockError as error:
            reply, reason = problem_reply(error, exchange.call.request_id), error.reason
        except ClientGoneError:
            return
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
        exchange.call = read_call({**headers, "x-request-id": exchange.call.request_id}, timeout_s_of(headers))
        await self._admit(exchange.method, path, exchange.call)
        exchange.body = await self._read_body(exchange)
        request = parse_request(exchange.method, path, scope["query_string"], headers, exchange.body)
        response = await within(
            exchange.call,
            exchange.receive,
            answer(self._service, exchange.method, request, exchange.call, self._limits),
        )
        total_ms = (time.perf_counter() - exchange.started) * 1e3
        return json_reply(bounded(to_json(response)), ("server-timing", server_timing(response, total_ms)))

    async def _read_body(self, exchange: Exchange) -> bytes:
        try:
            async with asyncio.timeout(exchange.call.left_s()):
                return await read_body(exchange.headers, exchange.receive, self._limits)
        except TimeoutError:
            raise out_of_time() from None

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


def server_timing(response: Any, total_ms: float) -> str:
    """The header `Server-Timing`: the stages inside the system, where the answer tells them, and the whole."""
    stages = [(one.stage, one.ms) for one in getattr(response, "timing", ()) if _STAGE.fullmatch(one.stage)]
    return ", ".join(f"{stage};dur={ms:.2f}" for stage, ms in (*stages, ("total", total_ms)))


def json_reply(body: bytes, *headers: tuple[str, str]) -> Reply:
    """A good answer."""
    return Reply(200, [("content-type", "application/json"), *headers], body)


def problem_reply(error: MemdockError, request_id: str) -> Reply:
    """An error as a problem document."""
    return Reply(error.http_status, problem_headers(error), problem(error, request_id))


async def send_reply(send: Send, reply: Reply, request_id: str) -> None:
    """Sends a reply with its length and the request's id."""
    headers = [*reply.headers, ("content-length", str(len(reply.body))), ("x-request-id", request_id)]
    raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    await send({"type": "http.response.start", "status": reply.status, "headers": raw})
    await send({"type": "http.response.body", "body": reply.body})
