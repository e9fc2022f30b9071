"""Serves a memory system: `run(serve(system, ledger))` is the heart of an adapter's `__main__`.

Both faces, health, the ledger and its promises, and an end by SIGTERM or SIGINT that loses nothing.
"""

import asyncio
import contextlib
import hmac
import json
import signal
import sys
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import structlog

from memdock.engine import Ledgered
from memdock.errors import MemdockError, UnauthenticatedError, sentence
from memdock.face import Admit, admit_all
from memdock.face_grpc import grpc_server
from memdock.face_http import HttpFace
from memdock.http_server import HttpServer
from memdock.ledger import Ledger
from memdock.log import set_up_logs
from memdock.service import Call, Method
from memdock.signals import told_to_end
from memdock.system import System
from memdock.tls import Tls
from memdock.types import Limits
from memdock.whole_file import write_whole

_log = structlog.get_logger("memdock")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """How a system is served.

    `grpc`, `http`: `host:port`, port 0 for a free one. `token`: the bearer token that each call must bear; empty: none.
    `port_file`: gets `{"grpc": port, "http": port}` once calls are taken. `drain_s`: how long the end waits for what is
    inside. `parallel_spaces`, `batch_turns` and `limits`: as for `Ledgered`.
    """

    grpc: str = "127.0.0.1:0"
    http: str = "127.0.0.1:0"
    token: str = ""
    tls: Tls | None = None
    port_file: Path | None = None
    drain_s: float = 25.0
    parallel_spaces: int = 16
    batch_turns: int = 256
    limits: Limits | None = None


class Server:
    """A served system: `async with Server(system, ledger) as server:` takes calls inside, and has drained after it."""

    def __init__(self, system: System, ledger: Ledger, options: ServeOptions | None = None) -> None:
        self._options = options or ServeOptions()
        self._ledgered = Ledgered(
            system,
            ledger,
            parallel_spaces=self._options.parallel_spaces,
            batch_turns=self._options.batch_turns,
            limits=self._options.limits,
        )
        self._ends = contextlib.AsyncExitStack()
        self.ports: Mapping[str, int] = {}
        """The bound port of each face, `grpc` and `http`."""

    async def start(self) -> None:
        """Opens everything, in the order that lets nothing be reached before it works."""
        async with contextlib.AsyncExitStack() as ends:
            await self._ledgered.start()
            ends.push_async_callback(self._ledgered.close)
            try:
                self.ports = await self._open_faces(ends)
                if self._options.port_file is not None:
                    write_whole(self._options.port_file, json.dumps(self.ports))
            finally:  # also when it fails: old work has begun already
                ends.push_async_callback(self._ledgered.drain, self._options.drain_s)
            self._ends = ends.pop_all()
        _log.info("serving", **self.ports)

    async def stop(self) -> None:
        """Refuses new calls, lets what is inside end, then closes the faces, the system and the ledger."""
        _log.info("draining")
        await self._ends.aclose()
        _log.info("stopped")

    async def _open_faces(self, ends: contextlib.AsyncExitStack) -> Mapping[str, int]:
        limits, check_ready, tls = self._ledgered.limits, self._ledgered.check_ready, self._options.tls
        admit = require_token(self._options.token) if self._options.token else admit_all
        over_grpc, grpc_port = grpc_server(
            self._ledgered, self._options.grpc, limits=limits, tls=tls, admit=admit, check_ready=check_ready
        )
        await over_grpc.start()
        ends.push_async_callback(over_grpc.stop, 1.0)
        face = HttpFace(self._ledgered, limits=limits, admit=admit, check_ready=check_ready)
        over_http = HttpServer(face, self._options.http, tls=tls)
        ends.push_async_callback(over_http.stop)
        await over_http.start()
        return {"grpc": grpc_port, "http": over_http.port}

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()


async def serve(system: System, ledger: Ledger, options: ServeOptions | None = None) -> None:
    """Serves until SIGTERM or SIGINT, then drains; a second signal ends at once, which loses nothing either."""
    ending = told_to_end()
    async with Server(system, ledger, options):
        await ending.wait()


def run(serving: Coroutine[Any, Any, None]) -> None:
    """Runs `serve(...)` on uvloop where it is installed, with logs as JSON lines on standard error.

    What a user must know is one sentence and exit code 1.
    """
    set_up_logs(sys.stderr.buffer)
    try:
        import uvloop
    except ImportError:
        loop_factory = None
    else:
        loop_factory = uvloop.new_event_loop
    try:
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            runner.run(_cancelled_by_signals(serving))
    except (asyncio.CancelledError, KeyboardInterrupt):
        sys.exit("stopped while starting")
    except (MemdockError, OSError, ValueError) as problem:
        sys.exit(f"cannot serve: {sentence(problem)}")


async def _cancelled_by_signals(serving: Coroutine[Any, Any, None]) -> None:
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGTERM, signal.SIGINT):  # `serve` puts its own in their place
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    await serving


def require_token(token: str) -> Admit:
    """Admits callers that bear the token."""

    async def admit(method: Method, path: Mapping[str, str], call: Call) -> None:  # noqa: ARG001
        if not call.credential:
            raise UnauthenticatedError("CREDENTIAL_MISSING", "send the header Authorization: Bearer <token>")
        if not hmac.compare_digest(call.credential.encode(), token.encode()):
            raise UnauthenticatedError("CREDENTIAL_INVALID", "the bearer token is not the one that is expected here")

    return admit
