"""`Ledgered`: a memory system with everything that the protocol promises around it."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from memdock.engine.admission import Admitter
from memdock.engine.background import Background
from memdock.engine.barrier import Barrier
from memdock.engine.erasing import Erasing
from memdock.engine.erasure import Eraser
from memdock.engine.features import describe
from memdock.engine.reading import Reader
from memdock.engine.spaces import Spaces
from memdock.engine.spending import Spending
from memdock.engine.worker import Worker
from memdock.errors import DeadlineExceededError, NotFoundError, UnavailableError, UnimplementedError
from memdock.ledger import Ledger
from memdock.log import log_fault
from memdock.service import Call, Method
from memdock.system import HasLifecycle, HasReadiness, System
from memdock.types import Limits
from memdock.v1 import memory_pb2 as pb

Handler = Callable[[Any, Call], Awaitable[Any]]


class Ledgered:
    """A `Service` over a memory system and a ledger.

    `parallel_spaces`: how many spaces are worked on at once; `batch_turns`: the most turns that one `add` gets;
    `limits`: the system's own unless given. Requests must have been checked (`memdock.check`; the faces do it).
    `start` first; `drain`, then `close`, at the end.
    """

    def __init__(
        self,
        system: System,
        ledger: Ledger,
        *,
        parallel_spaces: int = 16,
        batch_turns: int = 256,
        limits: Limits | None = None,
    ) -> None:
        self.limits = limits or system.info.limits
        self._system = system
        self._ledger = ledger
        self._spaces = spaces = Spaces()
        self._background = background = Background()
        spending = Spending(ledger, background)
        self._worker = worker = Worker(
            system, ledger, spending, background, parallel_spaces=parallel_spaces, batch_turns=batch_turns
        )
        self._erasing = erasing = Erasing(system, ledger, worker, spending, background)
        reader = Reader(system, ledger, spaces, spending)
        eraser = Eraser(system, ledger, spaces, erasing, spending, background)
        self._handlers: dict[str, Handler] = {
            "Describe": self._describe,
            "AddTurns": Admitter(ledger, spaces, worker, background).add_turns,
            "Flush": Barrier(ledger, spaces, worker, spending, background, self.limits).flush,
            "Retrieve": reader.retrieve,
            "ListTurns": reader.list_turns,
            "ListMemories": reader.list_memories,
            "Forget": eraser.forget,
            "Reset": eraser.reset,
        }
        self._ends = contextlib.AsyncExitStack()
        self._inside = 0
        self._draining = False
        self._empty = asyncio.Event()
        self._empty.set()

    async def start(self) -> None:
        """Opens the ledger, so that no other process touches the system's store; then the system; then old work.

        What an earlier process left is gone on with: erasures first, then pending turns.
        """
        await self._ledger.open()
        async with contextlib.AsyncExitStack() as ends:
            ends.push_async_callback(self._ledger.close)
            if isinstance(self._system, HasLifecycle):
                await self._system.start()
                ends.push_async_callback(self._system.close)
            for name in await self._ledger.busy_spaces():
                space = self._spaces.at(name)
                await self._erasing.resume(space)
                self._worker.wake(space)
            self._ends = ends.pop_all()

    async def call(self, method: Method, request: Any, call: Call) -> Any:
        """Answers a call of `MemoryService`; past its deadline it is DEADLINE_EXCEEDED and its work is cancelled."""
        handler = self._handlers.get(method.name)
        if handler is None:
            raise UnimplementedError("FEATURE_UNSUPPORTED", f"{method.name} is a call of gateways")
        if self._draining:
            raise UnavailableError("DRAINING", "the server is ending; call its successor", retry_after_s=1.0)
        self._check_name(request.system)
        self._inside += 1
        self._empty.clear()
        try:
            async with asyncio.timeout(call.left_s()) as deadline:
                return await handler(request, call)
        except TimeoutError as fault:
            if not deadline.expired():
                raise
            message = f"{method.name} did not end before the caller's deadline"
            raise DeadlineExceededError("DEADLINE_EXCEEDED", message) from fault
        finally:
            self._inside -= 1
            if not self._inside:
                self._empty.set()

    async def check_ready(self) -> Mapping[str, bool]:
        """The system by name; raises when the server drains, or when the ledger or the system cannot serve."""
        if self._draining:
            raise UnavailableError("DRAINING", "the server is ending")
        await self._ledger.check_ready()
        if isinstance(self._system, HasReadiness):
            await self._system.check_ready()
        return {self._system.info.name: True}

    async def drain(self, timeout_s: float) -> None:
        """Refuses new calls and lets the calls inside, the batches in flight and the erasures end, for `timeout_s`.

        Waiting Flushes answer at once with the truth. What is still pending stays in the ledger for the next start.
        """
        self._draining = True
        self._background.stopping.set()
        self._spaces.notify_all()
        try:
            async with asyncio.timeout(timeout_s):
                await self._empty.wait()
                await self._background.join()
        except TimeoutError as fault:
            log_fault("drain_incomplete", fault)

    async def close(self) -> None:
        """Closes what `start` opened: the system, then the ledger."""
        await self._ends.aclose()

    async def _describe(self, request: pb.DescribeRequest, call: Call) -> pb.DescribeResponse:  # noqa: ARG002
        return describe(self._system.info, self.limits)

    def _check_name(self, name: str) -> None:
        own = self._system.info.name
        if name not in ("", own):
            raise NotFoundError("SYSTEM_NOT_FOUND", f"there is no system {name!r} here; this server is {own!r}")
