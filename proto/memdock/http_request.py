"""Reading an HTTP request: its headers, its deadline and its body, with limits before anything is parsed."""

import re
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any
from urllib.parse import parse_qsl

from memdock.check import too_large
from memdock.errors import ContentTypeError, InvalidArgumentError
from memdock.findings import refuse
from memdock.service import Method
from memdock.types import Limits
from memdock.wire import from_json, from_query

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

MAX_TIMEOUT_MS = 86_400_000

_TIMEOUT = re.compile(r"[1-9]\d{0,8}", re.ASCII)
_JSON = re.compile(r"application/json\s*(;\s*charset\s*=\s*\"?utf-8\"?\s*)?", re.IGNORECASE)


class ClientGoneError(Exception):
    """The client closed the connection; nobody waits for an answer."""


def read_headers(scope: Scope) -> dict[str, str]:
    """The headers, names in lower case."""
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}


def raw_path_of(scope: Scope) -> str:
    """The path as it was sent, without the query."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    return raw.partition(b"?")[0].decode("latin-1")


def deadline_of(headers: Mapping[str, str]) -> float | None:
    """The deadline that `X-Timeout-Ms` asks for, in seconds of `time.monotonic()`; `None` without one."""
    text = headers.get("x-timeout-ms")
    if text is None:
        return None
    if not _TIMEOUT.fullmatch(text) or int(text) > MAX_TIMEOUT_MS:
        raise refuse("VALIDATION_FAILED", "X-Timeout-Ms", f"must be whole milliseconds from 1 to {MAX_TIMEOUT_MS}")
    return time.monotonic() + int(text) / 1e3


async def read_body(headers: Mapping[str, str], receive: Receive, limits: Limits) -> bytes:
    """The whole body. Raises PAYLOAD_TOO_LARGE as soon as it is known to be, and `ClientGoneError`."""
    announced = headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > limits.max_request_bytes:
        raise too_large(int(announced), limits)
    parts: list[bytes] = []
    size = 0
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > limits.max_request_bytes:
            raise too_large(size, limits)
        more = message.get("more_body", False)
    return b"".join(parts)


def parse_request(
    method: Method, path: Mapping[str, str], query: bytes, headers: Mapping[str, str], body: bytes
) -> Any:
    """The request: a GET call's fields come as query parameters, a POST call's in the body."""
    pairs = _parse_query(query)
    if method.verb == "GET":
        if body:
            raise refuse("MALFORMED_REQUEST", "body", "must be empty; a GET call takes query parameters")
        return from_query(method.request, pairs, **path)
    if pairs:
        raise refuse("UNKNOWN_FIELD", pairs[0][0], "is a query parameter; a POST call takes its fields in the body")
    if body:
        _check_content_type(headers)
    return from_json(method.request, body, **path)


def _parse_query(query: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=16)
    except ValueError:
        raise InvalidArgumentError("MALFORMED_REQUEST", "the query string is not one; escape it as UTF-8") from None


def _check_content_type(headers: Mapping[str, str]) -> None:
    """A body must say that it is JSON, in UTF-8 and not compressed."""
    given = headers.get("content-type", "")
    if not _JSON.fullmatch(given):
        raise ContentTypeError(
            "CONTENT_TYPE_UNSUPPORTED", "send the body as JSON, with the header Content-Type: application/json"
        )
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise ContentTypeError("CONTENT_TYPE_UNSUPPORTED", "send the body without Content-Encoding")


async def gone(receive: Receive) -> None:
    """Returns when the client has closed the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass
