"""Reset: the space as if never used, from the start of the call, whatever is in flight."""

import asyncio
import time
from pathlib import Path

import pytest

from memdock.client import AsyncClient
from memdock.errors import AbortedError, UnavailableError
from memdock.types import TurnState
from support.served import SPACE, found, reason_of, served, states, turn, turns, until
from support.toys import ToySystem


async def test_the_space_is_as_if_never_used_and_its_sibling_untouched(tmp_path: Path) -> None:
    system = ToySystem()
    async with served(system, tmp_path) as client:
        for space in (SPACE, "sibling"):
            await client.add_turns(space, turns("a", "b", "c"))
            await client.flush(space)
        await client.forget(SPACE, turn_ids=["c"])
        sibling = list(system.kept["sibling"])
        done = await client.reset(SPACE)
        assert (done.erased_turns, done.erased_memories) == (2, 2)
        assert await states(client) == {}
        flushed = await client.flush(SPACE)
        assert (flushed.failed_count, flushed.space_usage) == (0, ())
        assert await found(client) == set()
        assert system.kept["sibling"] == sibling
        (again,) = (await client.add_turns(SPACE, [turn("c", "hello anew")])).results
        assert (again.state, again.duplicate) == (TurnState.PENDING, False)
        await client.flush(SPACE)
        assert await found(client, "anew") == {"c"}


async def test_an_unknown_space_and_a_repeat_are_harmless(tmp_path: Path) -> None:
    async with served(ToySystem(), tmp_path) as client:
        for _ in range(2):
            assert (await client.reset("unknown")).erased_turns == 0


async def test_work_in_flight_is_waited_for_and_erased(tmp_path: Path) -> None:
    system = ToySystem()
    system.gate.clear()
    async with served(system, tmp_path, batch_turns=2) as client:
        await client.add_turns(SPACE, turns("a", "b", "c"))
        await until(system.entered.is_set)
        resetting = asyncio.create_task(client.reset(SPACE))
        await asyncio.sleep(0.02)
        assert await states(client) == {}
        assert await found(client) == set()
        assert not resetting.done()
        system.gate.set()
        assert (await resetting).erased_turns == 3
        assert system.turn_ids(SPACE) == []
        assert (await client.flush(SPACE)).done
        assert system.calls("add") == [("a", "b")]


async def test_retrieve_is_empty_and_lists_too_from_the_start_of_the_call(tmp_path: Path) -> None:
    system = ToySystem()
    async with served(system, tmp_path) as client:
        await client.add_turns(SPACE, turns("a"))
        await client.flush(SPACE)
        system.gate.clear()
        await client.add_turns(SPACE, turns("b"))
        await until(lambda: ("add", SPACE, ("b",)) in system.log)
        resetting = asyncio.create_task(client.reset(SPACE))
        await asyncio.sleep(0)
        assert system.turn_ids(SPACE) == ["a"]  # the system still holds it
        assert (await client.retrieve(SPACE, "hello")).memories == ()
        assert [memory async for memory in client.list_memories(SPACE)] == []
        system.gate.set()
        await resetting


async def test_what_was_read_before_a_reset_is_not_shown_after_it(tmp_path: Path) -> None:
    system = ToySystem()
    async with served(system, tmp_path) as client:
        await client.add_turns(SPACE, turns("a"))
        await client.flush(SPACE)
        system.read_delay_s = 0.1
        reading = asyncio.create_task(client.retrieve(SPACE, "hello"))
        await until(lambda: bool(system.calls("retrieve")))
        kept = system.kept[SPACE]
        await client.reset(SPACE)
        system.kept[SPACE] = kept
        assert (await reading).memories == ()


async def test_turns_sent_meanwhile_belong_to_the_new_space(tmp_path: Path) -> None:
    system = ToySystem()
    system.gate.clear()
    async with served(system, tmp_path) as client:
        await client.add_turns(SPACE, turns("old", "same"))
        await until(system.entered.is_set)
        resetting = asyncio.create_task(client.reset(SPACE))
        await asyncio.sleep(0.02)
        results = (await client.add_turns(SPACE, [turn("new"), turn("same", "hello other content")])).results
        assert [one.duplicate for one in results] == [False, False]
        assert (await client.flush_once(SPACE, timeout_s=0.05)).pending == 2
        system.gate.set()
        await resetting
        assert (await client.flush(SPACE)).done
        assert await found(client) == {"new", "same"}
        assert system.turn_ids(SPACE) == ["new", "same"]


async def test_a_near_deadline_is_told_and_the_reset_goes_on(tmp_path: Path) -> None:
    system = ToySystem()
    system.gate.clear()
    async with served(system, tmp_path, timeout_s=0.5) as client:
        await client.add_turns(SPACE, turns("a"))
        await until(system.entered.is_set)
        started = time.monotonic()
        with pytest.raises(AbortedError) as problem:
            await client.reset(SPACE, request_id="r")
        assert 0.4 < time.monotonic() - started < 2.0
        assert (problem.value.reason, problem.value.retry_after_s) == ("IN_PROGRESS", 1.0)
        assert problem.value.message.startswith("send the same request again, with its request_id, to learn how")
        await client.add_turns(SPACE, turns("new"))
        assert await reason_of(client.reset(SPACE, request_id="r")) == "IN_PROGRESS"
        system.gate.set()
        patient = AsyncClient(client._service, timeout_s=20.0)
        assert (await patient.reset(SPACE, request_id="r")).erased_turns == 1
        assert (await patient.flush(SPACE)).done
        assert await found(patient) == {"new"}  # the repeats have not taken it
        assert len(system.calls("reset")) == 1


