"""What a killed process left is gone on with, in order, nothing twice; a ledger that is away is waited for."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

from memdock import usage
from memdock.client import AsyncClient
from memdock.engine import Ledgered
from memdock.errors import UnavailableError
from memdock.ledger import Admission, Begun, ErasureKind, PendingTurn, Settled
from memdock.sqlite_ledger import SqliteLedger
from memdock.types import Erasure, Feature, Selection, Turn, TurnState
from support.served import SPACE, found, reason_of, served, states, turns, until
from support.toys import ToySystem, without

Answer = TypeVar("Answer")


async def left_behind(folder: Path, started: int) -> None:
    """A ledger as a kill leaves it: five pending turns, of which the system had `started`."""
    ledger = SqliteLedger(folder / "ledger.db")
    await ledger.open()
    await ledger.admit(SPACE, turns("a", "b", "c", "d", "e"))
    held = await ledger.pending(SPACE, limit=started)
    await ledger.start(SPACE, [one.seq for one in held])
    await ledger.close()


async def test_pending_turns_are_worked_on_after_a_start(tmp_path: Path) -> None:
    await left_behind(tmp_path, started=0)
    system = ToySystem()
    async with served(system, tmp_path) as client:
        await until(lambda: system.turn_ids(SPACE) == ["a", "b", "c", "d", "e"])
        assert not system.calls("forget")
        assert (await client.flush(SPACE)).done


async def test_started_turns_are_forgotten_before_they_are_worked_on_again(tmp_path: Path) -> None:
    await left_behind(tmp_path, started=2)
    system = ToySystem()
    await system.add(SPACE, turns("a"), final=True)  # what the killed process had written
    async with served(system, tmp_path) as client:
        await client.flush(SPACE)
        assert system.calls("forget") == [("a", "b")]
        assert system.turn_ids(SPACE) == ["a", "b", "c", "d", "e"]


async def test_a_ledger_that_shares_the_systems_transaction_needs_no_forgetting(tmp_path: Path) -> None:
    class Sharing(SqliteLedger):
        shares_transaction = True

        async def start(self, space: str, seqs: Sequence[int]) -> None:
            raise AssertionError("never called")

    await left_behind(tmp_path, started=2)
    system = ToySystem()
    service = Ledgered(system, Sharing(tmp_path / "ledger.db"))
    await service.start()
    assert (await AsyncClient(service).flush(SPACE)).done
    assert not system.calls("forget")
    assert system.turn_ids(SPACE) == ["a", "b", "c", "d", "e"]
    await service.drain(5.0)
    await service.close()


async def test_a_system_that_cannot_forget_fails_what_was_started_and_works_on_the_rest(tmp_path: Path) -> None:
    await left_behind(tmp_path, started=2)
    system = ToySystem(features=without(Feature.FORGET_TURNS))
    async with served(system, tmp_path) as client:
        flushed = await client.flush(SPACE)
        assert flushed.done
        assert [one.turn_id for one in flushed.failed] == ["a", "b"]
        assert all(one.error and one.error.retryable for one in flushed.failed)
        assert system.turn_ids(SPACE) == ["c", "d", "e"]
        await client.add_turns(SPACE, turns("a"))
        assert (await client.flush(SPACE)).failed_count == 1
        assert system.turn_ids(SPACE) == ["c", "d", "e", "a"]


@pytest.mark.parametrize("kind", list(ErasureKind))
async def test_an_erasure_that_was_begun_is_finished_before_new_work(tmp_path: Path, kind: ErasureKind) -> None:
    system = ToySystem()
    async with served(system, tmp_path) as client:
        await client.add_turns(SPACE, turns("a", "b"))
        await client.flush(SPACE)
    ledger = SqliteLedger(tmp_path / "ledger.db")
    await ledger.open()
    selection = Selection(turn_ids=("a",)) if kind is ErasureKind.FORGET else Selection()
    await ledger.begin_erasure(SPACE, kind, selection, request_id="r", fingerprint=b"f")
    await ledger.admit(SPACE, turns("new"))
    await ledger.close()
    left = ["b"] if kind is ErasureKind.FORGET else []
    async with served(system, tmp_path) as client:
        assert not await found(client) & {"a"}
        await client.flush(SPACE)
        assert system.turn_ids(SPACE) == [*left, "new"]
        assert await found(client) == {*left, "new"}
        calls = [name for name, _, _ in system.log if name != "retrieve"]
        assert calls == ["add", kind.lower(), "final add"]


async def test_a_reset_that_is_still_open_after_a_start_shows_nothing(tmp_path: Path) -> None:
    system = ToySystem()
    async with served(system, tmp_path) as client:
        await client.add_turns(SPACE, turns("a"))
        await client.flush(SPACE)
    ledger = SqliteLedger(tmp_path / "ledger.db")
    await ledger.open()
    await ledger.begin_erasure(SPACE, ErasureKind.RESET, Selection(), request_id="", fingerprint=b"f")
    await ledger.close()
    system.erase_fault = UnavailableError("STORE_UNREACHABLE", "away")
    async with served(system, tmp_path) as client:
        assert await found(client) == set()
        assert system.turn_ids(SPACE) == ["a"]
    system.erase_fault = None
    async with served(system, tmp_path) as client:
        await until(lambda: system.turn_ids(SPACE) == [])


class Flaky(SqliteLedger):
    """A ledger whose named methods fail a number of times."""

    def __init__(self, path: Path, **failures: int) -> None:
        super().__init__(path)
        self.failures = failures

    def _fail(self, name: str) -> None:
        if self.failures.get(name, 0):
            self.failures[name] -= 1
            raise UnavailableError("STORE_UNREACHABLE", "the ledger is away")

    async def pending(self, space: str, **arguments: Any) -> Sequence[PendingTurn]:
        self._fail("pending")
        return await super().pending(space, **arguments)

    async def settle(self, space: str, settled: Sequence[Settled], **arguments: Any) -> None:
        self._fail("settle")
        await super().settle(space, settled, **arguments)

    async def spend(self, space: str, usage: Any) -> None:
        self._fail("spend")
        await super().spend(space, usage)


@pytest.mark.parametrize("method", ["pending", "settle"])
async def test_a_ledger_that_is_away_is_waited_for_and_nothing_is_there_twice(tmp_path: Path, method: str) -> None:
    system = ToySystem()
    service = Ledgered(system, Flaky(tmp_path / "ledger.db", **{method: 2}))
    await service.start()
    client = AsyncClient(service)
    await client.add_turns(SPACE, turns("a", "b"))
    assert (await client.flush(SPACE)).done
    assert list((await states(client)).values()) == [TurnState.SEARCHABLE] * 2
    assert system.turn_ids(SPACE) == ["a", "b"]
    await service.drain(5.0)
    await service.close()


async def test_usage_that_could_not_be_written_is_written_with_the_next(tmp_path: Path) -> None:
    service = Ledgered(ToySystem(), Flaky(tmp_path / "ledger.db", spend=3))  # a flush tries twice
    await service.start()
    client = AsyncClient(service)
    await client.retrieve(SPACE, "12")
    assert (await client.flush(SPACE)).space_usage == ()
    await client.retrieve(SPACE, "345")
    (spent,) = (await client.flush(SPACE)).space_usage
    assert (spent.calls, spent.input_tokens) == (2, 5)
    await service.drain(5.0)
    await service.close()


class LosesAnswers(SqliteLedger):
    """A ledger whose commits happen and whose answers are lost, once for each method."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.losing = {"admit", "begin_erasure"}

    async def admit(self, space: str, turns: Sequence[Turn]) -> Admission:
        admission = await super().admit(space, turns)
        return self._lose("admit", admission)

    async def begin_erasure(self, space: str, *arguments: Any, **named: Any) -> Begun:
        begun = await super().begin_erasure(space, *arguments, **named)
        return self._lose("begin_erasure", begun)

    def _lose(self, method: str, answer: Answer) -> Answer:
        if method in self.losing:
            self.losing.remove(method)
            raise UnavailableError("STORE_UNREACHABLE", "the connection was lost")
        return answer


