"""The blocking client: several threads, several clients, beside an event loop that serves."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from memdock import MemdockError, NotFoundError, Turn, TurnState, connect
from memdock.errors import error
from memdock.service import Call, Method
from memdock.sync_client import Client
from memdock.v1 import memory_pb2 as pb
from support.faces import ScriptedService, faces_of

SCHEMES = ("grpc", "http")


async def answer(method: Method, request: Any, call: Call) -> Any:
    if method.name == "Describe":
        raise error("SYSTEM_NOT_FOUND", "no such system")
    if method.name == "AddTurns":
        state = pb.TURN_STATE_SEARCHABLE
        return pb.AddTurnsResponse(results=[pb.TurnResult(turn_id=turn.turn_id, state=state) for turn in request.turns])
    if method.name == "ListMemories":
        first = not request.page_token
        memories = [pb.Memory(memory_id="a" if first else "b")]
        return pb.ListMemoriesResponse(memories=memories, next_page_token="b" if first else "")
    if method.name == "ListTurns":
        return pb.ListTurnsResponse(turns=[pb.TurnRecord(turn_id="t")])
    if method.name == "Retrieve":
        return pb.RetrieveResponse(memories=[pb.Memory(text=request.query)])
    return method.response(done=True) if method.name == "Flush" else method.response()


def life(client: Client) -> None:
    turn = Turn(turn_id="t", session_id="s", role="user", text="x")
    assert client.add_turns("a", [turn]).results[0].state is TurnState.SEARCHABLE
    assert client.flush("a").done
    assert client.flush_once("a").done
    assert client.retrieve("a", "q", top_k=1).memories[0].text == "q"
    assert client.forget("a", turn_ids=["t"]).erased_turn_ids == ()
    assert client.reset("a").erased_turns == 0
    assert client.list_systems() == ()
    assert [turn.turn_id for turn in client.list_turns("a")] == ["t"]
    assert [memory.memory_id for memory in client.list_memories("a")] == ["a", "b"]
    with pytest.raises(NotFoundError):
        client.describe()


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_it_has_every_call(scheme: str) -> None:
    async with faces_of(ScriptedService(answer)) as faces:

        def work() -> None:
            with connect(getattr(faces, scheme)) as client:
                life(client)

        await asyncio.to_thread(work)


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_threads_share_clients_and_nothing_is_logged(scheme: str, caplog: pytest.LogCaptureFixture) -> None:
    async with faces_of(ScriptedService(answer)) as faces:

        def work() -> None:
            clients = [connect(getattr(faces, scheme)) for _ in range(3)]
            with ThreadPoolExecutor(6) as pool:
                texts = pool.map(lambda i: clients[i % 3].retrieve("a", str(i)).memories[0].text, range(90))
                assert list(texts) == [str(i) for i in range(90)]
            for client in clients:
                client.close()

        await asyncio.to_thread(work)
    assert caplog.records == []


async def test_a_closed_client_may_be_closed_again() -> None:
    client = connect("grpc://127.0.0.1:1")
    client.close()
    client.close()


async def test_an_address_of_another_form_leaves_no_thread() -> None:
    import threading

    before = threading.active_count()
    with pytest.raises(ValueError, match="must be"):
        connect("ftp://127.0.0.1:1")
    assert threading.active_count() == before


async def test_nobody_there_is_one_error() -> None:
    def work() -> str:
        with connect("grpc://127.0.0.1:1", timeout_s=3.0) as client, pytest.raises(MemdockError) as caught:
            client.describe()
        return caught.value.reason

    assert await asyncio.to_thread(work) == "ADAPTER_UNREACHABLE"


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_to_close_it_ends_the_calls_of_other_threads(scheme: str) -> None:
    entered = asyncio.Event()

    async def wait(method: Method, request: Any, call: Call) -> Any:
        entered.set()
        await asyncio.sleep(30)

    async with faces_of(ScriptedService(wait)) as faces:
        client = await asyncio.to_thread(connect, getattr(faces, scheme))
        waiting = asyncio.create_task(asyncio.to_thread(client.retrieve, "a", "q"))
        await entered.wait()
        await asyncio.to_thread(client.close)
        with pytest.raises(RuntimeError, match="the client is closed"):
            await asyncio.wait_for(waiting, 5)
        with pytest.raises(RuntimeError, match="the client is closed"):
            client.describe()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_key_that_no_header_can_hold_is_refused_without_being_told(scheme: str) -> None:
    with pytest.raises(ValueError, match="printable ASCII") as refused:
        connect(f"{scheme}://127.0.0.1:1", key="mdk_secret\nx")
    assert "secret" not in str(refused.value)
