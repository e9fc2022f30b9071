"""The client for code without asyncio: the same methods, run on an event loop in a thread of the client's own."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from datetime import datetime
from types import TracebackType
from typing import Any, Self, TypeVar

from memdock.client import DEFAULT_TIMEOUT_S, LONGEST_WAIT_S, ConnectedClient, connect_async
from memdock.tls import Tls
from memdock.types import (
    Added,
    Description,
    Flushed,
    Forgotten,
    Memory,
    ResetDone,
    Retrieved,
    SystemSummary,
    Turn,
    TurnRecord,
)

T = TypeVar("T")


class _LoopThread:
    """An event loop in a daemon thread; usable from any thread, but not from the loop itself."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="memdock-client", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine; an interrupt of the waiting thread cancels it. A stopped loop: `RuntimeError`."""
        try:
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError:
            work.close()
            raise closed() from None
        try:
            return future.result()
        except CancelledError:
            raise closed() from None
        except BaseException:
            future.cancel()
            raise

    def iterate(self, items: AsyncIterator[T]) -> Iterator[T]:
        """The items one by one."""
        end = object()

        async def following() -> Any:
            return await anext(items, end)

        while (item := self.run(following())) is not end:
            yield item

    def stop(self) -> None:
        """Ends the loop and its thread; what other threads still wait for is cancelled."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _serve(self) -> None:
        self._loop.run_forever()
        self._loop.run_until_complete(_end_others())
        self._loop.close()


async def _end_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()


def closed() -> RuntimeError:
    """The error of a call on a client that is closed, or that is closed during the call."""
    return RuntimeError("the client is closed; open another one")


class Client:
    """`memdock.client.AsyncClient`, blocking; safe to use from several threads. `with connect(...) as client`."""

    def __init__(self, open_client: Callable[[], ConnectedClient]) -> None:
        async def opening() -> ConnectedClient:
            return open_client()

        self._thread = _LoopThread()
        try:
            self._client = self._thread.run(opening())
        except BaseException:
            self._thread.stop()
            raise
        self._closed = False

    def check_ready(self) -> None:
        """See `ConnectedClient.check_ready`."""
        self._thread.run(self._client.check_ready())

    def describe(self) -> Description:
        """See `AsyncClient.describe`."""
        return self._thread.run(self._client.describe())

    def list_systems(self) -> tuple[SystemSummary, ...]:
        """See `AsyncClient.list_systems`."""
        return self._thread.run(self._client.list_systems())

    def add_turns(self, space_id: str, turns: Sequence[Turn]) -> Added:
        """See `AsyncClient.add_turns`."""
        return self._thread.run(self._client.add_turns(space_id, turns))

    def flush(self, space_id: str, *, timeout_s: float = 300.0) -> Flushed:
        """See `AsyncClient.flush`."""
        return self._thread.run(self._client.flush(space_id, timeout_s=timeout_s))

    def flush_once(self, space_id: str, *, timeout_s: float = LONGEST_WAIT_S) -> Flushed:
        """See `AsyncClient.flush_once`."""
        return self._thread.run(self._client.flush_once(space_id, timeout_s=timeout_s))

    def retrieve(
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
        """See `AsyncClient.retrieve`."""
        work = self._client.retrieve(
            space_id,
            query,
            top_k=top_k,
            reference_time=reference_time,
            time_zone=time_zone,
            session_ids=session_ids,
            since=since,
            until=until,
        )
        return self._thread.run(work)

    def forget(
        self,
        space_id: str,
        *,
        memory_ids: Sequence[str] = (),
        turn_ids: Sequence[str] = (),
        session_ids: Sequence[str] = (),
        dry_run: bool = False,
        request_id: str = "",
    ) -> Forgotten:
        """See `AsyncClient.forget`."""
        work = self._client.forget(
            space_id,
            memory_ids=memory_ids,
            turn_ids=turn_ids,
            session_ids=session_ids,
            dry_run=dry_run,
            request_id=request_id,
        )
        return self._thread.run(work)

    def reset(self, space_id: str, *, request_id: str = "") -> ResetDone:
        """See `AsyncClient.reset`."""
        return self._thread.run(self._client.reset(space_id, request_id=request_id))

    def list_turns(self, space_id: str, *, page_size: int = 0) -> Iterator[TurnRecord]:
        """See `AsyncClient.list_turns`."""
        return self._thread.iterate(self._client.list_turns(space_id, page_size=page_size))

    def list_memories(self, space_id: str, *, page_size: int = 0) -> Iterator[Memory]:
        """See `AsyncClient.list_memories`."""
        return self._thread.iterate(self._client.list_memories(space_id, page_size=page_size))

    def close(self) -> None:
        """Closes the connection and ends the thread; harmless when closed already."""
        if not self._closed:
            self._closed = True
            self._thread.run(self._client.close())
            self._thread.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def connect(
    url: str,
    *,
    system: str = "",
    key: str = "",
    timeout_s: float = DEFAULT_TIMEOUT_S,
    tls: Tls | None = None,
    headers: Mapping[str, str] | None = None,
) -> Client:
    """A blocking client of the address; parameters and errors as of `memdock.client.connect_async`."""

    def open_client() -> ConnectedClient:
        return connect_async(url, system=system, key=key, timeout_s=timeout_s, tls=tls, headers=headers, threaded=True)

    return Client(open_client)
