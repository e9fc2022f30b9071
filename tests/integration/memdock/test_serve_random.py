"""Random lives of spaces through kills: after each flush the store holds what a simple model says, and nothing else."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from memdock.client import AsyncClient
from memdock.errors import MemdockError
from memdock.types import TurnState
from support.served import states, turn
from support.toy_process import ToyProcess

_PASSING = ("ADAPTER_UNREACHABLE", "DEADLINE_EXCEEDED", "ADAPTER_TIMEOUT", "IN_PROGRESS", "DRAINING")

Answer = TypeVar("Answer")


class Life:
    """One space, used by one client that never gives up, beside a model of what it must hold."""

    def __init__(self, server: ToyProcess, space: str, chance: random.Random) -> None:
        self._server = server
        self._space = space
        self._chance = chance
        self._sent = 0
        self._asked = 0
        self.held: list[str] = []
        self.forgotten: set[str] = set()

    async def live(self, steps: int) -> None:
        """Takes random steps and checks after every few of them."""
        for _ in range(steps):
            step = self._chance.choices((self.add, self.forget, self.reset, self.check), (6, 2, 1, 2))[0]
            await step()
        await self.check()

    async def add(self) -> None:
        count = self._chance.randint(1, 5)
        new = [turn(f"{self._space}-{self._sent + index}", f"text {self._sent + index}.") for index in range(count)]
        await self._server.add_surely(self._space, new)
        self._sent += count
        self.held += [one.turn_id for one in new]

    async def forget(self) -> None:
        gone = self._chance.sample(self.held, min(len(self.held), self._chance.randint(0, 3)))
        if not gone:
            return
        self._asked += 1
        request_id = f"r{self._asked}"
        await self._surely(lambda client: client.forget(self._space, turn_ids=gone, request_id=request_id))
        self.held = [turn_id for turn_id in self.held if turn_id not in gone]
        self.forgotten |= set(gone)
        if self._chance.random() < 0.5:  # a late retry
            number = int(gone[0].rsplit("-", 1)[-1])
            await self._server.add_surely(self._space, [turn(gone[0], f"text {number}.")])

    async def reset(self) -> None:
        self._asked += 1
        request_id = f"r{self._asked}"
        await self._surely(lambda client: client.reset(self._space, request_id=request_id))
        self.held, self.forgotten = [], set()

    async def check(self) -> None:
        while not await self._surely(self._flush_and_compare):  # noqa: ASYNC110 - the server is another process
            await asyncio.sleep(0.05)

    async def _flush_and_compare(self, client: AsyncClient) -> bool:
        if not (await client.flush_once(self._space, timeout_s=3.0)).done:
            return False
        wanted = dict.fromkeys(self.held, TurnState.SEARCHABLE) | dict.fromkeys(self.forgotten, TurnState.FORGOTTEN)
        assert await states(client, self._space) == wanted
        stored = [turn_id for turn_id, _ in self._server.stored(self._space)]
        assert stored == [turn_id for turn_id in self.held for _ in range(2)]
        return True

    async def _surely(self, ask: Callable[[AsyncClient], Awaitable[Answer]]) -> Answer:
        while True:
            try:
                async with self._server.client(timeout_s=5.0) as client:
                    return await ask(client)
            except MemdockError as error:
                if error.reason not in _PASSING:
                    raise
                await asyncio.sleep(0.05)


async def random_lives(folder: Path, *, spaces: int, steps: int, kills: int, seed: int) -> None:
    server = ToyProcess(folder, "--step-s", "0.01")
    await server.start()
    chance = random.Random(seed)
    lives = [Life(server, f"space{number}", random.Random(seed * 100 + number)) for number in range(spaces)]

    async def kill() -> None:
        for _ in range(kills):
            await asyncio.sleep(chance.uniform(0.2, 0.6))
            await server.kill()
            await server.start()

    try:
        await asyncio.gather(kill(), *(life.live(steps) for life in lives))
    finally:
        await server.kill()


async def test_random_lives_through_kills(tmp_path: Path) -> None:
    await random_lives(tmp_path, spaces=4, steps=15, kills=3, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(10, 14))
async def test_long_random_lives_through_many_kills(tmp_path: Path, seed: int) -> None:
    await random_lives(tmp_path, spaces=8, steps=60, kills=15, seed=seed)
