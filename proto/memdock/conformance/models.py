"""The scripted model server: the OpenAI wire, deterministic answers, and faults by the word that a request holds.

Each case says a word of its own in its turns, so a fault that is set for a word reaches the requests of that case
alone, and `count` tells how often the system asked its models about it.
"""

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import orjson
from aiohttp import web

from memdock.conformance.case import UnprovenError

DIMENSION = 256
_QUIET = logging.getLogger("memdock.conformance.quiet")
_QUIET.addHandler(logging.NullHandler())
_QUIET.propagate = False
"""For aiohttp, which tells each odd request of the system under test with a trace."""

SECRET = "sk-conformance-secret-7f3a"  # noqa: S105 - not one: it stands in errors of the model and must go no further

Responder = Callable[[Mapping[str, Any], Sequence[str]], str]
"""From a chat request's body to the content of its answer; what holds one of the words is not worth remembering."""


def echo(body: Mapping[str, Any], worthless: Sequence[str]) -> str:
    """The default responder: the last message back, or no word."""
    said = text_of(body["messages"][-1])
    return "" if holds_any(said, worthless) else said


def holds_any(text: str, words: Sequence[str]) -> bool:
    """Whether one of the words stands in the text."""
    lower = text.lower()
    return any(word.lower() in lower for word in words)


def text_of(message: Mapping[str, Any]) -> str:
    """The text of a chat's message, whose content may be a list of parts."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return " ".join(str(part.get("text", "")) for part in content)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What a model does instead of answering: an HTTP `status`, or `broken`: garbage, cut or empty."""

    status: int = 0
    broken: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A request that was answered: its kind (chat, embeddings) and the tokens that the answer told."""

    kind: str
    input_tokens: int
    output_tokens: int


@dataclass(slots=True)
class _Rule:
    """What is set for a word."""

    open: asyncio.Event = field(default_factory=asyncio.Event)
    fault: Fault | None = None
    nothing: bool = False
    asked: int = 0
    prompts: list[str] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)


class Models:
    """The server and its script. Words are told by `expect` before they are used."""

    def __init__(self, responder: Responder = echo, *, delay_s: float = 0.0) -> None:
        self._responder = responder
        self._delay_s = delay_s
        self._rules: dict[str, _Rule] = {}
        self.answered: list[Seen] = []
        """Every request that was answered, with whatever words."""
        self.url = ""

    def expect(self, word: str) -> None:
        """From now on requests that hold the word are counted."""
        rule = self._rules.setdefault(word, _Rule())
        rule.open.set()

    def forget(self, words: Sequence[str]) -> None:
        """Lifts everything that was set for the words."""
        for word in words:
            rule = self._rules.pop(word, None)
            if rule is not None:
                rule.open.set()

    def hold(self, word: str) -> None:
        """Requests with the word wait until `release`."""
        self._rules[word].open.clear()
        self._rules[word].arrived.clear()

    def release(self, word: str) -> None:
        """Lets them go on."""
        self._rules[word].open.set()

    def fail(self, word: str, fault: Fault | None) -> None:
        """Requests with the word meet the fault; `None`: no longer."""
        self._rules[word].fault = fault

    def nothing(self, word: str) -> None:
        """What holds the word is not worth remembering."""
        self._rules[word].nothing = True

    def count(self, word: str) -> int:
        """How many requests with the word have come."""
        return self._rules[word].asked

    def prompts(self, word: str) -> list[str]:
        """The requests with the word, as they came."""
        return list(self._rules[word].prompts)

    async def arrival(self, word: str, within_s: float = 10.0) -> None:
        """Returns when a request with the word has come since `hold`; raises `UnprovenError` when none comes."""
        try:
            async with asyncio.timeout(within_s):
                await self._rules[word].arrived.wait()
        except TimeoutError:
            raise UnprovenError("the system does not ask the scripted model server about this") from None

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Both calls of the wire."""
        raw = await request.read()
        text = raw.decode(errors="replace").lower()
        rules = [rule for word, rule in list(self._rules.items()) if word.lower() in text]
        for rule in rules:
            rule.asked += 1
            rule.prompts.append(raw.decode(errors="replace"))
            rule.arrived.set()
        for rule in rules:
            await rule.open.wait()
        if self._delay_s:
            await asyncio.sleep(self._delay_s)
        fault = next((rule.fault for rule in rules if rule.fault is not None), None)
        try:
            body = orjson.loads(raw)
            embeds = request.path.endswith("/embeddings")
            answer = _embeddings(body) if embeds else self._chat(body)
        except (orjson.JSONDecodeError, KeyError, TypeError, IndexError):
            return _refusal(400, "the request is not of the OpenAI wire")
        if fault is not None:
            return _broken(fault, orjson.dumps(answer))
        usage = answer["usage"]
        seen = Seen(
            kind="embeddings" if embeds else "chat",
            input_tokens=usage["prompt_tokens"],
            output_tokens=usage.get("completion_tokens", 0),
        )
        self.answered.append(seen)
        return web.Response(body=orjson.dumps(answer), content_type="application/json")

    def _chat(self, body: Mapping[str, Any]) -> dict[str, Any]:
        content = self._responder(body, [word for word, rule in self._rules.items() if rule.nothing])
        tokens = sum(_tokens(text_of(message)) for message in body["messages"])
        told = _tokens(content)
        return {
            "id": "chatcmpl-conformance",
            "object": "chat.completion",
            "created": 0,
            "model": body["model"],
            "choices": [
                {"index": 0, **_choice(body, content)},
            ],
            "usage": {"prompt_tokens": tokens, "completion_tokens": told, "total_tokens": tokens + told},
        }


