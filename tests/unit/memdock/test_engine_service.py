"""The service as a whole: Describe, names, readiness, the end."""

import asyncio
import hashlib
from pathlib import Path
from typing import Any

import pytest

from memdock.client import AsyncClient
from memdock.engine import Ledgered
from memdock.errors import MemdockError, NotFoundError, UnavailableError
from memdock.service import METHODS, Call
from memdock.sqlite_ledger import SqliteLedger
from memdock.types import Feature, Limits, Support, TurnState
from memdock.v1 import memory_pb2 as pb
from support.served import SPACE, reason_of, served, states, turns, until
from support.toys import ToySystem, without


async def test_describe_tells_every_feature_once_and_pins_the_configuration(tmp_path: Path) -> None:
    system = ToySystem(features=without(Feature.VALIDITY), limits=Limits(max_top_k=7, max_wait_s=2.5))
    service = Ledgered(system, SqliteLedger(tmp_path / "ledger.db"))
    response = await service.call(METHODS["Describe"], pb.DescribeRequest(), Call())
    assert sorted(one.feature for one in response.features) == list(range(1, 17))
    described = await AsyncClient(service).describe()
    assert (described.system, described.protocol_versions) == ("toy", ("v1",))
    assert described.features[Feature.VALIDITY] is Support.UNSUPPORTED
    assert described.features[Feature.SOURCES] is Support.EMULATED
    assert (described.limits.max_top_k, described.limits.max_wait_s) == (7, 2.5)
    assert described.config_digest == "sha256:" + hashlib.sha256(b'{"chunk":1}').hexdigest()


async def test_a_lone_server_accepts_its_own_name_or_none(tmp_path: Path) -> None:
    async with served(ToySystem(), tmp_path) as client:
        service: Any = client._service
        for name in ("", "toy"):
            await service.call(METHODS["Flush"], pb.FlushRequest(system=name, space_id=SPACE), Call())
        with pytest.raises(NotFoundError) as problem:
            await service.call(METHODS["Flush"], pb.FlushRequest(system="other", space_id=SPACE), Call())
        assert problem.value.reason == "SYSTEM_NOT_FOUND"


async def test_a_call_of_gateways_is_not_served(tmp_path: Path) -> None:
    async with served(ToySystem(), tmp_path) as client:
        assert await reason_of(client.list_systems()) == "FEATURE_UNSUPPORTED"


async def test_readiness_follows_the_store_the_ledger_and_the_drain(tmp_path: Path) -> None:
    class WithStore(ToySystem):
        away = False

        async def check_ready(self) -> None:
            if self.away:
                raise UnavailableError("STORE_UNREACHABLE", "the store is away")

    system = WithStore()
    service = Ledgered(system, SqliteLedger(tmp_path / "ledger.db"))
    with pytest.raises(MemdockError):
        await service.check_ready()
    await service.start()
    assert await service.check_ready() == {"toy": True}
    system.away = True
    with pytest.raises(UnavailableError):
        await service.check_ready()
    system.away = False
    assert await service.check_ready() == {"toy": True}
    await service.drain(1.0)
    with pytest.raises(UnavailableError) as problem:
        await service.check_ready()
    assert problem.value.reason == "DRAINING"
    await service.close()


async def test_a_system_that_cannot_start_leaves_the_ledger_free(tmp_path: Path) -> None:
    class Broken(ToySystem):
        closed = False

        async def start(self) -> None:
            raise UnavailableError("STORE_UNREACHABLE", "no store at all")

        async def close(self) -> None:
            self.closed = True

    system = Broken()
    with pytest.raises(UnavailableError, match="no store at all"):
        await Ledgered(system, SqliteLedger(tmp_path / "ledger.db")).start()
    assert not system.closed
    async with served(ToySystem(), tmp_path) as client:
        assert await states(client) == {}


async def test_the_end_answers_what_is_inside_refuses_the_rest_and_loses_nothing(tmp_path: Path) -> None:
    system = ToySystem()
    system.gate.clear()
    service = Ledgered(system, SqliteLedger(tmp_path / "ledger.db"), batch_turns=2)
    await service.start()
    client = AsyncClient(service)
    await client.add_turns(SPACE, turns("a", "b", "c"))
    await client.add_turns("other", turns("x"))
    await until(lambda: len(system.log) == 2)
    system.read_delay_s = 0.1
    inside = [asyncio.create_task(client.retrieve(SPACE, "hello")) for _ in range(5)]
    flushing = asyncio.create_task(client.flush_once(SPACE))
    resetting = asyncio.create_task(client.reset("other"))
    await asyncio.sleep(0.02)
    draining = asyncio.create_task(service.drain(5.0))
    await asyncio.sleep(0.02)
    assert await reason_of(client.retrieve(SPACE, "hello")) == "DRAINING"
    flushed = await flushing
    assert (flushed.done, flushed.pending) == (False, 3)
    assert [answer.pending for answer in await asyncio.gather(*inside)] == [3] * 5
    assert not draining.done()
    system.gate.set()
    assert (await resetting).erased_turns == 1
    await draining
    await service.close()
    assert system.turn_ids(SPACE) == ["a", "b"]  # the batch in flight, and no other
    async with served(system, tmp_path) as again:
        assert (await again.flush(SPACE)).done
        assert list((await states(again)).values()) == [TurnState.SEARCHABLE] * 3
        assert system.turn_ids(SPACE) == ["a", "b", "c"]


async def test_an_end_that_takes_too_long_is_cut_and_gone_on_with(tmp_path: Path) -> None:
    system = ToySystem()
    system.gate.clear()
    service = Ledgered(system, SqliteLedger(tmp_path / "ledger.db"))
    await service.start()
    await AsyncClient(service).add_turns(SPACE, turns("a"))
    await until(system.entered.is_set)
    async with asyncio.timeout(2):
        await service.drain(0.1)
        await service.close()
    system.gate.set()
    await asyncio.sleep(0.05)
    async with served(system, tmp_path) as again:
        assert (await again.flush(SPACE)).done
        assert system.turn_ids(SPACE) == ["a"]
        assert system.calls("forget") == [("a",)]