async def test_what_was_written_down_is_done_although_the_ledgers_answer_was_lost(tmp_path: Path) -> None:
    system = ToySystem()
    service = Ledgered(system, LosesAnswers(tmp_path / "ledger.db"))
    await service.start()
    client = AsyncClient(service)
    assert await reason_of(client.add_turns(SPACE, turns("a"))) == "STORE_UNREACHABLE"
    await until(lambda: system.turn_ids(SPACE) == ["a"])
    assert await reason_of(client.reset(SPACE, request_id="r")) == "STORE_UNREACHABLE"
    await until(lambda: system.turn_ids(SPACE) == [])
    await client.add_turns(SPACE, turns("new"))
    await client.flush(SPACE)
    assert (await client.reset(SPACE, request_id="r")).erased_turns == 1
    assert await found(client) == {"new"}
    await service.drain(5.0)
    await service.close()


async def test_what_failed_attempts_cost_is_counted(tmp_path: Path) -> None:
    class Costly(ToySystem):
        async def forget(self, space: str, selection: Selection, *, dry_run: bool) -> Erasure:
            usage.count(model="toy-model", purpose="update")
            return await super().forget(space, selection, dry_run=dry_run)

    system = Costly()
    service = Ledgered(system, Flaky(tmp_path / "ledger.db", settle=1))
    await service.start()
    client = AsyncClient(service)
    await client.add_turns(SPACE, turns("a"))
    await client.flush(SPACE)
    system.erase_fault = ValueError()
    assert await reason_of(client.forget(SPACE, turn_ids=["a"])) == "INTERNAL"
    spent = {one.purpose: one.calls for one in (await client.flush(SPACE)).space_usage}
    assert spent == {"extraction": 2, "update": 2}  # settled at the second attempt; forgotten before it, and in vain
    await service.drain(5.0)
    await service.close()
