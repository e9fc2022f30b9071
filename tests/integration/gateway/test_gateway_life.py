"""The whole life of a space: through the gateway, on every pair of faces, it is the same as without it."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from memdock.client import AsyncClient, connect_async
from memdock.errors import MemdockError
from memdock.server import ServeOptions, Server
from memdock.sqlite_ledger import SqliteLedger
from memdock.transport import Endpoint, open_transport
from memdock.types import Turn
from support.gateways import RunningGateway, gateway_over
from support.toys import ToySystem

pytestmark = pytest.mark.asyncio(loop_scope="module")

TURNS = [
    Turn(turn_id="D1:1", session_id="s1", role="user", text="I moved to Kazan.", time=datetime(2024, 5, 1, tzinfo=UTC)),
    Turn(turn_id="D1:2", session_id="s1", role="assistant", text="Kazan is fine.", metadata={"user_id": "x"}),
    Turn(turn_id="D2:1", session_id="s2", role="user", text="Снег идёт 🙂", time_zone="Europe/Moscow"),
]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def direct(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    """The system itself; a fresh one for each system name would differ in nothing."""
    folder = tmp_path_factory.mktemp("adapter")
    async with Server(ToySystem(), SqliteLedger(folder / "ledger.db"), ServeOptions()) as server:
        yield server


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def gateway(direct: Server, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningGateway]:
    systems = [
        {"name": "over-grpc", "address": f"grpc://127.0.0.1:{direct.ports['grpc']}"},
        {"name": "over-http", "address": f"http://127.0.0.1:{direct.ports['http']}"},
    ]
    async with gateway_over(tmp_path_factory.mktemp("gateway"), systems) as running:
        yield running


async def reason(work: Any) -> str:
    with pytest.raises(MemdockError) as refused:
        await work
    return f"{refused.value.code} {refused.value.reason} {[field.field for field in refused.value.fields]}"


def bare(answer: Any) -> Any:
    """An answer without its times, its ledger's moment of counting, and the toy's running numbers of memories."""
    plain: dict[str, tuple[object, ...]] = {name: () for name in ("timing", "space_usage") if hasattr(answer, name)}
    if hasattr(answer, "memories"):
        plain["memories"] = tuple(replace(memory, memory_id="") for memory in answer.memories)
    if hasattr(answer, "erased_memory_ids"):
        plain["erased_memory_ids"] = ("",) * len(answer.erased_memory_ids)
    if hasattr(answer, "results"):
        plain["results"] = tuple(replace(one, memory_ids=()) for one in answer.results)
    return replace(answer, **plain) if plain else answer


async def life(client: AsyncClient, space: str) -> list[Any]:
    """Every call, good and bad; what each answered."""
    story: list[Any] = [
        await client.retrieve(space, "Kazan"),
        await client.add_turns(space, TURNS),
        await client.flush(space),
        await client.add_turns(space, TURNS),
        await reason(client.add_turns(space, [replace(TURNS[0], text="another")])),
        await reason(client.add_turns(space, [replace(TURNS[0], text="")])),
        await reason(client.retrieve("..", "Kazan")),
        await reason(client.retrieve(space, " ")),
        await reason(client.forget(space)),
        await client.retrieve(space, "Kazan", top_k=1),
        await client.retrieve(space, "Снег", session_ids=["s2"]),
        await client.forget(space, turn_ids=["D1:1", "nowhere"], dry_run=True),
        await client.forget(space, turn_ids=["D1:1", "nowhere"], request_id="once"),
        await client.forget(space, turn_ids=["D1:1", "nowhere"], request_id="once"),
        await client.add_turns(space, TURNS[:1]),
        await client.retrieve(space, "Kazan"),
        [replace(turn, memory_ids=()) async for turn in client.list_turns(space)],
        [replace(memory, memory_id="") async for memory in client.list_memories(space)],
        await client.reset(space),
        await client.retrieve(space, "Kazan"),
    ]
    return [bare(answer) for answer in story]


@pytest.mark.parametrize("system", ["over-grpc", "over-http"])
@pytest.mark.parametrize("face", ["grpc", "http"])
async def test_the_gateway_changes_no_answer(direct: Server, gateway: RunningGateway, face: str, system: str) -> None:
    async with connect_async(f"grpc://127.0.0.1:{direct.ports['grpc']}") as client:
        expected = await life(client, "life")
    async with gateway.client(face, system) as client:
        assert await life(client, "life") == expected


@pytest.mark.parametrize("face", ["grpc", "http"])
async def test_describe_differs_in_the_name_alone(direct: Server, gateway: RunningGateway, face: str) -> None:
    async with connect_async(f"http://127.0.0.1:{direct.ports['http']}") as client:
        expected = await client.describe()
    async with gateway.client(face, "over-http") as client:
        assert await client.describe() == replace(expected, system="over-http")


@pytest.mark.parametrize("face", ["grpc", "http"])
async def test_spaces_of_two_systems_and_two_names_are_apart(gateway: RunningGateway, face: str) -> None:
    async with gateway.client(face, "over-grpc") as one, gateway.client(face, "over-http") as other:
        for client, space in ((one, "a"), (one, "A"), (other, "a")):
            await client.add_turns(space, [replace(TURNS[0], text=f"Kazan {space}")])
            await client.flush(space)
        assert [memory.text for memory in (await one.retrieve("a", "Kazan")).memories] == ["Kazan a"]
        assert [memory.text for memory in (await one.retrieve("A", "Kazan")).memories] == ["Kazan A"]
        await one.reset("a")
        assert [memory.text for memory in (await other.retrieve("a", "Kazan")).memories] == ["Kazan a"]
        for client, space in ((one, "A"), (other, "a")):
            await client.reset(space)


@pytest.mark.parametrize("face", ["grpc", "http"])
async def test_a_turn_sent_ten_times_at_once_is_one_turn(gateway: RunningGateway, face: str) -> None:
    async with gateway.client(face, "over-grpc") as client:
        answers = await asyncio.gather(*(client.add_turns(f"ten-{face}", TURNS[:1]) for _ in range(10)))
        assert sorted(answer.results[0].duplicate for answer in answers) == [False] + [True] * 9


@pytest.mark.parametrize("face", ["grpc", "http"])
async def test_an_unknown_or_absent_system_is_not_found(gateway: RunningGateway, face: str) -> None:
    for name in ("nothing-here", ""):
        async with gateway.client(face, name) as client:
            assert await reason(client.retrieve("a", "Kazan")) == "5 SYSTEM_NOT_FOUND []"


async def test_systems_are_listed_with_their_readiness(gateway: RunningGateway, tmp_path: Path) -> None:
    systems = [
        {"name": "there", "address": gateway.url("http")},
        {"name": "gone", "address": "grpc://127.0.0.1:9"},
    ]
    async with gateway_over(tmp_path, systems) as outer:
        for face in ("grpc", "http"):
            async with outer.client(face, "") as client:
                listed = await client.list_systems()
            assert [(one.system, one.ready) for one in listed] == [("there", True), ("gone", False)]


async def test_readiness_is_told_by_system_and_goes_down_with_the_last(gateway: RunningGateway, tmp_path: Path) -> None:
    gone = {"name": "gone", "address": "grpc://127.0.0.1:9"}
    for number, (systems, status, told) in enumerate(
        (
            ([{"name": "there", "address": gateway.url("http")}, gone], 200, {"there": True, "gone": False}),
            ([gone], 503, None),
        )
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        async with gateway_over(folder, systems) as outer, aiohttp.ClientSession() as session:
            async with session.get(outer.url("http") + "/readyz") as response:
                document = await response.json(content_type=None)
                assert (response.status, document.get("systems")) == (status, told)
            async with session.get(outer.url("http") + "/livez") as response:
                assert response.status == 200
            transport = open_transport(Endpoint(url=outer.url("grpc")))
            if status == 200:
                await transport.check_ready(5)
            else:
                with pytest.raises(MemdockError):
                    await transport.check_ready(5)
            await transport.close()
