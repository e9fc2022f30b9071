"""Runs in an adapter's own environment: how long its calls take, and how much of that the framework's own functions.

`python -m bench.adapter_inside NAME`, or `plain` for mem0 alone; options come in as JSON, figures go out as JSON. The
server, its client and the framework are one process, with one clock.
"""

import asyncio
import functools
import importlib
import inspect
import json
import sys
import tempfile
import time
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from memdock.adapter.command import AdapterSettings, ModelAt
from memdock.client import connect_async
from memdock.server import ServeOptions, Server
from memdock.sqlite_ledger import SqliteLedger
from memdock.types import Feature, Turn

SPACE = "bench"


class Inside:
    """Milliseconds that are spent inside the framework's functions; what they call of each other counts once."""

    def __init__(self) -> None:
        self.ms = 0.0
        self._inside: ContextVar[bool] = ContextVar("inside", default=False)

    def watch(self, place: str) -> None:
        """Times a function, given as `module:Class.method`."""
        module, _, path = place.partition(":")
        owner_name, _, name = path.rpartition(".")
        owner: Any = getattr(importlib.import_module(module), owner_name)
        setattr(owner, name, self._timed(getattr(owner, name)))

    def _timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def timed(*args: Any, **more: Any) -> Any:
            if self._inside.get():
                return function(*args, **more)
            token, began = self._inside.set(True), time.perf_counter()
            try:
                return function(*args, **more)
            finally:
                self._end(token, began)

        @functools.wraps(function)
        async def timed_async(*args: Any, **more: Any) -> Any:
            if self._inside.get():
                return await function(*args, **more)
            token, began = self._inside.set(True), time.perf_counter()
            try:
                return await function(*args, **more)
            finally:
                self._end(token, began)

        return timed_async if inspect.iscoroutinefunction(function) else timed

    def _end(self, token: Any, began: float) -> None:
        self.ms += (time.perf_counter() - began) * 1000
        self._inside.reset(token)


async def share(name: str, options: dict[str, Any]) -> dict[str, list[list[float]]]:
    """For each call of AddTurns and Flush, and of Retrieve: all its milliseconds, and those inside the framework."""
    cli = importlib.import_module(f"memdock_{name.replace('-', '_')}.cli")
    inside = Inside()
    with tempfile.TemporaryDirectory(prefix="memdock-bench-", dir=options["folder"]) as folder:
        model = ModelAt(url=options["url"], model="m", dimension=options["dimension"])
        needed = {"--chat-url": model.url, "--chat-model": "m", "--embedder-url": model.url, "--embedder-model": "m"}
        words = [word for pair in {**needed, "--embedder-dimension": str(model.dimension)}.items() for word in pair]
        more = cli.main.commands["serve"].make_context("serve", words).params
        settings = AdapterSettings(system=name, data=Path(folder), chat=model, embedder=model, more=more)
        async with (
            cli.open_system(settings) as system,
            Server(system, SqliteLedger(Path(folder) / "turns.sqlite"), ServeOptions()) as server,
            connect_async(f"grpc://127.0.0.1:{server.ports['grpc']}", timeout_s=120) as client,
        ):
            for place in options["functions"]:
                inside.watch(place)
            pairs = Feature.BUFFERING in system.info.features

            async def timed(call: Callable[[], Any]) -> list[float]:
                before, began = inside.ms, time.perf_counter()
                await call()
                return [(time.perf_counter() - began) * 1000, inside.ms - before]

            async def add(number: int) -> None:
                await client.add_turns(SPACE, turns(number, options["texts"], pairs=pairs))
                assert (await client.flush(SPACE, timeout_s=60)).done

            numbers = range(options["calls"])
            added = [await timed(functools.partial(add, number)) for number in numbers]
            asked = [
                await timed(functools.partial(client.retrieve, SPACE, options["texts"][number])) for number in numbers
            ]
    return {"add": added, "retrieve": asked}


def turns(number: int, texts: list[str], *, pairs: bool) -> list[Turn]:
    """A user's turn, and its reply where the system takes both as one."""
    session_id = f"s{number // 10}"
    asked = Turn(turn_id=f"{number}u", session_id=session_id, role="user", text=texts[number])
    replied = Turn(turn_id=f"{number}a", session_id=session_id, role="assistant", text=texts[number + 1])
    return [asked, replied] if pairs else [asked]


def plain(options: dict[str, Any]) -> dict[str, float]:
    """mem0 alone, each message stored as it is (`infer=False`), on ready vectors: messages a second, ms a search."""
    from memdock_mem0.framework import Mem0

    texts, vectors = options["texts"], dict(zip(options["texts"], options["vectors"], strict=True))
    model = ModelAt(url="http://127.0.0.1:1/v1", model="m", dimension=len(options["vectors"][0]))
    with tempfile.TemporaryDirectory(prefix="memdock-bench-") as folder:
        framework = Mem0(options["database"], Path(folder), model, model, max_tokens=1)
        memory = framework._memory
        memory.embedding_model.embed = lambda text, *_: vectors[text]
        memory.embedding_model.embed_batch = lambda batch, *_: [vectors[text] for text in batch]
        space = options["space"]
        began = time.perf_counter()
        for place in range(0, len(texts), 2):
            roles = zip(("user", "assistant"), texts[place : place + 2], strict=False)
            memory.add([{"role": role, "content": text} for role, text in roles], user_id=space, infer=False)
        stored = time.perf_counter()
        for text in texts[: options["searches"]]:
            found = memory.search(text, filters={"user_id": space}, top_k=10, threshold=0.0)["results"]
            assert len(found) == 10
        ended = time.perf_counter()
        framework.close()
    return {
        "messages_a_second": len(texts) / (stored - began),
        "search_ms": (ended - stored) * 1000 / options["searches"],
    }


def main() -> None:
    """Reads OPTIONS from standard input."""
    options = json.load(sys.stdin)
    done = plain(options) if sys.argv[1] == "plain" else asyncio.run(share(sys.argv[1], options))
    print(json.dumps(done))


if __name__ == "__main__":
    main()
