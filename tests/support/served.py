"""A toy behind the whole engine, spoken to without a network."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from memdock.client import AsyncClient
from memdock.engine import Ledgered
from memdock.errors import MemdockError
from memdock.sqlite_ledger import SqliteLedger
from memdock.system import System
from memdock.types import Turn, TurnState

SPACE = "space"


@asynccontextmanager
async def served(
    system: System, folder: Path, *, timeout_s: float = 20.0, **options: Any
) -> AsyncIterator[AsyncClient]:
    """A client of `system` with a ledger in `folder`; drains at the end."""
    service = Ledgered(system, SqliteLedger(folder / "ledger.db"), **options)
    await service.start()
    try:
        yield AsyncClient(service, timeout_s=timeout_s)
    finally:
        await service.drain(5.0)
        await service.close()


def turn(turn_id: str, text: str = "", session_id: str = "s1", **fields: Any) -> Turn:
    """A user's turn that says `hello` and its own id."""
    return Turn(turn_id=turn_id, session_id=session_id, role="user", text=text or f"hello {turn_id}", **fields)


def turns(*turn_ids: str) -> list[Turn]:
    """Several of them."""
    return [turn(turn_id) for turn_id in turn_ids]


async def states(client: AsyncClient, space: str = SPACE) -> dict[str, TurnState]:
    """What ListTurns says, in its order."""
    return {record.turn_id: record.state async for record in client.list_turns(space)}


async def found(client: AsyncClient, query: str = "hello", space: str = SPACE) -> set[str]:
    """The turns under the memories that Retrieve finds."""
    answer = await client.retrieve(space, query, top_k=100)
    return {source.turn_id for memory in answer.memories for source in memory.sources}


async def until(condition: Callable[[], bool], within_s: float = 5.0) -> None:
    """Waits for a condition; a time-out is an AssertionError."""
    try:
        async with asyncio.timeout(within_s):
            while not condition():  # noqa: ASYNC110 - a test looks from outside
                await asyncio.sleep(0.002)
    except TimeoutError:
        raise AssertionError("the condition was never met") from None


async def reason_of(work: Any) -> str:
    """The reason of the error that awaiting `work` raises."""
    try:
        await work
    except MemdockError as error:
        return error.reason
    raise AssertionError("no error was raised")
