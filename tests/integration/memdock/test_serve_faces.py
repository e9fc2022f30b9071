"""A served system over gRPC and over HTTP: the same life, the same answers; health, deadlines, the token, the ports."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import grpc.aio
import pytest

from memdock.client import ConnectedClient, connect_async
from memdock.errors import MemdockError, UnavailableError
from memdock.server import ServeOptions, Server
from memdock.sqlite_ledger import SqliteLedger
from memdock.types import Feature, Limits
from support.served import reason_of, turn, turns
from support.toys import ToySystem, without

SCHEMES = ("grpc", "http")
HEALTH = "/grpc.health.v1.Health/Check"


@asynccontextmanager
async def serving(folder: Path, system: ToySystem, **options: Any) -> AsyncIterator[Server]:
    async with Server(system, SqliteLedger(folder / "ledger.db"), ServeOptions(**options)) as server:
        yield server


def connect(server: Server, scheme: str, **options: Any) -> ConnectedClient:
    return connect_async(f"{scheme}://127.0.0.1:{server.ports[scheme]}", **options)


async def refusal(work: Any) -> tuple[str, str, int, tuple[str, ...]]:
    with pytest.raises(MemdockError) as problem:
        await work
    error = problem.value
    return error.reason, error.message, error.http_status, tuple(field.field for field in error.fields)


async def life(client: ConnectedClient, space: str) -> list[Any]:
    """What a space answers from its first turn to its Reset, without what depends on the clock."""
    seen: list[Any] = [await client.describe()]
    answers: list[Any] = [
        await client.add_turns(space, [turn("a"), turn("b", session_id="s2"), turn("c"), turn("bad")]),
        await client.flush(space),
        await client.add_turns(space, turns("a", "bad")),
        await client.flush(space),
        await client.retrieve(space, "hello a", top_k=2, session_ids=["s1"]),
        await client.forget(space, session_ids=["s2"], dry_run=True),
        await client.forget(space, session_ids=["s2"], request_id="r"),
        await client.forget(space, session_ids=["s2"], request_id="r"),
        await client.forget(space, turn_ids=["zz"]),
    ]
    seen += [replace(answer, timing=()) for answer in answers]
    seen.append([record async for record in client.list_turns(space, page_size=2)])
    seen.append([memory async for memory in client.list_memories(space, page_size=2)])
    seen.append(await refusal(client.add_turns(space, [turn("a", "other")])))
    seen.append(await refusal(client.forget(space, memory_ids=["m"], turn_ids=["a"])))
    seen.append(await refusal(client.retrieve(space, "x", top_k=1000)))
    seen.append(replace(await client.reset(space), timing=()))
    seen.append(replace(await client.retrieve(space, "hello"), timing=()))
    return seen


async def test_a_space_lives_the_same_life_over_both_faces(tmp_path: Path) -> None:
    lives = []
    for scheme in SCHEMES:
        (tmp_path / scheme).mkdir()
        system = ToySystem()
        system.failing = {"bad"}
        async with serving(tmp_path / scheme, system) as server, connect(server, scheme) as client:
            lives.append(await life(client, "space"))
    assert lives[0] == lives[1]


async def test_one_turn_ten_times_at_once_over_both_faces_is_one_turn(tmp_path: Path) -> None:
    system = ToySystem()
    async with serving(tmp_path, system) as server, connect(server, "grpc") as one, connect(server, "http") as other:
        sending = [client.add_turns("space", turns("a")) for client in (one, other) for _ in range(5)]
        answers = await asyncio.gather(*sending)
        assert sorted(answer.results[0].duplicate for answer in answers) == [False] + [True] * 9
        await one.flush("space")
        assert system.turn_ids("space") == ["a"]


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_a_deadline_is_kept_and_cancels_the_work_behind_it(tmp_path: Path, scheme: str) -> None:
    system = ToySystem()
    system.read_delay_s = 30.0
    async with serving(tmp_path, system) as server, connect(server, scheme, timeout_s=0.5) as client:
        started = time.monotonic()
        assert await reason_of(client.retrieve("space", "hello")) in ("DEADLINE_EXCEEDED", "ADAPTER_TIMEOUT")
        assert time.monotonic() - started < 2.0
        await asyncio.sleep(0.1)
        assert system.reads_cancelled == 1


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_undeclared_features_are_refused_alike(tmp_path: Path, scheme: str) -> None:
    features = without(Feature.FILTER_SESSIONS, Feature.FORGET_TURNS, Feature.LIST_MEMORIES)
    async with serving(tmp_path, ToySystem(features=features)) as server, connect(server, scheme) as client:
        assert await reason_of(client.retrieve("space", "x", session_ids=["s"])) == "FILTER_UNSUPPORTED"
        assert await reason_of(client.forget("space", turn_ids=["t"])) == "SELECTOR_UNSUPPORTED"
        assert await reason_of(anext(client.list_memories("space"))) == "FEATURE_UNSUPPORTED"


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_the_servers_own_limits_hold_and_are_told(tmp_path: Path, scheme: str) -> None:
    limits = Limits(max_top_k=3, max_turns_per_request=2)
    async with serving(tmp_path, ToySystem(), limits=limits) as server, connect(server, scheme) as client:
        assert (await client.describe()).limits == limits
        await client.retrieve("space", "x", top_k=3)
        assert await reason_of(client.retrieve("space", "x", top_k=4)) == "VALIDATION_FAILED"
        await client.add_turns("space", turns("a", "b"))
        assert await reason_of(client.add_turns("space", turns("c", "d", "e"))) == "VALIDATION_FAILED"


async def health(server: Server) -> bytes:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.ports['grpc']}") as channel:
        check: Any = channel.unary_unary(HEALTH)
        answered: bytes = await check(b"")
        return answered


async def status(server: Server, path: str) -> int:
    url = f"http://127.0.0.1:{server.ports['http']}{path}"
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        return response.status


async def test_readiness_goes_down_with_the_store_and_comes_back(tmp_path: Path) -> None:
    class WithStore(ToySystem):
        away = False

        async def check_ready(self) -> None:
            if self.away:
                raise UnavailableError("STORE_UNREACHABLE", "the store is away")

    system = WithStore()
    async with serving(tmp_path, system) as server:
        for away in (False, True, False):
            system.away = away
            assert await health(server) == (b"\x08\x02" if away else b"\x08\x01")
            assert await status(server, "/readyz") == (503 if away else 200)
            assert await status(server, "/livez") == 200


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_a_token_is_asked_for_where_one_is_set(tmp_path: Path, scheme: str) -> None:
    async with serving(tmp_path, ToySystem(), token="right") as server:
        for key, reason in (("", "CREDENTIAL_MISSING"), ("wrong", "CREDENTIAL_INVALID")):
            async with connect(server, scheme, key=key) as client:
                assert await reason_of(client.describe()) == reason
        async with connect(server, scheme, key="right") as client:
            assert (await client.describe()).system == "toy"


async def test_the_port_file_is_whole_and_true(tmp_path: Path) -> None:
    port_file = tmp_path / "ports.json"
    async with serving(tmp_path, ToySystem(), port_file=port_file) as server:
        assert json.loads(port_file.read_text()) == dict(server.ports)
        assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []


async def test_a_port_file_that_cannot_be_written_is_told_and_nothing_stays_open(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="nowhere"):
        async with serving(tmp_path, ToySystem(), port_file=tmp_path / "nowhere" / "ports.json"):
            pass
    async with serving(tmp_path, ToySystem()) as second:  # the ledger is free again
        assert await status(second, "/readyz") == 200


@pytest.mark.parametrize("face", SCHEMES)
async def test_a_port_in_use_is_told_and_nothing_stays_open(tmp_path: Path, face: str) -> None:
    (tmp_path / "second").mkdir()
    async with serving(tmp_path, ToySystem()) as server:
        taken = {face: f"127.0.0.1:{server.ports[face]}"}
        with pytest.raises(OSError, match=rf"cannot listen on .*{server.ports[face]}"):
            async with serving(tmp_path / "second", ToySystem(), **taken):
                pass
        async with serving(tmp_path / "second", ToySystem()) as second:
            assert await status(second, "/readyz") == 200


@pytest.mark.parametrize("face", SCHEMES)
@pytest.mark.parametrize("address", ["127.0.0.1:99999", "127.0.0.1:-1", "127.0.0.1:x", "127.0.0.1", ":1", ""])
async def test_an_address_that_is_none_is_told(tmp_path: Path, face: str, address: str) -> None:
    with pytest.raises(OSError, match=f"cannot listen on {address}: it is not of the form host:port"):
        async with serving(tmp_path, ToySystem(), **{face: address}):
            pass


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_waiting_flushes_hold_up_no_retrieve(tmp_path: Path, scheme: str) -> None:
    system = ToySystem()
    async with serving(tmp_path, system) as server, connect(server, scheme) as client:
        system.gate.clear()
        await client.add_turns("space", turns("a"))
        flushing = [asyncio.create_task(client.flush("space")) for _ in range(64)]
        await asyncio.sleep(0.2)
        started = time.perf_counter()
        await client.retrieve("space", "hello")
        assert time.perf_counter() - started < 2.0
        system.gate.set()
        assert all(flushed.done for flushed in await asyncio.gather(*flushing))
