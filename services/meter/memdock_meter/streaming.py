"""A chat completion that comes in pieces (server-sent events), passed on as it comes, with its usage read."""

from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import orjson

from memdock_meter.upstream import CutError
from memdock_meter.wire import Request, Tokens, tokens_of

Send = Callable[[bytes], Awaitable[None]]
_DONE = b"[DONE]"


def asks_for_usage(body: dict[str, Any]) -> bool:
    """Whether the caller itself wants the last event, which holds the usage."""
    options = body.get("stream_options")
    return isinstance(options, dict) and options.get("include_usage") is True


def with_usage(body: dict[str, Any]) -> dict[str, Any]:
    """The request with the wish for that event."""
    return {**body, "stream_options": {**(body.get("stream_options") or {}), "include_usage": True}}


class Stream:
    """Passes events to `send`; `sent` is everything that was passed on. An event of usage alone is kept back unless
    the caller has asked for it.
    """

    def __init__(self, request: Request, send: Send) -> None:
        self._request = request
        self._send = send
        self._shows_usage = asks_for_usage(request.body)
        self._usage: Any = None
        self._output_bytes = 0
        self._ended = False
        self.sent = bytearray()

    @property
    def tokens(self) -> Tokens:
        """What was told of it, or an estimate by what has come."""
        return tokens_of(self._usage, self._request, self._output_bytes)

    async def read(self, response: aiohttp.ClientResponse) -> None:
        """Reads to the end; raises `CutError` where the end does not come."""
        waiting = b""
        async for chunk in response.content.iter_any():
            *events, waiting = (waiting + chunk).replace(b"\r\n", b"\n").split(b"\n\n")
            for event in events:
                if self._take(event):
                    self.sent += event + b"\n\n"
                    await self._send(event + b"\n\n")
        if not self._ended:
            raise CutError("the endpoint's stream ended before its end")

    def _take(self, event: bytes) -> bool:
        """Reads an event; whether the caller gets it."""
        data = b"".join(line[5:].strip() for line in event.split(b"\n") if line.startswith(b"data:"))
        if data == _DONE:
            self._ended = True
            return True
        if not data:
            return bool(event.strip())
        try:
            piece = orjson.loads(data)
        except orjson.JSONDecodeError as error:
            raise CutError("the endpoint's stream holds an event that is no JSON") from error
        if not isinstance(piece, dict):
            raise CutError("the endpoint's stream holds an event that is no chat completion")
        self._usage = piece.get("usage") or self._usage
        choices = piece.get("choices") or []
        for choice in choices:
            said = (choice.get("delta") or {}).get("content") if isinstance(choice, dict) else None
            self._output_bytes += len(said.encode(errors="replace")) if isinstance(said, str) else 0
        return self._shows_usage or bool(choices) or not piece.get("usage")
