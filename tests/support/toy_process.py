"""The durable toy's server as a process that can be killed, and what its store holds afterwards."""

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from memdock.client import ConnectedClient, connect_async
from memdock.errors import MemdockError
from memdock.types import Turn

_TESTS = Path(__file__).parents[1]


class ToyProcess:
    """One server at a time over one folder; `start` it again after `kill`."""

    def __init__(self, folder: Path, *options: str) -> None:
        self._folder = folder
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        self._ports: dict[str, int] = {}

    async def start(self) -> None:
        """Returns when calls are taken."""
        ports = self._folder / "ports.json"
        ports.unlink(missing_ok=True)
        with (self._folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: ASYNC220 - it returns at once
                [sys.executable, "-m", "support.toy_server", str(self._folder), *self._options],
                cwd=_TESTS,
                env=os.environ | {"PYTHONPATH": str(_TESTS)},
                stderr=log,
            )
        async with asyncio.timeout(30):
            while not ports.exists():
                assert self._process.poll() is None, (self._folder / "server.log").read_text()
                await asyncio.sleep(0.02)
        self._ports = json.loads(ports.read_text())

    async def kill(self) -> None:
        """Ends it as a power cut would."""
        assert self._process is not None
        self._process.kill()
        await asyncio.to_thread(self._process.wait)

    def terminate(self) -> None:
        """Asks it to end."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)

    async def ended(self) -> int:
        """Its exit code."""
        assert self._process is not None
        return await asyncio.to_thread(self._process.wait, 20)

    def client(self, scheme: str = "grpc", timeout_s: float = 20.0) -> ConnectedClient:
        """A client of the server that runs now."""
        return connect_async(f"{scheme}://127.0.0.1:{self._ports[scheme]}", timeout_s=timeout_s)

    async def add_surely(self, space: str, turns: Sequence[Turn]) -> int:
        """Sends turns until they are acknowledged, through kills; answers how many were there already."""
        while True:
            try:
                async with self.client(timeout_s=5.0) as client:
                    added = await client.add_turns(space, turns)
                return sum(result.duplicate for result in added.results)
            except MemdockError as error:
                if error.reason not in ("ADAPTER_UNREACHABLE", "DEADLINE_EXCEEDED", "ADAPTER_TIMEOUT"):
                    raise
                await asyncio.sleep(0.05)

    def stored(self, space: str) -> list[tuple[str, str]]:
        """Each half that the store holds with its turn id, in the order of writing."""
        with sqlite3.connect(self._folder / "store.db") as store:
            rows = store.execute("SELECT turn_id, half FROM halves WHERE space = ? ORDER BY n", (space,)).fetchall()
        store.close()
        return rows
