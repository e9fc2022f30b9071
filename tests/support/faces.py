"""A scripted service behind both faces, each on a free port."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from memdock.face import CheckReady, Served, admit_all, always_ready
from memdock.face_grpc import grpc_server
from memdock.face_http import HttpFace
from memdock.http_server import HttpServer
from memdock.service import Call, Method, Service
from memdock.tls import Tls
from memdock.types import Limits

Answer = Callable[[Method, Any, Call], Awaitable[Any]]


async def _empty_answer(method: Method, request: Any, call: Call) -> Any:
    return method.response()


class ScriptedService:
    """Answers as the test says, and remembers what reached it."""

    def __init__(self, answer: Answer = _empty_answer) -> None:
        self.answer = answer
        self.seen: list[tuple[str, Any, Call]] = []

    async def call(self, method: Method, request: Any, call: Call) -> Any:
        self.seen.append((method.name, request, call))
        return await self.answer(method, request, call)

    def clear(self) -> None:
        """As it was at first."""
        self.seen.clear()
        self.answer = _empty_answer


async def until(holds: Callable[[], object], timeout_s: float = 5.0) -> None:
    """Returns when it holds."""
    async with asyncio.timeout(timeout_s):
        while not holds():  # noqa: ASYNC110  what is waited for has no event
            await asyncio.sleep(0.005)


@dataclass(frozen=True, slots=True)
class Faces:
    """Where the two faces are, and what they told their observer."""

    grpc_port: int
    http_port: int
    told: list[Served]

    @property
    def grpc(self) -> str:
        return f"grpc://127.0.0.1:{self.grpc_port}"

    @property
    def http(self) -> str:
        return f"http://127.0.0.1:{self.http_port}"

    @property
    def urls(self) -> tuple[str, str]:
        return self.grpc, self.http


@asynccontextmanager
async def faces_of(
    service: Service,
    *,
    limits: Limits | None = None,
    tls: Tls | None = None,
    check_ready: CheckReady = always_ready,
    **options: Any,
) -> AsyncIterator[Faces]:
    """Both faces over a service, with TLS where it is given; `options`: `admit` for both, `metrics` for HTTP."""
    told: list[Served] = []
    admit = options.get("admit", admit_all)
    over_grpc, grpc_port = grpc_server(
        service, "127.0.0.1:0", limits=limits, tls=tls, admit=admit, check_ready=check_ready, observe=told.append
    )
    face = HttpFace(
        service,
        limits=limits,
        admit=admit,
        check_ready=check_ready,
        metrics=options.get("metrics"),
        observe=told.append,
    )
    over_http = HttpServer(face, "127.0.0.1:0", tls=tls)
    await over_grpc.start()
    await over_http.start()
    try:
        yield Faces(grpc_port, over_http.port, told)
    finally:
        await over_grpc.stop(0)
        await over_http.stop()