async def test_a_reset_goes_on_when_its_caller_leaves(tmp_path: Path) -> None:
    system = ToySystem()
    system.gate.clear()
    async with served(system, tmp_path) as client:
        await client.add_turns(SPACE, turns("a"))
        await until(system.entered.is_set)
        resetting = asyncio.create_task(client.reset(SPACE))
        await asyncio.sleep(0.02)
        resetting.cancel()
        await asyncio.gather(resetting, return_exceptions=True)
        system.gate.set()
        await until(lambda: bool(system.calls("reset")))
        assert system.turn_ids(SPACE) == []


async def test_a_reset_that_fails_shows_nothing_and_is_tried_until_it_succeeds(tmp_path: Path) -> None:
    system = ToySystem()
    async with served(system, tmp_path) as client:
        await client.add_turns(SPACE, turns("a"))
        await client.flush(SPACE)
        for fault in (ValueError("my-secret"), UnavailableError("STORE_UNREACHABLE", "away")):
            system.erase_fault = fault
            with pytest.raises(AbortedError) as problem:
                await client.reset(SPACE, request_id="r")
            assert "my-secret" not in str(problem.value)
            assert system.turn_ids(SPACE) == ["a"]
            assert await found(client) == set()
        await client.add_turns(SPACE, turns("new"))
        assert not (await client.flush_once(SPACE, timeout_s=0.05)).done
        system.erase_fault = None
        assert (await client.flush(SPACE)).done
        assert await found(client) == {"new"}
        assert (await client.reset(SPACE, request_id="r")).erased_turns == 1
        assert await found(client) == {"new"}


async def test_two_resets_and_a_forget_at_once_come_in_their_order(tmp_path: Path) -> None:
    system = ToySystem(delay_s=0.01)
    async with served(system, tmp_path) as client:
        await client.add_turns(SPACE, turns("a", "b"))
        await client.flush(SPACE)
        forgetting = asyncio.create_task(client.forget(SPACE, turn_ids=["a"]))
        await asyncio.sleep(0)
        first, second = await asyncio.gather(client.reset(SPACE), client.reset(SPACE))
        # A Reset may overtake the Forget before its work began: it is then told to ask again; nothing of it is left.
        await asyncio.wait([forgetting])
        overtaken = forgetting.exception()
        if overtaken:
            assert isinstance(overtaken, AbortedError)
            assert overtaken.retry_after_s is not None
        else:
            assert forgetting.result().erased_turn_ids == ("a",)
        # "a" is the Forget's once its intent is written, whoever then does the work; "b" is a Reset's in any order.
        assert first.erased_turns + second.erased_turns in ((1, 2) if overtaken else (1,))
        assert (await client.forget(SPACE, turn_ids=["a"])).not_found == ("a",)
        assert await states(client) == {}
        assert await found(client) == set()


async def test_nothing_is_left_when_a_writer_and_resets_run_at_once(tmp_path: Path) -> None:
    system = ToySystem(delay_s=0.002)
    async with served(system, tmp_path, batch_turns=4) as client:
        stop = asyncio.Event()
        sent = 0

        async def write() -> None:
            nonlocal sent
            while not stop.is_set():
                await client.add_turns(SPACE, turns(*(f"t{sent + index}" for index in range(3))))
                sent += 3
                await asyncio.sleep(0.001)

        writing = asyncio.create_task(write())
        for _ in range(15):
            await asyncio.sleep(0.01)
            await client.reset(SPACE)
        stop.set()
        await writing
        assert sent > 30
        await client.reset(SPACE)
        assert (await client.flush(SPACE)).done
        assert system.turn_ids(SPACE) == []
        assert await states(client) == {}


async def test_a_forget_that_a_reset_overtook_takes_nothing_of_the_new_space(tmp_path: Path) -> None:
    system = ToySystem()
    async with served(system, tmp_path) as client:
        await client.add_turns(SPACE, turns("a"))
        await client.flush(SPACE)
        system.erase_fault = UnavailableError("STORE_UNREACHABLE", "away")
        assert await reason_of(client.forget(SPACE, turn_ids=["a"])) == "IN_PROGRESS"
        system.erase_fault = None
        await client.reset(SPACE)
        await client.add_turns(SPACE, turns("a"))
        await client.flush(SPACE)
        await asyncio.sleep(0.5)  # the first try after a failure comes after 0.2 s
        assert await states(client) == {"a": TurnState.SEARCHABLE}
        assert await found(client) == {"a"}
        assert len(system.calls("forget")) == 1
