"""A meter before a scripted model server, in the test's own loop."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import openai
import yaml
from aiohttp import web

from memdock_meter.app import Face
from memdock_meter.config import read_config, system_keys
from memdock_meter.meter import Meter
from support.model_server import ModelServer

PRICES = {"date": "2026-01-01", "currency": "USD", "models": {"m": {"input": 1.0, "output": 10.0}}}


def write_config(folder: Path, url: str, **changes: Any) -> Path:
    """A configuration with the system `a` on one endpoint; `changes` go over its fields."""
    (folder / "prices.yaml").write_text(yaml.safe_dump(PRICES))
    given: dict[str, Any] = {
        "listen": "127.0.0.1:0",
        "prices": "prices.yaml",
        "upstreams": {"models": {"url": url, "tries": 3, "timeout_s": 5}},
        "systems": {"a": {"chat": "models", "embeddings": "models"}},
    }
    path = folder / "meter.yaml"
    path.write_text(yaml.safe_dump(given | changes))
    return path


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningMeter:
    """`root` is its address without a path; `clients` are closed with it."""

    root: str
    session: aiohttp.ClientSession
    clients: list[openai.AsyncOpenAI] = field(default_factory=list)

    def client(self, prefix: str = "/s/a", *, key: str = "none", tries: int = 1) -> openai.AsyncOpenAI:
        """OpenAI's own client, which tries as often as is said."""
        made = openai.AsyncOpenAI(base_url=f"{self.root}{prefix}/v1", api_key=key, max_retries=tries - 1)
        self.clients.append(made)
        return made

    async def usage(self, prefix: str = "/s/a", **query: Any) -> dict[str, Any]:
        """The lines of `/usage` by "kind model"."""
        async with self.session.get(f"{self.root}{prefix}/usage", params=query) as answer:
            found = await answer.json()
            assert answer.status == 200, found
            return {f"{line['kind']} {line['model']}": line for line in found["lines"]}


@asynccontextmanager
async def meter_of(config_file: Path) -> AsyncIterator[RunningMeter]:
    """Serves what a configuration file says on a free port."""
    config = read_config(config_file)
    keys = system_keys(config)
    meter = await Meter.open(config)
    runner = web.AppRunner(Face(meter, keys).app(), access_log=None, handler_cancellation=True, shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    async with aiohttp.ClientSession() as session:
        running = RunningMeter(root=f"http://127.0.0.1:{runner.addresses[0][1]}", session=session)
        try:
            yield running
        finally:
            for client in running.clients:
                await client.close()
            await runner.cleanup()
            await meter.close()


def seen(server: ModelServer, kind: str) -> int:
    """How many requests of a kind the model server got."""
    return sum(each == kind for each, _ in server.requests)


def events(*pieces: Any) -> web.Response:
    """A stream of chat completion as a ready response; a text is written as it is."""
    body = "".join(f"data: {piece if isinstance(piece, str) else json.dumps(piece)}\n\n" for piece in pieces)
    return web.Response(body=body.encode(), content_type="text/event-stream")


def piece(content: str) -> dict[str, Any]:
    """An event with a part of the reply."""
    choice = {"index": 0, "delta": {"role": "assistant", "content": content}, "finish_reason": None}
    return {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [choice]}


def usage_event(inward: int, outward: int) -> dict[str, Any]:
    """The last event, where it was asked for."""
    usage = {"prompt_tokens": inward, "completion_tokens": outward, "total_tokens": inward + outward}
    return {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [], "usage": usage}
