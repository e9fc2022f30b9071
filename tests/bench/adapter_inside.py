"""Runs in an adapter's own environment: how long its calls take, and how much of that the framework's own functions.

`python -m bench.adapter_inside NAME`, or `plain` for mem0 alone; options come in as JSON, figures go out as JSON. The
server, its client and the framework are one process, with one clock.
"""

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

from memdock.adapter import command
from memdock.adapter.command import ModelAt
from memdock.client import AsyncClient, connect_async
from memdock.ledger import Ledger
from memdock.server import ServeOptions, Server
from memdock.system import System
from memdock.types import Feature, Turn

SPACE = "bench"


class Inside:
    """Milliseconds that are spent inside the framework's functions; what they call of each other counts once."""

    def __init__(self) -> None:
        self.ms = 0.0
        self._inside: ContextVar[bool] = ContextVar("inside", default=False)

    def watch(self, place: str) -> None:
        """Times a function, given as `module:Class.method` or `module:function`."""
        module, _, path = place.partition(":")
        *classes, name = path.split(".")
        owner: Any = functools.reduce(getattr, classes, importlib.import_module(module))
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


def share(name: str, options: dict[str, Any]) -> dict[str, list[list[float]]]:
    """Starts an adapter by its own command; what `times` measures of it, instead of its serving."""
    cli = importlib.import_module(f"memdock_{name.replace('-', '_')}.cli")
    found: dict[str, list[list[float]]] = {}

    async def measure(system: System, ledger: Ledger, faces: ServeOptions) -> None:
        async with (
            Server(system, ledger, faces) as server,
            connect_async(f"grpc://127.0.0.1:{server.ports['grpc']}", timeout_s=120) as client,
        ):
            found.update(await times(client, options, pairs=Feature.BUFFERING in system.info.features))

    vars(command)["serve"] = measure  # by its own name, in the module that calls it
    with tempfile.TemporaryDirectory(prefix="memdock-bench-", dir=options["folder"]) as folder:
        cli.main(["serve", "--data", folder, *options["words"]], standalone_mode=False)
    return found


async def times(client: AsyncClient, options: dict[str, Any], *, pairs: bool) -> dict[str, list[list[float]]]:
    """For each call of AddTurns and Flush, and of Retrieve: all its milliseconds, and those inside the framework."""
    inside = Inside()
    for place in options["functions"]:
        inside.watch(place)

    async def timed(call: Callable[[], Any]) -> list[float]:
        before, began = inside.ms, time.perf_counter()
        await call()
        return [(time.perf_counter() - began) * 1000, inside.ms - before]

    async def add(number: int) -> None:
        await client.add_turns(SPACE, turns(number, options["texts"], pairs=pairs))
        assert (await client.flush(SPACE, timeout_s=60)).done

    numbers = range(options["calls"])
    added = [await timed(functools.partial(add, number)) for number in numbers]
    asked = [await timed(functools.partial(client.retrieve, SPACE, options["texts"][number])) for number in numbers]
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
    done = plain(options) if sys.argv[1] == "plain" else share(sys.argv[1], options)
    print(json.dumps(done))


if __name__ == "__main__":
    main()
