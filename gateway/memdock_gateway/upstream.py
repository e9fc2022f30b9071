"""One system behind the gateway: its transport, its lane, its deadline and the names of its spaces."""

import asyncio
import re
import time
from typing import Any

from memdock.errors import (
    DeadlineExceededError,
    MemdockError,
    NotFoundError,
    PermissionDeniedError,
    UnauthenticatedError,
    error,
)
from memdock.retrying import as_one_erasure
from memdock.service import Call, Method, Service
from memdock_gateway.answers import check_answer, protocol_error
from memdock_gateway.exchange import Exchange
from memdock_gateway.lanes import Lane
from memdock_gateway.retry import pause_s
from memdock_gateway.space_key import SpaceNames

# Waiting costs a system next to nothing; the bound only keeps a mistake from piling up without end.
MAX_WAITING_FLUSHES = 4096
_REASON = re.compile(r"[A-Z][A-Z0-9_]{0,62}")


class Upstream:
    """Passes calls on to one system and answers with what it says, checked."""

    def __init__(
        self, name: str, service: Service, names: SpaceNames, *, deadline_s: float, concurrency: int, queue: int
    ) -> None:
        self.name = name
        self.names = names
        self.lane = Lane(concurrency=concurrency, queue=queue)
        self._flushes = Lane(concurrency=MAX_WAITING_FLUSHES, queue=0)
        self._service = service
        self.deadline_s = deadline_s

    async def call(self, method: Method, request: Any, call: Call, exchange: Exchange) -> Any:
        """The checked answer to a request whose `system` and `space_id` are already the adapter's.

        Tried again where `retry` says so; between tries no place in the lane is held.
        """
        lane = self._flushes if method.name == "Flush" else self.lane
        onward = self._onward(call, exchange)
        request = as_one_erasure(request)
        while True:
            if not lane.try_enter():
                await self._wait(lane, onward, exchange)
            sent_s = time.perf_counter()
            try:
                answer = await self._service.call(method, request, onward)
                check_answer(self.name, request, answer)
                return answer
            except MemdockError as problem:
                pause = pause_s(problem, exchange.retries, onward.left_s())
                if pause is None:
                    problem.retried = problem.retried or exchange.retries > 0
                    raise self._told(problem, onward.deadline != call.deadline) from None
            finally:
                exchange.upstream_s += time.perf_counter() - sent_s
                lane.leave()
            exchange.retries += 1
            await asyncio.sleep(pause)

    def _onward(self, call: Call, exchange: Exchange) -> Call:
        own = time.monotonic() + self.deadline_s
        deadline = own if call.deadline is None else min(own, call.deadline)
        return Call(request_id=call.request_id, deadline=deadline, trace_parent=exchange.trace_parent)

    async def _wait(self, lane: Lane, call: Call, exchange: Exchange) -> None:
        came_s = time.perf_counter()
        try:
            await lane.enter(call.left_s())
        finally:
            exchange.queue_s += time.perf_counter() - came_s

    def _told(self, problem: MemdockError, own_deadline: bool) -> MemdockError:
        """What the caller may know: an adapter speaks for its system, never for the gateway."""
        match problem:
            case UnauthenticatedError() | PermissionDeniedError():
                return protocol_error(self.name, "it refused the gateway's own credential; see token_file there")
            case NotFoundError():
                return protocol_error(self.name, "nothing of the protocol is served at its address")
            case DeadlineExceededError() if own_deadline and problem.reason == "DEADLINE_EXCEEDED":
                return error("ADAPTER_TIMEOUT", f"{self.name} did not answer within {self.deadline_s:g} s")
            case _ if not _REASON.fullmatch(problem.reason):  # it goes into logs, traces and the audit
                return protocol_error(self.name, "its error has a reason that is no word of capitals")
            case _:
                return problem
