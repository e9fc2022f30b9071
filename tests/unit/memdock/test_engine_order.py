"""Order inside a space, spaces side by side, buffers that a barrier cuts."""

import asyncio
import random
from pathlib import Path

from memdock.types import TurnState
from support.served import SPACE, served, states, turns, until
from support.toys import ToySystem


async def test_requests_of_one_space_are_worked_on_in_the_order_of_acceptance(tmp_path: Path) -> None:
    system = ToySystem(delay_s=0.001)
    async with served(system, tmp_path, batch_turns=3) as client:
        accepted: list[str] = []

        async def send(number: int) -> None:
            ids = [f"{number}-{index}" for index in range(3)]
            await client.add_turns(SPACE, turns(*ids))

        await asyncio.gather(*(send(number) for number in range(12)))
        accepted = list(await states(client))
        await client.flush(SPACE)
        assert system.turn_ids(SPACE) == accepted
        assert len(accepted) == 36
        for number in range(12):
            mine = [turn_id for turn_id in accepted if turn_id.startswith(f"{number}-")]
            assert mine == [f"{number}-{index}" for index in range(3)]


async def test_spaces_run_side_by_side_up_to_a_bound(tmp_path: Path) -> None:
    system = ToySystem()
    system.gate.clear()
    async with served(system, tmp_path, parallel_spaces=3) as client:
        for number in range(7):
            await client.add_turns(f"space{number}", turns("a"))
        await until(lambda: len(system.log) == 3)
        await asyncio.sleep(0.02)
        assert len(system.log) == 3
        system.gate.set()
        for number in range(7):
            assert (await client.flush(f"space{number}")).done
        assert system.most_spaces_at_once == 3


async def test_a_full_house_of_slow_adds_does_not_hold_up_an_erasure(tmp_path: Path) -> None:
    system = ToySystem()
    async with served(system, tmp_path, parallel_spaces=1) as client:
        await client.add_turns("quiet", turns("a"))
        await client.flush("quiet")
        system.gate.clear()
        await client.add_turns("busy", turns("a"))
        await until(lambda: ("add", "busy", ("a",)) in system.log)
        async with asyncio.timeout(2):
            assert (await client.reset("quiet")).erased_turns == 1
        system.gate.set()


async def test_turns_wait_for_their_successors_until_a_barrier(tmp_path: Path) -> None:
    system = ToySystem(chunk=3)
    async with served(system, tmp_path) as client:
        await client.add_turns(SPACE, turns("a", "b", "c", "d"))
        await until(lambda: system.turn_ids(SPACE) == ["a", "b", "c"])
        await asyncio.sleep(0.02)
        assert (await states(client))["d"] is TurnState.PENDING
        assert (await client.retrieve(SPACE, "hello")).pending == 1
        await client.add_turns(SPACE, turns("e", "f"))
        await until(lambda: len(system.turn_ids(SPACE)) == 6)
        assert [len(kept.turns) for kept in system.kept[SPACE]] == [3, 3]
        await client.add_turns(SPACE, turns("g"))
        assert (await client.flush(SPACE)).done
        assert [len(kept.turns) for kept in system.kept[SPACE]] == [3, 3, 1]
        assert ("final add", SPACE, ("g",)) in system.log


async def test_the_barrier_cuts_the_batch_at_its_last_turn(tmp_path: Path) -> None:
    system = ToySystem(chunk=10)
    async with served(system, tmp_path) as client:
        await client.add_turns(SPACE, turns("a", "b"))
        await until(lambda: system.calls("add") == [("a", "b")])
        flushing = asyncio.create_task(client.flush(SPACE))
        await client.add_turns(SPACE, turns("c"))
        assert (await flushing).done
        await asyncio.sleep(0.02)
        assert [ids for ids in system.calls("final add") if "a" in ids] == [("a", "b")]
        assert (await states(client))["c"] is TurnState.PENDING


async def test_later_turns_cannot_keep_a_flush_waiting(tmp_path: Path) -> None:
    system = ToySystem(chunk=50, delay_s=0.001)
    async with served(system, tmp_path) as client:
        await client.add_turns(SPACE, turns("first"))
        stop = asyncio.Event()

        async def keep_sending() -> None:
            number = 0
            while not stop.is_set():
                number += 1
                await client.add_turns(SPACE, turns(f"late-{number}"))

        sending = asyncio.create_task(keep_sending())
        async with asyncio.timeout(3):
            assert (await client.flush(SPACE)).done
        assert (await states(client))["first"] is TurnState.SEARCHABLE
        stop.set()
        await sending


async def test_a_full_batch_is_final_for_a_system_that_wants_more_than_it_holds(tmp_path: Path) -> None:
    system = ToySystem(chunk=8)
    async with served(system, tmp_path, batch_turns=4) as client:
        await client.add_turns(SPACE, turns("a", "b", "c", "d", "e"))
        await until(lambda: system.turn_ids(SPACE) == ["a", "b", "c", "d"])
        assert (await client.flush(SPACE)).done
        assert system.turn_ids(SPACE) == ["a", "b", "c", "d", "e"]


async def test_no_flush_is_untrue_while_a_buffering_system_is_written_at_random(tmp_path: Path) -> None:
    chance = random.Random(7)
    system = ToySystem(chunk=10)
    async with served(system, tmp_path, batch_turns=16) as client:
        sent: list[str] = []

        async def write() -> None:
            while len(sent) < 400:
                ids = [f"t{len(sent) + index}" for index in range(chance.randint(1, 7))]
                await client.add_turns(SPACE, turns(*ids))
                sent.extend(ids)
                if chance.random() < 0.3:
                    await asyncio.sleep(0.001)

        async def flush() -> int:
            flushes = 0
            while len(sent) < 400:
                before = list(sent)
                assert (await client.flush(SPACE)).done
                assert set(before) <= set(system.turn_ids(SPACE))
                flushes += 1
                await asyncio.sleep(chance.random() / 100)
            return flushes

        _, *flushes = await asyncio.gather(write(), flush(), flush())
        assert sum(flushes) > 4
        await client.flush(SPACE)
        assert system.turn_ids(SPACE) == sent
