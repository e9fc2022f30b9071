"""kill -9 in the middle of work: nothing lost, nothing twice, nothing unknown, order kept."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from memdock.types import Turn, TurnState
from support.served import states, turn, until
from support.toy_process import ToyProcess


@asynccontextmanager
async def running(folder: Path, *options: str) -> AsyncIterator[ToyProcess]:
    server = ToyProcess(folder, *options)
    await server.start()
    try:
        yield server
    finally:
        await server.kill()


def sent_to(space: str, count: int) -> list[Turn]:
    return [turn(f"{space}-{number}", f"text of {space} {number}.") for number in range(count)]


def assert_whole(server: ToyProcess, space: str, turns: list[Turn], *, in_order: bool = True) -> None:
    stored = server.stored(space)
    halves: dict[str, list[str]] = {}
    for turn_id, half in stored:
        halves.setdefault(turn_id, []).append(half)
    assert {one.turn_id: one.text for one in turns} == {name: "".join(parts) for name, parts in halves.items()}
    assert len(stored) == 2 * len(turns)
    if in_order:
        assert list(halves) == [one.turn_id for one in turns]


async def write_through_kills(server: ToyProcess, sent: dict[str, list[Turn]], kills: int, seed: int) -> None:
    chance = random.Random(seed)
    halves_wanted = 2 * sum(len(turns) for turns in sent.values())
    halves_at_kills: list[int] = []

    async def write(space: str, turns: list[Turn]) -> None:
        for start in range(0, len(turns), 2):
            await server.add_surely(space, turns[start : start + 2])
            await asyncio.sleep(chance.uniform(0, 0.05))

    async def kill() -> None:
        for _ in range(kills):
            await asyncio.sleep(chance.uniform(0.1, 0.3))
            await server.kill()
            halves_at_kills.append(sum(len(server.stored(space)) for space in sent))
            await server.start()

    await asyncio.gather(kill(), *(write(space, turns) for space, turns in sent.items()))
    assert any(0 < halves < halves_wanted for halves in halves_at_kills), "no kill hit the work"


async def kill_rounds(folder: Path, *, spaces: int, turns: int, kills: int, seed: int) -> None:
    sent = {f"space{number}": sent_to(f"space{number}", turns) for number in range(spaces)}
    async with running(folder, "--step-s", "0.02") as server:
        await write_through_kills(server, sent, kills, seed)
        async with server.client() as client:
            for space, expected in sent.items():
                flushed = await client.flush(space)
                assert (flushed.done, flushed.failed_count) == (True, 0)
                assert await states(client, space) == {one.turn_id: TurnState.SEARCHABLE for one in expected}
                assert_whole(server, space, expected)


async def test_a_killed_server_loses_nothing_and_writes_nothing_twice(tmp_path: Path) -> None:
    await kill_rounds(tmp_path, spaces=4, turns=24, kills=3, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(3))
async def test_ten_kills_among_twelve_spaces(tmp_path: Path, seed: int) -> None:
    await kill_rounds(tmp_path, spaces=12, turns=40, kills=10, seed=seed)


async def failing_rounds(folder: Path, *, spaces: int, turns: int, kills: int, seed: int) -> None:
    sent = {f"space{number}": sent_to(f"space{number}", turns) for number in range(spaces)}
    async with running(folder, "--step-s", "0.02", "--fail-percent", "15") as server:
        await write_through_kills(server, sent, kills, seed)
        failed = 1
        while failed:
            failed = 0
            async with server.client() as client:
                for space, expected in sent.items():
                    flushed = await client.flush(space)
                    assert flushed.done
                    failed += flushed.failed_count
                    by_id = {one.turn_id: one for one in expected}
                    for result in flushed.failed:
                        await client.add_turns(space, [by_id[result.turn_id]])
        for space, expected in sent.items():
            assert_whole(server, space, expected, in_order=False)


async def test_failed_turns_are_mended_through_kills(tmp_path: Path) -> None:
    await failing_rounds(tmp_path, spaces=3, turns=20, kills=2, seed=2)


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_failed_turns_are_mended_through_fifteen_kills(tmp_path: Path) -> None:
    await failing_rounds(tmp_path, spaces=12, turns=40, kills=15, seed=3)


async def test_a_reset_goes_on_after_a_kill_and_keeps_what_came_after_it(tmp_path: Path) -> None:
    async with running(tmp_path, "--step-s", "0.15") as server:
        async with server.client(timeout_s=0.5) as client:
            await client.add_turns("space", sent_to("space", 20))
            await until(lambda: len(server.stored("space")) > 1)
            resetting = asyncio.create_task(client.reset("space", request_id="r"))
            await asyncio.sleep(0.1)
            await client.add_turns("space", [turn("space-100", "after")])
            await server.kill()
            await asyncio.gather(resetting, return_exceptions=True)
        assert server.stored("space")
        await server.start()
        async with server.client() as client:
            assert (await client.retrieve("space", "text")).memories == ()
            done = await client.reset("space", request_id="r")
            assert done.erased_turns == 20
            assert (await client.flush("space")).done
            assert list(await states(client, "space")) == ["space-100"]
            assert {turn_id for turn_id, _ in server.stored("space")} == {"space-100"}


async def test_a_forget_goes_on_after_a_kill(tmp_path: Path) -> None:
    async with running(tmp_path, "--step-s", "0.1") as server:
        async with server.client(timeout_s=0.5) as client:
            await client.add_turns("space", sent_to("space", 6))
            await until(lambda: len(server.stored("space")) > 1)
            forgetting = asyncio.create_task(client.forget("space", turn_ids=["space-0", "space-4"]))
            await asyncio.sleep(0.1)
            await server.kill()
            await asyncio.gather(forgetting, return_exceptions=True)
        await server.start()
        async with server.client() as client:
            assert (await client.flush("space")).done
            found = {turn_id for turn_id, _ in server.stored("space")}
            assert found == {"space-1", "space-2", "space-3", "space-5"}
            assert (await client.add_turns("space", sent_to("space", 1))).results[0].state is TurnState.FORGOTTEN


async def test_the_end_by_sigterm_answers_what_is_inside(tmp_path: Path) -> None:
    server = ToyProcess(tmp_path, "--read-s", "0.5", "--step-s", "0.01")
    await server.start()
    async with server.client() as over_grpc, server.client("http") as over_http:
        await over_grpc.add_turns("space", sent_to("space", 12))
        await over_grpc.flush("space")
        clients = (over_grpc, over_http)
        inside = [asyncio.create_task(clients[number % 2].retrieve("space", "text")) for number in range(20)]
        await over_grpc.add_turns("space", sent_to("other", 40))
        await asyncio.sleep(0.2)
        server.terminate()
        await asyncio.sleep(0.1)
        for client in clients:
            late = await asyncio.gather(client.describe(), return_exceptions=True)
            assert getattr(late[0], "reason", "answered") in ("DRAINING", "ADAPTER_UNREACHABLE")
        answers = await asyncio.gather(*inside)
        assert {len(answer.memories) for answer in answers} == {10}
    assert await server.ended() == 0
    await server.start()
    async with server.client() as client:
        assert (await client.flush("space")).done
    assert_whole(server, "space", [*sent_to("space", 12), *sent_to("other", 40)])
    server.terminate()
    assert await server.ended() == 0


async def test_a_second_process_over_the_same_ledger_is_refused_in_one_sentence(tmp_path: Path) -> None:
    async with running(tmp_path):
        second = ToyProcess(tmp_path)
        with pytest.raises(AssertionError, match=r"cannot serve: The ledger .* is in use by process \d+") as problem:
            await second.start()
        assert "Traceback" not in str(problem.value)
        assert await second.ended() == 1
