"""The two faces of a server as the suite speaks to them: every refusal is held to the error table as it arrives.

A face is a `Service`, and sends raw bytes besides, for what no client would send.
"""

import io
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import quote

import aiohttp
import grpc
import grpc.aio
import orjson
import yarl

from memdock.conformance.case import CheckFailedError
from memdock.error_wire import DETAILS_KEY, PROBLEM_TYPE, error_from_problem, error_from_trailers
from memdock.errors import MAX_FIELDS, MAX_MESSAGE_BYTES, REASONS, MemdockError, UnavailableError, VerbError
from memdock.service import Call, Method
from memdock.tls import Tls, channel_credentials, client_context
from memdock.transport import Endpoint
from memdock.wire import MAX_ANSWER_BYTES, answer_from_bytes, answer_from_json, to_json

_HEALTH = "/grpc.health.v1.Health/Check"
_AT_ONCE_BYTES = 2**20
"""What aiohttp writes in one go without a warning."""
_SERVING = b"\x08\x01"
_BARE_CODES = (1, 4, 8, 14)
"""gRPC's own words of a cancelled call, a deadline, its own limit and a closed connection: no server writes details."""
_TRACES = ("Traceback (most recent", 'File "/', '.py", line', "\n\tat ", "goroutine ", "panicked at", "stack backtrace")

Watch = Callable[[str], None]
"""Is told the words of each refusal; raises `CheckFailedError` where they hold what they must not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a raw exchange gave: `body` when it went well, otherwise `error` with its gRPC `code` and HTTP `status`."""

    body: bytes = b""
    error: MemdockError | None = None
    code: int = 0
    status: int = 200
    headers: Mapping[str, str] | None = None


class Face(Protocol):
    """What both faces can do."""

    name: str
    watch: Watch

    async def call(self, method: Method, request: Any, call: Call) -> Any:
        """The answer, or the `MemdockError` of the table."""

    async def send(self, method: Method, body: bytes, *, path: Mapping[str, str]) -> Told:
        """A request as bytes: protobuf over gRPC; JSON over HTTP, where `path` has the fields that stand there."""

    async def is_ready(self) -> bool:
        """Whether it says that it can serve."""

    async def close(self) -> None:
        """Closes the connection."""


def _pass(words: str) -> None:
    _ = words


class GrpcFace:
    """gRPC: bytes over one channel."""

    name = "grpc"

    def __init__(self, endpoint: Endpoint) -> None:
        parts = yarl.URL(endpoint.url)
        target = f"{parts.host}:{parts.port}"
        options = (
            ("grpc.max_receive_message_length", MAX_ANSWER_BYTES),
            ("grpc.max_send_message_length", -1),
            ("grpc.initial_reconnect_backoff_ms", 50),
            ("grpc.max_reconnect_backoff_ms", 500),
            ("grpc.enable_http_proxy", 0),
        )
        self._channel = (
            grpc.aio.secure_channel(target, channel_credentials(endpoint.tls or Tls()), options)
            if endpoint.url.startswith("grpcs")
            else grpc.aio.insecure_channel(target, options)
        )
        self._endpoint = endpoint
        self.watch: Watch = _pass

    async def call(self, method: Method, request: Any, call: Call) -> Any:
        """See `Face`."""
        told = await self._exchange(method.grpc_path, request.SerializeToString(), call)
        if told.error is not None:
            raise told.error
        return answer_from_bytes(method.response, told.body)

    async def send(self, method: Method, body: bytes, *, path: Mapping[str, str]) -> Told:
        """See `Face`; what stands in a path over HTTP stands in the body here."""
        _ = path
        return await self._exchange(method.grpc_path, body, _within(30.0))

    async def is_ready(self) -> bool:
        """See `Face`."""
        try:
            ask: Any = self._channel.unary_unary(_HEALTH)
            status: bytes = await ask(b"", timeout=5)
        except grpc.RpcError:
            return False
        return status == _SERVING

    async def close(self) -> None:
        """See `Face`."""
        await self._channel.close()

    async def _exchange(self, path: str, body: bytes, call: Call) -> Told:
        metadata = tuple(self._endpoint.call_headers(call).items())
        try:
            ask: Any = self._channel.unary_unary(path)
            answer: bytes = await ask(body, timeout=call.left_s(), metadata=metadata)
            return Told(body=answer)
        except grpc.RpcError as failed:
            rpc: Any = failed
        code, trailers = rpc.code().value[0], tuple(rpc.trailing_metadata() or ())
        error = error_from_trailers(code, trailers, self._endpoint.label, rpc.details() or "")
        marked = any(key == DETAILS_KEY for key, _ in trailers)
        if not marked and code not in _BARE_CODES:
            raise CheckFailedError(f"gRPC code {rpc.code().name} comes without the ErrorInfo of the error table")
        if marked:
            _hold_to_table(error, f"gRPC code {rpc.code().name}", code, error.code)
            _hold_words(f"{rpc.details()} {trailers}", rpc.details() or "", error, self.watch)
        return Told(error=error, code=code)


