"""Writing an HTTP answer: a good one, a problem document, and the headers that go with them."""

import re
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

from memdock.error_wire import problem, problem_headers
from memdock.errors import MemdockError

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_STAGE = re.compile(r"[A-Za-z0-9_.-]{1,64}")


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP answer as it goes out."""

    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes


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


def all_headers(reply: Reply, request_id: str) -> list[tuple[bytes, bytes]]:
    """The headers of a reply as bytes, with its length and the request's id."""
    headers = [*reply.headers, ("content-length", str(len(reply.body))), ("x-request-id", request_id)]
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]


async def send_reply(send: Send, reply: Reply, request_id: str) -> None:
    """Sends a reply."""
    await send({"type": "http.response.start", "status": reply.status, "headers": all_headers(reply, request_id)})
    await send({"type": "http.response.body", "body": reply.body})