@asynccontextmanager
async def serving(models: Models, address: str = "127.0.0.1:0") -> AsyncIterator[Models]:
    """Serves on `host:port`; `models.url` ends in `/v1`. Raises `OSError` when it cannot be bound."""
    app = web.Application(client_max_size=64 * 1024 * 1024)
    for path in ("/v1/embeddings", "/v1/chat/completions"):
        app.router.add_post(path, models.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2, logger=_QUIET)
    await runner.setup()
    host, _, port = address.rpartition(":")
    try:
        await web.TCPSite(runner, host, int(port)).start()
        models.url = f"http://{host}:{runner.addresses[0][1]}/v1"
        yield models
    finally:
        await runner.cleanup()


def _choice(body: Mapping[str, Any], content: str) -> dict[str, Any]:
    """Where tools are offered, an answer that is a JSON object is what the first of them is called with."""
    if not body.get("tools") or not content.startswith("{"):
        return {"message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
    function = {"name": body["tools"][0]["function"]["name"], "arguments": content}
    calls = [{"id": "call-1", "type": "function", "function": function}]
    return {"message": {"role": "assistant", "content": None, "tool_calls": calls}, "finish_reason": "tool_calls"}


def _embeddings(body: Mapping[str, Any]) -> dict[str, Any]:
    texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
    rows = [{"object": "embedding", "index": index, "embedding": embed(text)} for index, text in enumerate(texts)]
    tokens = sum(map(_tokens, texts))
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": rows, "model": body["model"], "usage": usage}


def embed(text: str) -> list[float]:
    """A vector in which texts that share words are near: each word adds 8 of +1 or -1 at places of its hash."""
    vector = [0.0] * DIMENSION
    vector[0] = 0.01  # a text without a word has a direction too
    for word in text.lower().split():
        for place, sign in _places(word):
            vector[place] += sign
    return vector


@lru_cache(maxsize=20_000)
def _places(word: str) -> tuple[tuple[int, float], ...]:
    digest = hashlib.sha256(word.encode()).digest()
    return tuple((digest[at], 1.0 if digest[at + 8] % 2 else -1.0) for at in range(8))


def _tokens(text: str) -> int:
    return max(1, len(text.split()))


def _broken(fault: Fault, body: bytes) -> web.Response:
    if fault.broken == "garbage":
        return web.Response(body=b"\x00{]garbage", content_type="application/json")
    if fault.broken == "cut":
        return web.Response(body=body[: len(body) // 2], content_type="application/json")
    if fault.broken == "empty":
        return web.Response(body=b"", content_type="application/json")
    return _refusal(fault.status, f"refused by the script; key {SECRET}; Traceback (most recent call last)")


def _refusal(status: int, message: str) -> web.Response:
    error = {"message": message, "type": "invalid_request_error", "code": "scripted"}
    return web.json_response({"error": error}, status=status)
