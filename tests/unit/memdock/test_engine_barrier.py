"""Flush tells the truth, in time, about the whole space."""

import asyncio
import time
from pathlib import Path

from memdock import convert
from memdock.client import AsyncClient
from memdock.engine import Ledgered
from memdock.ledger import Counts
from memdock.service import METHODS, Call
from memdock.sqlite_ledger import SqliteLedger
from memdock.types import Limits
from memdock.v1 import memory_pb2 as pb
from support.served import SPACE, served, turns, until
from support.toys import ToySystem


async def test_done_is_never_true_while_an_earlier_turn_is_pending(tmp_path: Path) -> None:
    system = ToySystem()
    system.gate.clear()
    async with served(system, tmp_path) as client:
        await client.add_turns(SPACE, turns("a"))
        early = await client.flush_once(SPACE, timeout_s=0.1)
        assert (early.done, early.pending) == (False, 1)
        system.gate.set()
        late = await client.flush(SPACE)
        assert (late.done, late.pending, late.failed_count) == (True, 0, 0)


class LastTurnEndsBeforeTheCount(SqliteLedger):
    """Counts the whole space only once no turn of it is pending."""

    gate: asyncio.Event

    async def counts(self, space: str, *, upto: int | None = None) -> Counts:
        counts = await super().counts(space, upto=upto)
        while upto is None and counts.pending:
            self.gate.set()
            await asyncio.sleep(0)
            counts = await super().counts(space)
        return counts


async def test_a_flush_that_counts_nothing_pending_is_done(tmp_path: Path) -> None:
    system, ledger = ToySystem(), LastTurnEndsBeforeTheCount(tmp_path / "ledger.db")
    system.gate.clear()
    ledger.gate = system.gate
    service = Ledgered(system, ledger)
    await service.start()
    await AsyncClient(service).add_turns(SPACE, turns("a"))
    flushed = await AsyncClient(service).flush_once(SPACE, timeout_s=0.0)
    assert (flushed.done, flushed.pending) == (True, 0)
    await service.drain(5.0)
    await service.close()


async def test_an_unknown_space_is_flushed_at_once(tmp_path: Path) -> None:
    async with served(ToySystem(), tmp_path) as client:
        flushed = await client.flush("unknown")
        assert (flushed.done, flushed.pending, flushed.failed, flushed.space_usage) == (True, 0, (), ())


async def test_failures_of_the_whole_space_are_told_also_when_nothing_is_pending(tmp_path: Path) -> None:
    system = ToySystem()
    system.failing = {f"t{number}" for number in range(300)}
    async with served(system, tmp_path) as client:
        for start in (0, 150):
            await client.add_turns(SPACE, turns(*(f"t{number}" for number in range(start, start + 150))))
        await client.flush(SPACE)
        flushed = await client.flush(SPACE)
        assert (flushed.done, flushed.failed_count) == (True, 300)
        assert [one.turn_id for one in flushed.failed] == [f"t{number}" for number in range(256)]
        assert (await client.retrieve(SPACE, "hello")).failed_count == 300


async def test_turns_accepted_later_do_not_count_for_done_but_for_pending(tmp_path: Path) -> None:
    system = ToySystem()
    async with served(system, tmp_path, batch_turns=1) as client:
        system.gate.clear()
        await client.add_turns(SPACE, turns("a"))
        flushing = asyncio.create_task(client.flush(SPACE))
        await asyncio.sleep(0.02)
        await client.add_turns(SPACE, turns("b"))
        system.entered.clear()
        system.gate.set()
        await until(system.entered.is_set)
        system.gate.clear()
        flushed = await flushing
        assert flushed.done
        assert flushed.pending in (0, 1)
        system.gate.set()


async def test_a_space_that_is_reset_meanwhile_is_flushed(tmp_path: Path) -> None:
    system = ToySystem()
    system.gate.clear()
    async with served(system, tmp_path) as client:
        await client.add_turns(SPACE, turns("a"))
        await until(system.entered.is_set)
        flushing = asyncio.create_task(client.flush(SPACE))
        await asyncio.sleep(0.02)
        resetting = asyncio.create_task(client.reset(SPACE))
        assert (await flushing).done
        system.gate.set()
        await resetting


async def flush_with(
    service: Ledgered, *, timeout_s: float | None, deadline_s: float | None
) -> tuple[pb.FlushResponse, float]:
    started = time.monotonic()
    request = pb.FlushRequest(space_id=SPACE)
    if timeout_s is not None:
        request.timeout.CopyFrom(convert.wire_duration(timeout_s))
    call = Call(deadline=None if deadline_s is None else started + deadline_s)
    response = await service.call(METHODS["Flush"], request, call)
    return response, time.monotonic() - started


async def test_the_wait_is_cut_to_the_limit_and_to_the_callers_deadline(tmp_path: Path) -> None:
    system = ToySystem(limits=Limits(max_wait_s=1.2))
    system.gate.clear()
    service = Ledgered(system, SqliteLedger(tmp_path / "ledger.db"))
    await service.start()
    await AsyncClient(service).add_turns(SPACE, turns("a"))
    for timeout_s, deadline_s, expected_s in (
        (0.3, None, 0.3),
        (60.0, None, 1.2),
        (0.1, 5.0, 0.1),
        (60.0, 1.0, 0.95),
        (0.0, None, 0.0),
    ):
        response, took_s = await flush_with(service, timeout_s=timeout_s, deadline_s=deadline_s)
        assert not response.done
        assert expected_s <= took_s < expected_s + 1.0
    system.gate.set()
    await service.drain(5.0)
    await service.close()


async def test_many_waiting_flushes_do_not_delay_a_retrieve(tmp_path: Path) -> None:
    system = ToySystem()
    async with served(system, tmp_path) as client:
        await client.add_turns(SPACE, turns("a"))
        await client.flush(SPACE)
        system.gate.clear()
        await client.add_turns(SPACE, turns("b"))
        flushing = [asyncio.create_task(client.flush(SPACE)) for _ in range(64)]
        await asyncio.sleep(0.05)
        started = time.perf_counter()
        answer = await client.retrieve(SPACE, "hello")
        assert time.perf_counter() - started < 2.0
        assert (len(answer.memories), answer.pending) == (1, 1)
        system.gate.set()
        assert all(flushed.done for flushed in await asyncio.gather(*flushing))
