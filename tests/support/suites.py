"""The suites on forgetting and on leaks against a system that is really served."""

import asyncio
import io
import shlex
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
from click.testing import CliRunner, Result
from rich.console import Console

from memdock.ledger import Ledger
from memdock.server import ServeOptions, Server
from memdock.sqlite_ledger import SqliteLedger
from memdock.system import System
from memdock_evaluator.cli import main
from support.evaluation import question, session
from support.gateways import gateway_over
from support.toys import ToySystem


@asynccontextmanager
async def served_at(system: System, folder: Path, ledger: type[SqliteLedger] = SqliteLedger) -> AsyncIterator[str]:
    """The gRPC address of `system`, whose ledger may be of another class."""
    folder.mkdir(parents=True, exist_ok=True)
    kept: Ledger = ledger(folder / "ledger.db")
    async with Server(system, kept, ServeOptions(drain_s=1.0)) as server:
        yield f"grpc://127.0.0.1:{server.ports['grpc']}"


@asynccontextmanager
async def behind_a_gateway(tmp_path: Path, *systems: tuple[str, ToySystem]) -> AsyncIterator[dict[str, Any]]:
    """What reaches the systems."""
    names = [name for name, _ in systems]
    first, second = (toy for _, toy in systems)
    async with served_at(first, tmp_path / names[0]) as one, served_at(second, tmp_path / names[1]) as other:
        listed = [{"name": name, "address": url} for name, url in zip(names, (one, other), strict=True)]
        (tmp_path / "gateway").mkdir()
        async with gateway_over(tmp_path / "gateway", listed) as gateway:
            yield {"url": gateway.url("grpc"), "key": gateway.keys["all"], "systems": tuple(names)}


def invoke(*words: object, env: Mapping[str, str] | None = None) -> Result:
    """`memdock-eval` in this process, for a thread beside the server's."""
    return CliRunner().invoke(main, [str(word) for word in words], env=dict(env or {}))


def quiet() -> Console:
    """A console that nobody reads."""
    return Console(file=io.StringIO(), width=200)


def summary(out: Path) -> Any:
    """`summary.json` of a folder."""
    return orjson.loads((out / "summary.json").read_bytes())


def lines(out: Path, name: str) -> list[Any]:
    """The rows of a file of a folder."""
    return [orjson.loads(line) for line in (out / name).read_bytes().splitlines()]


def facts() -> dict[str, Any]:
    """Sessions with two facts each, and a question on each fact: a neighbour in the session and others beside it."""
    return {
        "sessions": [
            session("2024-03-04T20:15:00", "My cat is called Bublik", "Nice", "The gate opens with 5083", "Noted"),
            session("2024-03-11T09:00:00", "Yesterday I bought a green bicycle", "Enjoy", "I play chess", "Fine"),
            session("2024-05-06T18:30:00", "My sister Olga moved to Perm", "Far", "Her dog is called Rex", "Good"),
        ],
        "questions": [
            question("q0", "What is my cat called", "Bublik", evidence_turns=["s1-t0"]),
            question("q1", "How to open the gate", "5083", evidence_turns=["s1-t2"]),
            question("q2", "What colour is the bicycle I bought", "green", evidence_turns=["s2-t0"]),
            question("q3", "What do I play", "chess", evidence_turns=["s2-t2"]),
            question("q4", "Where did my sister Olga move", "Perm", evidence_turns=["s3-t0"]),
            question("q5", "How is her dog called", "Rex", evidence_turns=["s3-t2"]),
            question("q6", "Which instrument does grandfather play", abstention=True),
        ],
    }


class RestartByHand:
    """A `--restart-command` that asks this process to restart something, and ends when that is done."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._asked, self._done = folder / "asked", folder / "done"
        code = (
            "import pathlib, sys, time\n"
            "pathlib.Path(sys.argv[1]).touch()\n"
            "while not pathlib.Path(sys.argv[2]).exists(): time.sleep(0.02)\n"
        )
        self.command = (sys.executable, "-c", code, str(self._asked), str(self._done))

    @property
    def line(self) -> str:
        """The command as it is typed."""
        return shlex.join(self.command)

    async def serve(self, restart: Callable[[], Awaitable[None]]) -> None:
        """Waits until it is asked, and restarts."""
        while not self._asked.exists():  # noqa: ASYNC110 - another process asks
            await asyncio.sleep(0.02)
        await restart()
        self.tell()

    def wait(self, ended: threading.Event) -> bool:
        """Waits on a thread; whether it was asked before `ended` was set."""
        while not self._asked.exists():
            if ended.wait(0.02):
                return False
        return True

    def tell(self) -> None:
        """The restart is done."""
        self._done.touch()
