"""AddTurns: safe to retry, all or nothing, and worked on although the caller has left."""

import asyncio
from pathlib import Path

import pytest

from memdock.errors import AlreadyExistsError
from memdock.types import TurnState
from support.served import SPACE, found, served, states, turn, turns, until
from support.toys import ToySystem


async def test_a_turn_becomes_searchable_and_names_its_source(tmp_path: Path) -> None:
    async with served(ToySystem(), tmp_path) as client:
        added = await client.add_turns(SPACE, turns("a", "b"))
        assert [(one.turn_id, one.state, one.duplicate) for one in added.results] == [
            ("a", TurnState.PENDING, False),
            ("b", TurnState.PENDING, False),
        ]
        assert (await client.flush(SPACE)).done
        (memory,) = (await client.retrieve(SPACE, "a")).memories
        assert [(source.session_id, source.turn_id) for source in memory.sources] == [("s1", "a")]
        (again,) = (await client.add_turns(SPACE, turns("a"))).results
        assert (again.state, again.duplicate, again.memory_ids) == (TurnState.SEARCHABLE, True, (memory.memory_id,))


async def test_ten_at_once_are_one_turn_and_one_piece_of_work(tmp_path: Path) -> None:
    system = ToySystem()
    async with served(system, tmp_path) as client:
        answers = await asyncio.gather(*(client.add_turns(SPACE, turns("a")) for _ in range(10)))
        assert sorted(answer.results[0].duplicate for answer in answers) == [False] + [True] * 9
        await client.flush(SPACE)
        assert system.turn_ids(SPACE) == ["a"]


async def test_other_content_is_refused_by_name_and_nothing_is_accepted(tmp_path: Path) -> None:
    async with served(ToySystem(), tmp_path) as client:
        await client.add_turns(SPACE, turns("a", "b"))
        with pytest.raises(AlreadyExistsError) as conflict:
            await client.add_turns(SPACE, [turn("new"), turn("b", "other"), turn("a", "other")])
        assert conflict.value.reason == "TURN_ID_CONFLICT"
        assert [field.field for field in conflict.value.fields] == ["turns[1].turn_id", "turns[2].turn_id"]
        assert "other" not in conflict.value.message.replace("other content", "")
        assert list(await states(client)) == ["a", "b"]


async def test_the_same_id_in_another_space_is_another_turn(tmp_path: Path) -> None:
    async with served(ToySystem(), tmp_path) as client:
        await client.add_turns(SPACE, turns("a"))
        (result,) = (await client.add_turns("other", [turn("a", "hello elsewhere")])).results
        assert not result.duplicate
        await client.flush("other")
        assert await found(client, "elsewhere", "other") == {"a"}
        assert await found(client, "elsewhere") == set()


async def test_a_failed_turn_sent_again_is_worked_on_again_after_the_others(tmp_path: Path) -> None:
    system = ToySystem()
    system.failing = {"a"}
    async with served(system, tmp_path) as client:
        await client.add_turns(SPACE, turns("a"))
        flushed = await client.flush(SPACE)
        assert [(one.turn_id, one.state) for one in flushed.failed] == [("a", TurnState.FAILED)]
        assert flushed.failed[0].error is not None
        assert flushed.failed[0].error.reason == "PROVIDER_PROTOCOL_ERROR"
        system.failing = set()
        system.gate.clear()
        await client.add_turns(SPACE, turns("b"))
        (again,) = (await client.add_turns(SPACE, turns("a"))).results
        assert (again.state, again.duplicate, again.error) == (TurnState.PENDING, True, None)
        system.gate.set()
        flushed = await client.flush(SPACE)
        assert (flushed.done, flushed.failed_count) == (True, 0)
        assert system.turn_ids(SPACE) == ["b", "a"]


async def test_what_a_failed_attempt_left_is_forgotten_before_the_next(tmp_path: Path) -> None:
    system = ToySystem()
    system.add_fault = RuntimeError("half way")
    async with served(system, tmp_path) as client:
        await client.add_turns(SPACE, turns("a", "b"))
        await client.flush(SPACE)
        system.add_fault = None
        await client.add_turns(SPACE, turns("a"))
        await client.flush(SPACE)
        assert [entry[0] for entry in system.log if entry[0] != "retrieve"] == ["add", "forget", "add"]
        assert system.calls("forget") == [("a",)]


@pytest.mark.parametrize("patience_s", [0.0, 0.0005, 0.003])
async def test_a_caller_who_leaves_leaves_turns_absent_or_completed(tmp_path: Path, patience_s: float) -> None:
    system = ToySystem()
    async with served(system, tmp_path) as client:
        sending = asyncio.create_task(client.add_turns(SPACE, turns("a", "b")))
        await asyncio.sleep(patience_s)
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        await asyncio.sleep(0.05)
        if await states(client):
            await until(lambda: system.turn_ids(SPACE) == ["a", "b"])
        assert set((await states(client)).values()) <= {TurnState.SEARCHABLE}
