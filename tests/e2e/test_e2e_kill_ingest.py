"""kill -9 in the middle of an ingest, again and again: no turn lost, none twice, none unknown."""

import asyncio
import random
from collections.abc import Sequence

import pytest

from memdock.client import AsyncClient, connect_async
from support.killing import VICTIMS, Pair, check_whole, kill_soon, listed_turns, patiently
from support.whole_stack import HYBRID, WholeStack


class Writer:
    """Fills one space, a pair a request and each request until it is answered, for as long as `over` is not set."""

    def __init__(self, client: AsyncClient, space: str, seed: int) -> None:
        self.client = client
        self.space = space
        self.sent: list[Pair] = []
        self.acknowledged = 0
        self._rng = random.Random(f"{space} {seed}")

    async def write(self, over: asyncio.Event) -> None:
        """One pair after the other."""
        while not over.is_set():
            pair = Pair(self.space, len(self.sent), self._rng)
            self.sent.append(pair)
            added = await patiently(lambda turns=pair.turns: self.client.add_turns(self.space, turns))  # type: ignore[misc]
            assert tuple(result.turn_id for result in added.results) == pair.turn_ids
            self.acknowledged = len(self.sent)
            await asyncio.sleep(self._rng.uniform(0.0, 0.1))

    async def check_known(self) -> None:
        """What was acknowledged is listed, in its order."""
        wanted = [turn_id for pair in self.sent[: self.acknowledged] for turn_id in pair.turn_ids]
        listed = [record.turn_id for record in await listed_turns(self.client, self.space)]
        assert listed[: len(wanted)] == wanted


async def ingest_under_kills(
    stack: WholeStack, victims: Sequence[str], *, spaces: int, seed: int, longest_pause_s: float
) -> None:
    """Kills each of `victims` in turn at random moments while all spaces are written, then looks at every space."""
    rng = random.Random(seed)
    over = asyncio.Event()
    clients = [
        connect_async(url, system=HYBRID, key=stack.key, timeout_s=10) for url in (stack.grpc_url, stack.http_url)
    ]
    try:
        name = f"kill-{'-'.join(sorted(set(victims)))}-{seed}"
        writers = [Writer(clients[number % 2], f"{name}-{number}", seed) for number in range(spaces)]
        async with asyncio.TaskGroup() as tasks:
            for writer in writers:
                tasks.create_task(writer.write(over))
            for victim in victims:
                await kill_soon(stack, victim, rng.uniform(0.1, longest_pause_s))
                await asyncio.gather(*(writer.check_known() for writer in writers))
            await asyncio.sleep(0.3)
            over.set()
        assert min(len(writer.sent) for writer in writers) > 2 * len(victims)
        await asyncio.gather(*(check_whole(writer.client, writer.space, writer.sent) for writer in writers))
    finally:
        for client in clients:
            await client.close()


@pytest.mark.parametrize(("victim", "kills"), [("adapter", 2), ("gateway", 2), ("postgres", 1)])
async def test_no_turn_is_lost_or_doubled(stack: WholeStack, victim: str, kills: int) -> None:
    await ingest_under_kills(stack, [victim] * kills, spaces=4, seed=1, longest_pause_s=0.6)


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("seed", [2, 3, 4])
async def test_no_turn_is_lost_or_doubled_by_many_kills(stack: WholeStack, seed: int) -> None:
    victims = list(VICTIMS) * 4
    random.Random(seed).shuffle(victims)
    await ingest_under_kills(stack, victims, spaces=12, seed=seed, longest_pause_s=2.0)
