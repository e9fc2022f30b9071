"""What the fakes of hosted services share: a real HTTP server with state, an API key, faults, and a model behind it.

A fake refuses what the service's published client would not send, and keeps why in `refused`: a test that ends with a
refusal has failed. What it is told becomes memories by a chat of the model server at `model_url`, later, as with the
service itself.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
KEY = "key-of-a-test-0a1b2c3d"


class RefusedError(Exception):
    """The request is none that the service's client would send, or asks for what is not there."""

    def __init__(self, why: str, status: int = 400, *, odd: bool = True) -> None:
        self.why, self.status, self.odd = why, status, odd
        super().__init__(why)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What comes in place of an answer. `worked`: the request did its work all the same; `cut`: half of the answer."""

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    worked: bool = False
    cut: bool = False
    hang: bool = False


class Service:
    """A fake. `scheme` stands before the key in `Authorization`, `base` before every path; `routes` are its own."""

    scheme = ""
    base = ""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.skip = 0
        self.requests: list[tuple[str, str]] = []
        self.refused: list[str] = []
        self.held = False
        """While it is set, nothing is asked of the model."""
        self.model_url = ""
        self.url = ""
        self.key = KEY
        self._tasks: set[asyncio.Task[None]] = set()
        self._session: aiohttp.ClientSession | None = None

    def routes(self) -> Sequence[tuple[str, str, Handler]]:
        """Verb, path and handler of each call."""
        raise NotImplementedError

    def texts(self) -> list[str]:
        """Every text that it keeps."""
        raise NotImplementedError

    def fail_from(self, nth: int, faults: Sequence[Fault]) -> None:
        """The nth request from now on, counted from 1, gets the first fault, the next ones the others."""
        self.skip = nth - 1
        self.faults[:] = faults

    def places_of(self, words: Collection[str]) -> list[str]:
        """Which of the words it still keeps, once for each text that holds one."""
        return [f"{type(self).__name__}: {word}" for text in self.texts() for word in words if word in text]

    def work(self, doing: Any) -> None:
        """Lets a coroutine run on."""
        task = asyncio.create_task(doing)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def told_by(self, said: str, when: str) -> list[dict[str, Any]]:
        """What the model makes of a message: facts, each with its `fact` and what else it says of it.

        The reply is the one fact, or a JSON object with a list `facts`; an empty one tells none. Raises
        `aiohttp.ClientError` or `ValueError` where the model fails.
        """
        while self.held:  # noqa: ASYNC110 - a test's thread sets it
            await asyncio.sleep(0.02)
        assert self._session is not None
        asked = [{"role": "system", "content": f"This was said at {when}."}, {"role": "user", "content": said}]
        body = {"model": "hosted", "messages": asked}
        async with self._session.post(f"{self.model_url}/chat/completions", json=body) as answer:
            answer.raise_for_status()
            reply = json.loads(await answer.read())
        choice = reply["choices"][0]
        if choice["finish_reason"] != "stop":
            raise ValueError("the reply was cut")
        content = str(choice["message"]["content"])
        if not content.startswith('{"facts"'):
            return [{"fact": content}] if content.strip() else []
        facts: list[dict[str, Any]] = json.loads(content)["facts"]
        return facts

    @asynccontextmanager
    async def serving(self, address: str = "127.0.0.1:0") -> AsyncIterator[None]:
        """Serves on `host:port`; `url` is then where."""
        app = web.Application(middlewares=[self._guard], client_max_size=64 * 1024 * 1024)
        for verb, path, handler in self.routes():
            app.router.add_route(verb, path, handler)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2)
        await runner.setup()
        host, _, port = address.rpartition(":")
        await web.TCPSite(runner, host, int(port)).start()
        self.url = f"http://{host}:{runner.addresses[0][1]}"
        async with aiohttp.ClientSession() as self._session:
            try:
                yield
            finally:
                for task in list(self._tasks):
                    task.cancel()
                    with suppress(asyncio.CancelledError):
                        await task
                await runner.cleanup()

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        self.requests.append((request.method, request.path))
        if request.headers.get("Authorization") != f"{self.scheme} {self.key}":
            return web.json_response({"message": "unauthorized"}, status=401)
        fault = None
        if self.skip:
            self.skip -= 1
        elif self.faults:
            fault = self.faults.pop(0)
        if fault is None:
            return await self._answer(request, handler)
        if fault.worked:
            await self._answer(request, handler)
        if fault.hang:
            await asyncio.sleep(3600)
        response = web.StreamResponse(status=fault.status, headers=dict(fault.headers))
        response.content_type = fault.content_type
        response.content_length = len(fault.body) + (100 if fault.cut else 0)
        await response.prepare(request)
        await response.write(fault.body)
        if fault.cut:
            assert request.transport is not None
            request.transport.close()
        return response

    async def _answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except RefusedError as refused:
            if refused.odd:
                self.refused.append(f"{request.method} {request.path}: {refused.why}")
            return web.json_response({"message": refused.why}, status=refused.status)
        except web.HTTPException as odd:
            self.refused.append(f"{request.method} {request.path}: HTTP {odd.status}")
            return web.json_response({"message": odd.reason}, status=odd.status)


async def body_of(request: web.Request, needed: Mapping[str, type], known: Mapping[str, type]) -> dict[str, Any]:
    """The JSON object that was sent: with all that is `needed`, and beside that nothing but what is `known`."""
    if request.content_type != "application/json":
        raise RefusedError(f"a body of {request.content_type}")
    if request.query_string and "page" not in request.query:
        raise RefusedError("a query beside a body")
    body = json.loads(await request.read())
    if not isinstance(body, dict):
        raise RefusedError("the body is no object")
    check_fields(body, needed, known)
    return body


def check_fields(found: Mapping[str, Any], needed: Mapping[str, type], known: Mapping[str, type]) -> None:
    """Raises `RefusedError` at the first field that is missing, unknown or of another type."""
    for name in needed:
        if found.get(name) in (None, ""):
            raise RefusedError(f"{name} is missing")
    for name, value in found.items():
        kind = needed.get(name) or known.get(name)
        if kind is None:
            raise RefusedError(f"{name} is unknown")
        if value is not None and (not isinstance(value, kind) or isinstance(value, bool) is not (kind is bool)):
            raise RefusedError(f"{name} is no {kind.__name__}")


def query_of(request: web.Request, *known: str) -> dict[str, str]:
    """The query, of nothing but known fields; a body beside it is refused."""
    if odd := set(request.query) - set(known):
        raise RefusedError(f"{sorted(odd)[0]} is unknown")
    if request.can_read_body:
        raise RefusedError("a body where none belongs")
    return dict(request.query)


def likeness(query: str, text: str) -> float:
    """Of the query's words, the share that stands in the text; a little for each text, so that all can be found."""
    words, held = query.lower().split(), set(text.lower().split())
    return (1 + sum(word in held for word in words)) / (1 + len(words))
