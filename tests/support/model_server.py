"""A scripted model server on the OpenAI wire: what it answers is decided by the test, what it saw is kept."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Answer = web.StreamResponse | None
ToolCall = tuple[str, dict[str, Any]]
"""The name of a tool, and its arguments."""


@dataclass(slots=True)
class ModelServer:
    """`chat` and `embeddings` map a request body to an answer's JSON; `faults` are used up first, one a request.

    A fault is a ready `web.Response`, or "hang" (no answer until the client leaves). `see` gets each request itself.
    More than `allowed` chats at once get 429 and `overload_headers`; `most_at_once` and `overloads` count.
    The first `skip` requests use up none.
    """

    chat: Callable[[dict[str, Any]], str | ToolCall] = lambda body: "ok"
    embed: Callable[[str], list[float]] = lambda text: [float(len(text)), 1.0, 0.0, 0.5]
    latency_s: float = 0.0
    faults: list[web.Response | str] = field(default_factory=list)
    skip: int = 0
    requests: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    see: Callable[[web.Request], None] = lambda request: None
    url: str = ""
    allowed: int = 1_000_000
    overload_headers: dict[str, str] = field(default_factory=dict)
    at_once: int = 0
    most_at_once: int = 0
    overloads: list[float] = field(default_factory=list)
    """The event loop's times at which 429 was answered."""

    def fail_from(self, nth: int, faults: list[web.Response]) -> None:
        """The nth request from now on, counted from 1, gets the first fault, the next ones the others."""
        self.skip = nth - 1
        self.faults[:] = faults

    async def _fault(self) -> web.Response | None:
        if self.latency_s:
            await asyncio.sleep(self.latency_s)
        if self.skip:
            self.skip -= 1
            return None
        if not self.faults:
            return None
        fault = self.faults.pop(0)
        if isinstance(fault, str):
            await asyncio.sleep(3600)
            raise AssertionError("a hanging request was answered")
        return fault

    async def _embeddings(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.see(request)
        self.requests.append(("embeddings", body))
        if (fault := await self._fault()) is not None:
            return fault
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        rows = [{"object": "embedding", "index": i, "embedding": self.embed(text)} for i, text in enumerate(texts)]
        usage = {"prompt_tokens": sum(len(text) for text in texts), "total_tokens": 0}
        return web.json_response({"object": "list", "data": rows, "model": body["model"], "usage": usage})

    async def _completions(self, request: web.Request) -> web.StreamResponse:
        if self.at_once >= self.allowed:
            self.overloads.append(asyncio.get_running_loop().time())
            return web.json_response({"error": {"message": "slow down"}}, status=429, headers=self.overload_headers)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            return await self._chat(request)
        finally:
            self.at_once -= 1

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.see(request)
        self.requests.append(("chat", body))
        if (fault := await self._fault()) is not None:
            return fault
        reply = self.chat(body)
        content = reply if isinstance(reply, str) else json.dumps(reply[1])
        message: dict[str, Any] = {"role": "assistant", "content": content}
        if not isinstance(reply, str):
            call = {"id": "call-1", "type": "function", "function": {"name": reply[0], "arguments": content}}
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
        prompt = sum(len(str(m["content"])) for m in body["messages"]) // 4
        usage = {"prompt_tokens": prompt, "completion_tokens": len(content) // 4 + 1, "total_tokens": 0}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return web.json_response(
            {
                "id": "c",
                "object": "chat.completion",
                "created": 0,
                "model": body["model"],
                "choices": [choice],
                "usage": usage,
            }
        )


@asynccontextmanager
async def serve_models(server: ModelServer, host: str = "127.0.0.1") -> AsyncIterator[ModelServer]:
    """Serves on a free port; `server.url` ends in `/v1`."""
    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_post("/v1/embeddings", server._embeddings)
    app.router.add_post("/v1/chat/completions", server._completions)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2)
    await runner.setup()
    await web.TCPSite(runner, host, 0).start()
    server.url = f"http://{host}:{runner.addresses[0][1]}/v1"
    try:
        yield server
    finally:
        await runner.cleanup()