class HttpFace:
    """HTTP: JSON over one session."""

    name = "http"

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._root = endpoint.url.rstrip("/")
        secure = client_context(endpoint.tls or Tls()) if endpoint.url.startswith("https") else True
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=secure, keepalive_timeout=4.0),
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        self.watch: Watch = _pass

    async def call(self, method: Method, request: Any, call: Call) -> Any:
        """See `Face`."""
        path = {name: getattr(request, name) for name in method.path_fields}
        if method.verb == "POST":
            told = await self.exchange("POST", url_path(method, path), call, to_json(request))
        else:
            query = {field.name: str(value) for field, value in request.ListFields() if field.name not in path}
            told = await self.exchange("GET", url_path(method, path), call, query=query)
        if told.error is not None:
            raise told.error
        return answer_from_json(method.response, told.body)

    async def send(self, method: Method, body: bytes, *, path: Mapping[str, str]) -> Told:
        """See `Face`."""
        return await self.exchange(method.verb, url_path(method, path), _within(30.0), body)

    async def is_ready(self) -> bool:
        """See `Face`."""
        try:
            return (await self.get("/readyz"))[0] == 200
        except (aiohttp.ClientError, ConnectionError, TimeoutError):
            return False

    async def get(self, path: str) -> tuple[int, bytes]:
        """Status and body of a page: `/livez`, `/readyz`, `/metrics`."""
        async with self._session.get(f"{self._root}{path}", timeout=aiohttp.ClientTimeout(total=10)) as answer:
            return answer.status, await answer.read()

    async def close(self) -> None:
        """See `Face`."""
        await self._session.close()

    async def exchange(
        self,
        verb: str,
        path: str,
        call: Call,
        body: bytes | None = None,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        wait_s: float | None = None,
    ) -> Told:
        """One request as it is told. `wait_s`: how long to wait for the answer, other than the deadline sent."""
        sent = self._endpoint.call_headers(call)
        left_s = call.left_s()
        if left_s is not None:
            sent["x-timeout-ms"] = str(max(1, int(left_s * 1e3)))
        if body is not None:
            sent["content-type"] = "application/json"
        sent |= headers or {}
        url = yarl.URL(f"{self._root}{path}", encoded=True)
        try:
            async with self._session.request(
                verb,
                url.with_query(query) if query else url,
                data=io.BytesIO(body) if body and len(body) > _AT_ONCE_BYTES else body,
                headers=sent,
                timeout=aiohttp.ClientTimeout(total=wait_s or left_s),
                allow_redirects=False,
            ) as answer:
                got, names = await answer.read(), {name.lower(): value for name, value in answer.headers.items()}
                return self._told(answer.status, names, got)
        except TimeoutError:
            return Told(error=REASONS["DEADLINE_EXCEEDED"]("DEADLINE_EXCEEDED", "no answer in time"), code=4, status=0)
        except (aiohttp.ClientError, ConnectionError):
            return Told(error=UnavailableError("ADAPTER_UNREACHABLE", "the connection was lost"), code=14, status=0)

    def _told(self, status: int, headers: Mapping[str, str], body: bytes) -> Told:
        if status == 200:
            kind = headers.get("content-type", "")
            if not kind.startswith("application/json"):
                raise CheckFailedError(f"an answer has the content type {kind!r}, not application/json")
            return Told(body=body, headers=headers)
        error = error_from_problem(status, headers, body, self._endpoint.label)
        if not headers.get("content-type", "").startswith(PROBLEM_TYPE):
            raise CheckFailedError(f"HTTP status {status} comes without a problem document ({PROBLEM_TYPE})")
        try:
            document = orjson.loads(body)
            complete = document["status"] == status and document["reason"] and document["request_id"]
        except (orjson.JSONDecodeError, KeyError, TypeError):
            complete = False
        if not complete:
            raise CheckFailedError(f"the problem document of status {status} lacks its status, reason or request_id")
        expected = VerbError.http_status if error.reason == "VERB_NOT_ALLOWED" else error.http_status
        _hold_to_table(error, f"HTTP status {status}", status, expected)
        if len(document.get("errors", ())) > MAX_FIELDS:
            raise CheckFailedError(f"the problem document has more than {MAX_FIELDS} errors")
        _hold_words(body.decode(errors="replace"), str(document.get("detail", "")), error, self.watch)
        return Told(error=error, code=error.code, status=status, headers=headers)


def url_path(method: Method, fields: Mapping[str, str]) -> str:
    """The path of a call; the system segment of a server that was named none is `-`."""
    segments = {name: quote(fields.get(name, ""), safe="") for name in method.path_fields}
    if "system" in segments:
        segments["system"] = segments["system"] or "-"
    return method.path.format_map(segments)


def open_face(endpoint: Endpoint) -> Face:
    """The face of an address."""
    return GrpcFace(endpoint) if endpoint.url.startswith("grpc") else HttpFace(endpoint)


def as_json(message: Any) -> dict[str, Any]:
    """A message as the JSON that would be sent, to be changed."""
    document: dict[str, Any] = json.loads(to_json(message))
    return document


def _within(timeout_s: float) -> Call:
    return Call(deadline=time.monotonic() + timeout_s)


def _hold_to_table(error: MemdockError, what: str, given: int, expected: int) -> None:
    known = REASONS.get(error.reason)
    if known is None:
        raise CheckFailedError(f"the reason {error.reason} is not in the error table")
    if given != expected:
        raise CheckFailedError(f"{what} does not go with the reason {error.reason}, which has {expected}")


def _hold_words(words: str, message: str, error: MemdockError, watch: Watch) -> None:
    if any(trace in words for trace in _TRACES):
        raise CheckFailedError(f"the error {error.reason} shows a stack trace")
    if len(message.encode()) > MAX_MESSAGE_BYTES:
        raise CheckFailedError(f"the message of {error.reason} has more than {MAX_MESSAGE_BYTES} bytes")
    watch(words)
