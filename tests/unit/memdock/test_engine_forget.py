"""Forget: what is selected goes, pending or not, and does not come back; the rest stays."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest

from memdock.client import AsyncClient
from memdock.engine import Ledgered
from memdock.errors import AbortedError, InvalidArgumentError, UnavailableError, UnimplementedError
from memdock.ledger import Intent
from memdock.sqlite_ledger import SqliteLedger
from memdock.types import Component, Erasure, Feature, Selection, Support, TurnResult, TurnState
from support.served import SPACE, found, reason_of, served, states, turn, turns, until
from support.toys import ALL_FEATURES, ToySystem, without


async def test_by_turn_what_stood_on_it_is_rebuilt_without_it(tmp_path: Path) -> None:
    system = ToySystem(chunk=2)
    async with served(system, tmp_path) as client:
        await client.add_turns(SPACE, turns("a", "b", "c", "d"))
        await client.flush(SPACE)
        done = await client.forget(SPACE, turn_ids=["a", "zz"])
        assert (done.erased_turn_ids, done.not_found) == (("a",), ("zz",))
        assert done.erased_memory_ids == ("m1",)
        assert await found(client) == {"b", "c", "d"}
        assert (await states(client))["a"] is TurnState.FORGOTTEN
        again = await client.forget(SPACE, turn_ids=["a"])
        assert (again.erased_turn_ids, again.not_found) == ((), ("a",))


async def test_by_memory_the_turns_under_it_go_too(tmp_path: Path) -> None:
    system = ToySystem(chunk=2)
    async with served(system, tmp_path) as client:
        await client.add_turns(SPACE, turns("a", "b", "c", "d"))
        await client.flush(SPACE)
        done = await client.forget(SPACE, memory_ids=["m1", "m99"])
        assert (done.erased_memory_ids, done.erased_turn_ids, done.not_found) == (("m1",), ("a", "b"), ("m99",))
        assert await found(client) == {"c", "d"}
        assert list((await states(client)).values())[:2] == [TurnState.FORGOTTEN] * 2


async def test_by_session_all_its_turns_go_and_siblings_stay(tmp_path: Path) -> None:
    system = ToySystem()
    async with served(system, tmp_path) as client:
        for start in (0, 125):
            await client.add_turns(SPACE, [turn(f"t{n}", session_id="big") for n in range(start, start + 125)])
        await client.add_turns(SPACE, [turn("x", session_id="small")])
        await client.flush(SPACE)
        done = await client.forget(SPACE, session_ids=["big", "none"])
        assert len(done.erased_turn_ids) == len(done.erased_memory_ids) == 250
        assert done.not_found == ("none",)
        assert await found(client) == {"x"}


async def test_pending_and_half_done_turns_are_taken_and_do_not_come_back(tmp_path: Path) -> None:
    system = ToySystem()
    system.gate.clear()
    async with served(system, tmp_path, batch_turns=2) as client:
        await client.add_turns(SPACE, turns("a", "b", "c", "d"))
        await until(system.entered.is_set)
        forgetting = asyncio.create_task(client.forget(SPACE, turn_ids=["a", "c"]))
        await asyncio.sleep(0.02)
        assert not forgetting.done()  # it waits for the batch in flight
        system.gate.set()
        assert (await forgetting).erased_turn_ids == ("a", "c")
        assert (await client.flush(SPACE)).done
        assert system.turn_ids(SPACE) == ["b", "d"]
        assert system.calls("add") == [("a", "b"), ("d",)]
        assert await found(client) == {"b", "d"}


async def test_a_late_retry_brings_nothing_back(tmp_path: Path) -> None:
    system = ToySystem()
    async with served(system, tmp_path) as client:
        await client.add_turns(SPACE, turns("a", "b"))
        await client.flush(SPACE)
        await client.forget(SPACE, turn_ids=["a"])
        results = (await client.add_turns(SPACE, turns("a", "b"))).results
        assert [(one.state, one.duplicate) for one in results] == [
            (TurnState.FORGOTTEN, True),
            (TurnState.SEARCHABLE, True),
        ]
        await client.flush(SPACE)
        assert await found(client) == {"b"}
        assert await reason_of(client.add_turns(SPACE, [turn("a", "other")])) == "TURN_ID_CONFLICT"


async def test_a_memory_on_a_forgotten_turn_is_never_shown(tmp_path: Path) -> None:
    system = ToySystem()
    async with served(system, tmp_path) as client:
        await client.add_turns(SPACE, turns("a", "b"))
        await client.flush(SPACE)
        kept = list(system.kept[SPACE])
        await client.forget(SPACE, turn_ids=["a"])
        system.kept[SPACE] = kept  # a framework that brings back what it had erased
        assert await found(client) == {"b"}
        assert [memory.text async for memory in client.list_memories(SPACE)] == ["hello b"]


async def test_a_dry_run_lists_what_the_real_call_takes_and_takes_nothing(tmp_path: Path) -> None:
    system = ToySystem(chunk=2)
    async with served(system, tmp_path) as client:
        await client.add_turns(SPACE, turns("a", "b", "c", "d"))
        await client.flush(SPACE)
        selections: list[dict[str, Any]] = [
            {"turn_ids": ["a", "zz"]},
            {"session_ids": ["s1"]},
            {"memory_ids": ["m2", "zz"]},
        ]
        for selection in selections:
            before = await states(client)
            shown = await client.forget(SPACE, **selection, dry_run=True, request_id="same")
            assert await states(client) == before
            assert await found(client) == {name for name, state in before.items() if state is TurnState.SEARCHABLE}
            if "session_ids" in selection:
                continue
            done = await client.forget(SPACE, **selection)
            assert (shown.erased_memory_ids, shown.erased_turn_ids, shown.not_found) == (
                done.erased_memory_ids,
                done.erased_turn_ids,
                done.not_found,
            )


@pytest.mark.parametrize(
    ("lacking", "selection", "reason"),
    [
        (Feature.FORGET_TURNS, {"turn_ids": ["a"]}, "SELECTOR_UNSUPPORTED"),
        (Feature.FORGET_MEMORIES, {"memory_ids": ["m1"]}, "SELECTOR_UNSUPPORTED"),
        (Feature.FORGET_SESSIONS, {"session_ids": ["s1"]}, "SELECTOR_UNSUPPORTED"),
        (Feature.FORGET_DRY_RUN, {"turn_ids": ["a"], "dry_run": True}, "FEATURE_UNSUPPORTED"),
    ],
)
async def test_what_is_not_declared_is_refused(
    tmp_path: Path, lacking: Feature, selection: dict[str, Any], reason: str
) -> None:
    system = ToySystem(features=without(lacking))
    async with served(system, tmp_path) as client:
        await client.add_turns(SPACE, turns("a"))
        await client.flush(SPACE)
        with pytest.raises(UnimplementedError) as problem:
            await client.forget(SPACE, **selection)
        assert problem.value.reason == reason
        assert await found(client) == {"a"}


async def test_a_repeat_with_the_request_id_answers_as_the_first_did(tmp_path: Path) -> None:
    system = ToySystem()
    async with served(system, tmp_path) as client:
        await client.add_turns(SPACE, turns("a", "b"))
        await client.flush(SPACE)
        first = await client.forget(SPACE, turn_ids=["a"], request_id="r1")
        assert first.erased_turn_ids == ("a",)
    async with served(system, tmp_path) as client:  # also after a restart
        assert await client.forget(SPACE, turn_ids=["a"], request_id="r1") == first
        assert len(system.calls("forget")) == 1
        with pytest.raises(InvalidArgumentError) as problem:
            await client.forget(SPACE, turn_ids=["b"], request_id="r1")
        assert problem.value.fields[0].field == "request_id"
        assert await found(client) == {"b"}


async def test_the_same_request_id_at_once_is_one_erasure(tmp_path: Path) -> None:
    system = ToySystem(delay_s=0.02)
    async with served(system, tmp_path) as client:
        await client.add_turns(SPACE, turns("a"))
        await client.flush(SPACE)
        answers = await asyncio.gather(*(client.forget(SPACE, turn_ids=["a"], request_id="r") for _ in range(5)))
        assert {answer.erased_turn_ids for answer in answers} == {("a",)}
        assert len(system.calls("forget")) == 1


async def test_a_passing_fault_goes_on_until_it_is_done(tmp_path: Path) -> None:
    system = ToySystem()
    async with served(system, tmp_path) as client:
        await client.add_turns(SPACE, turns("a", "b"))
        await client.flush(SPACE)
        system.erase_fault = UnavailableError("STORE_UNREACHABLE", "the store is away")
        with pytest.raises(AbortedError) as problem:
            await client.forget(SPACE, turn_ids=["a"], request_id="r")
        assert problem.value.reason == "IN_PROGRESS"
        assert problem.value.retry_after_s
        assert problem.value.message.endswith("it goes on after STORE_UNREACHABLE (the store is away)")
        assert problem.value.message.count("request_id") == problem.value.message.count("again") == 1
        assert await found(client) == {"b"}
        system.erase_fault = None
        assert (await client.forget(SPACE, turn_ids=["a"], request_id="r")).erased_turn_ids == ("a",)
        assert system.turn_ids(SPACE) == ["b"]


async def test_a_memory_that_is_being_forgotten_is_not_shown(tmp_path: Path) -> None:
    system = ToySystem()
    async with served(system, tmp_path) as client:
        await client.add_turns(SPACE, turns("a", "b"))
        await client.flush(SPACE)
        system.gate.clear()
        await client.add_turns(SPACE, turns("c"))
        system.entered.clear()
        await until(lambda: ("add", SPACE, ("c",)) in system.log)
        forgetting = asyncio.create_task(client.forget(SPACE, memory_ids=["m1"]))
        await asyncio.sleep(0.02)
        assert await found(client) == {"b"}
        system.gate.set()
        await forgetting
        await client.flush(SPACE)
        assert await found(client) == {"b", "c"}


async def test_a_refusal_of_the_system_is_told_and_holds_up_nothing(tmp_path: Path) -> None:
    system = ToySystem()
    async with served(system, tmp_path) as client:
        await client.add_turns(SPACE, turns("a", "b"))
        await client.flush(SPACE)
        system.erase_fault = ValueError("my-secret")
        assert await reason_of(client.forget(SPACE, turn_ids=["a"], request_id="r")) == "INTERNAL"
        system.erase_fault = None
        await client.add_turns(SPACE, turns("c"))
        assert (await client.flush(SPACE)).done
        assert await found(client) == {"b", "c"}
        done = await client.forget(SPACE, turn_ids=["a"], request_id="r")
        assert done.erased_memory_ids == ("m1",)
        assert system.turn_ids(SPACE) == ["b", "c"]


async def test_a_forget_goes_on_when_its_caller_leaves(tmp_path: Path) -> None:
    system = ToySystem()
    async with served(system, tmp_path) as client:
        await client.add_turns(SPACE, turns("a", "b"))
        await client.flush(SPACE)
        system.gate.clear()
        await client.add_turns(SPACE, turns("c"))
        await until(lambda: ("add", SPACE, ("c",)) in system.log)
        forgetting = asyncio.create_task(client.forget(SPACE, turn_ids=["a"]))
        await asyncio.sleep(0.02)
        forgetting.cancel()
        await asyncio.gather(forgetting, return_exceptions=True)
        system.gate.set()
        await until(lambda: system.turn_ids(SPACE) == ["b", "c"])


async def test_what_became_of_turns_that_stay_is_told_also_after_a_restart(tmp_path: Path) -> None:
    system = ToySystem(chunk=2)
    async with served(system, tmp_path) as client:
        await client.add_turns(SPACE, turns("a", "b"))
        await client.flush(SPACE)
        await client.forget(SPACE, turn_ids=["a"])
    async with served(system, tmp_path) as client:
        (result,) = (await client.add_turns(SPACE, turns("b"))).results
        assert (result.state, result.memory_ids, result.duplicate) == (TurnState.SEARCHABLE, ("m2",), True)
        assert [memory.memory_id async for memory in client.list_memories(SPACE)] == ["m2"]


@pytest.mark.parametrize("state", [TurnState.PENDING, TurnState.FAILED])
async def test_a_turn_that_stays_in_no_state_that_ends_is_the_systems_fault(tmp_path: Path, state: TurnState) -> None:
    class TellsHalf(ToySystem):
        async def forget(self, space: str, selection: Selection, *, dry_run: bool) -> Erasure:
            told = (TurnResult(turn_id="b", state=state),)
            return replace(await super().forget(space, selection, dry_run=dry_run), changed=told)

    async with served(TellsHalf(chunk=2), tmp_path) as client:
        await client.add_turns(SPACE, turns("a", "b"))
        await client.flush(SPACE)
        assert await reason_of(client.forget(SPACE, turn_ids=["a"])) == "ADAPTER_PROTOCOL_ERROR"
        assert (await states(client))["b"] is TurnState.SEARCHABLE


async def test_what_is_left_is_told_by_component(tmp_path: Path) -> None:
    async with served(ToySystem(), tmp_path) as client:
        await client.add_turns(SPACE, turns("a"))
        await client.flush(SPACE)
        for done in (await client.forget(SPACE, turn_ids=["a"]), await client.reset(SPACE)):
            assert [(one.component, one.items, one.verified) for one in done.residual] == [
                (Component.VECTOR, 0, True),
                (Component.RAW_TURNS, 0, True),
            ]


async def test_no_text_of_forgotten_turns_is_left_in_the_ledgers_files(tmp_path: Path) -> None:
    system = ToySystem()
    system.gate.clear()
    async with served(system, tmp_path) as client:
        await client.add_turns(SPACE, [turn(f"t{n}", f"mark-7f {n}") for n in range(20)] + turns("stays"))
        await until(system.entered.is_set)
        forgetting = asyncio.create_task(client.forget(SPACE, turn_ids=[f"t{n}" for n in range(20)]))
        system.gate.set()
        await forgetting
        left = sum(path.read_bytes().count(b"mark-7f") for path in tmp_path.iterdir())
        assert left == 0
        await client.flush(SPACE)
        assert await found(client) == {"stays"}


async def test_a_refusal_that_comes_at_once_is_not_missed(tmp_path: Path) -> None:
    class Refuses(ToySystem):
        async def forget(self, space: str, selection: Selection, *, dry_run: bool) -> Erasure:
            raise UnimplementedError("SELECTOR_UNSUPPORTED", "not this one")

    class Quick(SqliteLedger):
        async def abandon_erasure(self, intent: Intent) -> None:
            return None

    service = Ledgered(Refuses(), Quick(tmp_path / "ledger.db"))
    await service.start()
    client = AsyncClient(service, timeout_s=2.0)
    assert await reason_of(client.forget(SPACE, turn_ids=["a"])) == "SELECTOR_UNSUPPORTED"
    await service.drain(5.0)
    await service.close()


@pytest.mark.parametrize("features", [ALL_FEATURES, without(Feature.FORGET_DRY_RUN)], ids=["dry runs", "none"])
@pytest.mark.parametrize("again", ["in the process", "after a restart"])
async def test_what_went_with_a_memory_is_told_though_the_ledger_was_away_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again: str, features: Mapping[Feature, Support]
) -> None:
    """The system has taken the memory and no longer knows its turns; they must not stay SEARCHABLE without a memory."""
    system = ToySystem(chunk=2, features=features)
    erase = SqliteLedger.erase
    away = UnavailableError("STORE_UNREACHABLE", "the disk is full")
    async with served(system, tmp_path) as client:
        await client.add_turns(SPACE, turns("a", "b", "c", "d"))
        await client.flush(SPACE)
        with monkeypatch.context() as patch:
            patch.setattr(SqliteLedger, "erase", AsyncMock(side_effect=away))
            assert await reason_of(client.forget(SPACE, memory_ids=["m1", "m99"], request_id="r")) == "IN_PROGRESS"
            if again == "in the process":
                patch.setattr(SqliteLedger, "erase", erase)
                await until(lambda: len(system.calls("forget")) > 1)
    async with served(system, tmp_path) as client:
        done = await client.forget(SPACE, memory_ids=["m1", "m99"], request_id="r")
        assert (done.erased_memory_ids, done.erased_turn_ids, done.not_found) == (("m1",), ("a", "b"), ("m99",))
        assert list((await states(client)).values())[:2] == [TurnState.FORGOTTEN] * 2
        assert await found(client) == {"c", "d"}


async def test_a_system_without_dry_runs_is_asked_for_none(tmp_path: Path) -> None:
    system = ToySystem(features=without(Feature.FORGET_DRY_RUN))
    async with served(system, tmp_path) as client:
        await client.add_turns(SPACE, turns("a"))
        await client.flush(SPACE)
        assert (await client.forget(SPACE, memory_ids=["m1"])).erased_turn_ids == ("a",)
    assert system.calls("forget (dry run)") == []
    assert len(system.calls("forget")) == 1
