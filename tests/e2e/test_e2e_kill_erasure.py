"""kill -9 in the middle of Forget and of Reset: repeated after the restart they are whole, and nothing comes back."""

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest

from memdock.client import AsyncClient, connect_async
from memdock.types import Forgotten, Memory, ResetDone, TurnRecord, TurnState
from support.killing import VICTIMS, Pair, check_whole, kill_soon, listed_memories, listed_turns, patiently, words_in
from support.whole_stack import HYBRID, WholeStack

PAIRS = 30


class Scene:
    """A space that is half searchable and half pending, and a neighbour that nobody may touch."""

    def __init__(self, stack: WholeStack, client: AsyncClient, space: str) -> None:
        self.stack = stack
        self.client = client
        self.space = space
        self.neighbour = f"{space}-neighbour"
        rng = random.Random(space)
        self.pairs = [Pair(space, number, rng) for number in range(PAIRS)]
        self.neighbours = [Pair(self.neighbour, number, rng) for number in range(4)]
        self._rng = rng
        self._before: tuple[list[TurnRecord], list[Memory]] = ([], [])

    async def fill(self) -> None:
        """Leaves the second half of the turns in flight."""
        await self._add(self.neighbour, self.neighbours)
        await check_whole(self.client, self.neighbour, self.neighbours)
        self._before = await self._of_neighbour()
        await self._add(self.space, self.pairs[: PAIRS // 2])
        await patiently(lambda: self.client.flush(self.space))
        await self._add(self.space, self.pairs[PAIRS // 2 :])

    async def under_kill(self, victim: str, call: Callable[[], Awaitable[object]]) -> None:
        """Makes the call, kills at a moment of it, and does not look at what it answered."""
        working = asyncio.create_task(patiently(call))
        await kill_soon(self.stack, victim, self._rng.uniform(0.0, 0.05))
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)

    async def check_gone(self, pairs_words: list[str]) -> None:
        """The words are in no answer and in no table, and the neighbour is as it was."""
        found = await patiently(lambda: self.client.retrieve(self.space, " ".join(pairs_words[:20]), top_k=100))
        texts = [memory.text for memory in (*found.memories, *await listed_memories(self.client, self.space))]
        assert words_in(texts).isdisjoint(pairs_words)
        assert await asyncio.to_thread(self.stack.rows_that_hold, pairs_words) == []
        assert await asyncio.to_thread(self.stack.rows_that_hold, [self.neighbours[0].words[0]])
        assert await self._of_neighbour() == self._before

    async def send_again(self) -> None:
        """A late retry of everything."""
        await self._add(self.space, self.pairs)
        assert (await patiently(lambda: self.client.flush(self.space))).done

    async def _add(self, space: str, pairs: list[Pair]) -> None:
        for pair in pairs:
            await patiently(lambda turns=pair.turns: self.client.add_turns(space, turns))  # type: ignore[misc]

    async def _of_neighbour(self) -> tuple[list[TurnRecord], list[Memory]]:
        return await listed_turns(self.client, self.neighbour), await listed_memories(self.client, self.neighbour)


async def forget_under_kill(stack: WholeStack, victim: str, space: str) -> None:
    """Forgets the first turn of every second pair; its other half stays findable."""
    async with connect_async(stack.grpc_url, system=HYBRID, key=stack.key, timeout_s=10) as client:
        scene = Scene(stack, client, space)
        await scene.fill()
        touched, whole = scene.pairs[::2], scene.pairs[1::2]
        turn_ids = [pair.turn_ids[0] for pair in touched]

        async def forget() -> Forgotten:
            return await client.forget(space, turn_ids=turn_ids, request_id="once")

        await scene.under_kill(victim, forget)
        first = await patiently(forget)
        assert set(first.erased_turn_ids) == set(turn_ids)
        assert [(each.items, each.verified) for each in first.residual] == [(0, True)] * len(first.residual)
        await scene.send_again()
        await scene.check_gone([pair.words[0] for pair in touched])
        repeated = await patiently(forget)
        assert (set(repeated.erased_turn_ids), repeated.residual) == (set(turn_ids), first.residual)
        states = {record.turn_id: record.state for record in await listed_turns(client, space)}
        assert {states.pop(turn_id) for turn_id in turn_ids} == {TurnState.FORGOTTEN}
        assert set(states.values()) == {TurnState.SEARCHABLE}
        kept = [pair.turns[1].text for pair in touched] + [pair.memory_text for pair in whole]
        texts = [memory.text.removeprefix("assistant: ") for memory in await listed_memories(client, space)]
        assert sorted(texts) == sorted(kept)


async def reset_under_kill(stack: WholeStack, victim: str, space: str) -> None:
    """Resets a space with work in flight; its turns are welcome again afterwards."""
    async with connect_async(stack.http_url, system=HYBRID, key=stack.key, timeout_s=10) as client:
        scene = Scene(stack, client, space)
        await scene.fill()

        async def reset() -> ResetDone:
            return await client.reset(space, request_id="once")

        await scene.under_kill(victim, reset)
        first = await patiently(reset)
        assert [(each.items, each.verified) for each in first.residual] == [(0, True)] * len(first.residual)
        assert await listed_turns(client, space) == []
        await scene.check_gone([word for pair in scene.pairs for word in pair.words])
        await scene.send_again()
        await check_whole(client, space, scene.pairs)


@pytest.mark.parametrize("victim", ["adapter", "gateway"])
async def test_forgotten_turns_stay_forgotten(stack: WholeStack, victim: str) -> None:
    await forget_under_kill(stack, victim, f"forget-{victim}-0")


@pytest.mark.parametrize("victim", ["adapter", "postgres"])
async def test_a_reset_space_stays_empty(stack: WholeStack, victim: str) -> None:
    await reset_under_kill(stack, victim, f"reset-{victim}-0")


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("victim", VICTIMS)
async def test_many_erasures_are_whole(stack: WholeStack, victim: str) -> None:
    for number in range(1, 6):
        await forget_under_kill(stack, victim, f"forget-{victim}-{number}")
        await reset_under_kill(stack, victim, f"reset-{victim}-{number}")
