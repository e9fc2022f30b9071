"""Clients: `connect_async(url)` for asyncio, `connect(url)` for everything else.

One client speaks to one system. Every method raises `memdock.errors.MemdockError` and nothing else for what the service
or the network does; a call is tried again where that is safe and may help (see `memdock.retrying`).
"""

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Self

from memdock import convert, read_answers
from memdock.retrying import Retrying
from memdock.service import METHODS, Call, Service
from memdock.tls import Tls
from memdock.transport import Endpoint, Transport, open_transport
from memdock.types import (
    Added,
    Description,
    Flushed,
    Forgotten,
    Memory,
    Query,
    ResetDone,
    Retrieved,
    Selection,
    SystemSummary,
    Turn,
    TurnRecord,
)
from memdock.v1 import memory_pb2 as pb

DEFAULT_TIMEOUT_S = 60.0
LONGEST_WAIT_S = 30.0
FLUSH_SHARE = 0.9
"""A server cuts Flush's wait to 95 % of the call's deadline; asking for less leaves the answer time to travel."""


class AsyncClient:
    """The protocol as coroutines over any `Service`, for one system; `timeout_s` is the deadline of each call."""

    def __init__(self, service: Service, *, system: str = "", timeout_s: float = DEFAULT_TIMEOUT_S) -> None:
        self._service = service
        self._system = system
        self._timeout_s = timeout_s

    async def describe(self) -> Description:
        """What is behind the address: versions, features, limits, models, the digest of its configuration."""
        return read_answers.description(await self._call("Describe", pb.DescribeRequest(system=self._system)))

    async def list_systems(self) -> tuple[SystemSummary, ...]:
        """The systems behind a gateway that the key may use."""
        return read_answers.systems(await self._call("ListSystems", pb.ListSystemsRequest()))

    async def add_turns(self, space_id: str, turns: Sequence[Turn]) -> Added:
        """Sends turns in order; all are accepted or none. Sending the same turns again is safe."""
        messages = [convert.wire_turn(turn, f"turns[{index}].") for index, turn in enumerate(turns)]
        request = pb.AddTurnsRequest(system=self._system, space_id=space_id, turns=messages)
        return read_answers.added(await self._call("AddTurns", request))

    async def flush(self, space_id: str, *, timeout_s: float = 300.0) -> Flushed:
        """Waits until every turn accepted before has left PENDING, at most `timeout_s`: then `done` is false."""
        ends = time.monotonic() + timeout_s
        while True:
            left_s = max(0.0, ends - time.monotonic())
            flushed = await self.flush_once(space_id, timeout_s=left_s)
            if flushed.done or time.monotonic() >= ends:
                return flushed

    async def flush_once(self, space_id: str, *, timeout_s: float = LONGEST_WAIT_S) -> Flushed:
        """One call of Flush, cut to what the server and the deadline of a call allow."""
        wait_s = min(timeout_s, LONGEST_WAIT_S, FLUSH_SHARE * self._timeout_s)
        request = pb.FlushRequest(system=self._system, space_id=space_id, timeout=convert.wire_duration(wait_s))
        return read_answers.flushed(await self._call("Flush", request))

    async def retrieve(
        self,
        space_id: str,
        query: str,
        *,
        top_k: int | None = None,
        reference_time: datetime | None = None,
        time_zone: str = "",
        session_ids: Sequence[str] = (),
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Retrieved:
        """The memories that fit, best first. `reference_time` is the question's "now"; `until` is exclusive."""
        asked = Query(
            text=query,
            top_k=convert.DEFAULT_TOP_K if top_k is None else top_k,
            reference_time=reference_time,
            time_zone=time_zone,
            session_ids=tuple(session_ids),
            since=since,
            until=until,
        )
        request = convert.wire_query(asked, system=self._system, space_id=space_id)
        return read_answers.retrieved(await self._call("Retrieve", request))

    async def forget(
        self,
        space_id: str,
        *,
        memory_ids: Sequence[str] = (),
        turn_ids: Sequence[str] = (),
        session_ids: Sequence[str] = (),
        dry_run: bool = False,
        request_id: str = "",
    ) -> Forgotten:
        """Erases what exactly one of the three lists names; `dry_run` tells what would go."""
        selection = Selection(memory_ids=tuple(memory_ids), turn_ids=tuple(turn_ids), session_ids=tuple(session_ids))
        request = pb.ForgetRequest(
            system=self._system,
            space_id=space_id,
            selector=convert.wire_selection(selection),
            dry_run=dry_run,
            request_id=request_id,
        )
        return read_answers.forgotten(await self._call("Forget", request))

    async def reset(self, space_id: str, *, request_id: str = "") -> ResetDone:
        """Makes the space as if never used."""
        request = pb.ResetRequest(system=self._system, space_id=space_id, request_id=request_id)
        return read_answers.reset_done(await self._call("Reset", request))

    async def list_turns(self, space_id: str, *, page_size: int = 0) -> AsyncIterator[TurnRecord]:
        """Every turn of the space in acceptance order, page by page."""
        request = pb.ListTurnsRequest(system=self._system, space_id=space_id, page_size=page_size)
        async for page in self._pages("ListTurns", request):
            for record in read_answers.records(page):
                yield record

    async def list_memories(self, space_id: str, *, page_size: int = 0) -> AsyncIterator[Memory]:
        """Every memory of the space, page by page, where the system can list them."""
        request = pb.ListMemoriesRequest(system=self._system, space_id=space_id, page_size=page_size)
        async for page in self._pages("ListMemories", request):
            for memory in read_answers.memories(page):
                yield memory

    async def _pages(self, method: str, request: Any) -> AsyncIterator[Any]:
        while True:
            page = await self._call(method, request)
            yield page
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    async def _call(self, method: str, request: Any) -> Any:
        call = Call(deadline=time.monotonic() + self._timeout_s)
        return await self._service.call(METHODS[method], request, call)


class ConnectedClient(AsyncClient):
    """An `AsyncClient` that owns its transport: `async with connect_async(...) as client`."""

    def __init__(self, transport: Transport, *, system: str, timeout_s: float) -> None:
        super().__init__(Retrying(transport), system=system, timeout_s=timeout_s)
        self._transport = transport

    async def check_ready(self) -> None:
        """Returns when the service says that it can serve, which it says to everybody; else `UnavailableError`."""
        await self._transport.check_ready(self._timeout_s)

    async def close(self) -> None:
        """Closes the connection."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def connect_async(
    url: str,
    *,
    system: str = "",
    key: str = "",
    timeout_s: float = DEFAULT_TIMEOUT_S,
    tls: Tls | None = None,
    headers: Mapping[str, str] | None = None,
    threaded: bool = False,
) -> ConnectedClient:
    """A client of the address, inside a running event loop; the connection is made by the first call.

    `url`: `grpc://host:port`, `grpcs://`, `http://host:port[/prefix]`, `https://`. `system`: empty for a lone server.
    `key`: the bearer key. `threaded`: where another event loop of the process uses gRPC too. Raises
    `ConfigurationError` for an address, a key or TLS files that cannot be used.
    """
    endpoint = Endpoint(url=url, credential=key, tls=tls, headers=headers or {})
    return ConnectedClient(open_transport(endpoint, threaded=threaded), system=system, timeout_s=timeout_s)
