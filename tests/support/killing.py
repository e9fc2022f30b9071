"""What the tests of kills share: whom to kill, a client that does not give up, and turns that can be told apart."""

import asyncio
import random
import re
from collections.abc import Awaitable, Callable
from typing import TypeVar

from memdock.client import AsyncClient
from memdock.errors import AbortedError, UnavailableError
from memdock.types import Memory, Turn, TurnRecord, TurnState
from support.whole_stack import HYBRID, WholeStack

T = TypeVar("T")

VICTIMS = ("adapter", "gateway", "postgres")
PATIENCE_S = 40.0


def kill(stack: WholeStack, victim: str) -> None:
    """kill -9 of one part, and its next start; returns when it has started."""
    if victim == "postgres":
        stack.kill_postgres()  # its adapters start it again
        return
    process = stack.gateway if victim == "gateway" else stack.adapters[HYBRID].process
    process.kill()
    process.start()


async def kill_soon(stack: WholeStack, victim: str, after_s: float) -> None:
    """The same after a while, without holding up the event loop."""
    await asyncio.sleep(after_s)
    await asyncio.to_thread(kill, stack, victim)


async def patiently(call: Callable[[], Awaitable[T]]) -> T:
    """Repeats a call for as long as nobody can answer it, or the work of an erasure goes on.

    Any other error is a fault of the server's: a kill may cost a caller time, and nothing else.
    """
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                return await call()
            except (UnavailableError, AbortedError) as problem:
                await asyncio.sleep(problem.retry_after_s or 0.1)


class Pair:
    """A question and its answer, with one word in each that stands nowhere else."""

    def __init__(self, space: str, number: int, rng: random.Random) -> None:
        self.turn_ids = (f"p{number}-u", f"p{number}-a")
        self.session_id = f"s{number // 8}"
        self.words = tuple(f"w{rng.getrandbits(64):016x}" for _ in range(2))
        roles = ("user", "assistant")
        texts = (f"in {space} I ask about {self.words[0]} again", f"what I know about it is {self.words[1]} and more")
        self.turns = tuple(
            Turn(turn_id=turn_id, session_id=self.session_id, role=role, text=text)
            for turn_id, role, text in zip(self.turn_ids, roles, texts, strict=True)
        )

    @property
    def memory_text(self) -> str:
        """The chunk that is made of both."""
        return "\n".join(f"{turn.role}: {turn.text}" for turn in self.turns)


async def listed_turns(client: AsyncClient, space: str) -> list[TurnRecord]:
    """All of ListTurns."""

    async def collect() -> list[TurnRecord]:
        return [record async for record in client.list_turns(space)]

    return await patiently(collect)


async def listed_memories(client: AsyncClient, space: str) -> list[Memory]:
    """All of ListMemories."""

    async def collect() -> list[Memory]:
        return [memory async for memory in client.list_memories(space)]

    return await patiently(collect)


async def check_whole(client: AsyncClient, space: str, pairs: list[Pair]) -> None:
    """After Flush: every turn there once, in order, searchable, and under exactly one memory."""
    flushed = await patiently(lambda: client.flush(space))
    assert flushed.done
    assert (flushed.pending, flushed.failed_count) == (0, 0), flushed.failed
    listed = await listed_turns(client, space)
    assert [record.turn_id for record in listed] == [turn_id for pair in pairs for turn_id in pair.turn_ids]
    assert {record.state for record in listed} == {TurnState.SEARCHABLE}
    memories = await listed_memories(client, space)
    assert [memory.text for memory in memories] == [pair.memory_text for pair in pairs]
    assert [record.memory_ids for record in listed] == [(each.memory_id,) for each in memories for _ in each.sources]


def words_in(texts: list[str]) -> set[str]:
    """The words of pairs that stand in texts."""
    return set(re.findall(r"\bw[0-9a-f]{16}\b", " ".join(texts)))
