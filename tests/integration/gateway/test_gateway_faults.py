"""Adapters that are slow, away, rude or broken, over both kinds of upstream."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import grpc
import grpc.aio
import pytest

from memdock.client import AsyncClient
from memdock.errors import MemdockError, error
from memdock.service import Call, Method
from memdock.transport import Endpoint, open_transport
from memdock.types import Turn
from memdock.v1 import memory_pb2 as pb
from memdock.wire import MAX_ANSWER_BYTES
from support.faces import ScriptedService, faces_of, until
from support.gateways import RunningGateway, gateway_over

SCHEMES = ("grpc", "http")
FOREIGN = "the words of somebody else"
TURN = Turn(turn_id="t", session_id="s", role="user", text="x")
UNMENDABLE = ("VALIDATION_FAILED", "TURN_ID_CONFLICT", "PROVIDER_RATE_LIMITED", "FEATURE_UNSUPPORTED", "INTERNAL")


@asynccontextmanager
async def over(folder: Path, scheme: str, service: ScriptedService, **system: Any) -> AsyncIterator[RunningGateway]:
    """A gateway over a scripted adapter that is reached by `scheme`, as the system `rag`."""
    async with faces_of(service) as faces:
        systems = [{"name": "rag", "address": getattr(faces, scheme)} | system]
        async with gateway_over(folder, systems) as gateway:
            yield gateway


@asynccontextmanager
async def single_tries(
    gateway: RunningGateway, scheme: str, *, system: str = "rag", timeout_s: float = 10
) -> AsyncIterator[AsyncClient]:
    """A client that does not try again by itself."""
    transport = open_transport(Endpoint(url=gateway.url(scheme), credential=gateway.keys["all"]))
    try:
        yield AsyncClient(transport, system=system, timeout_s=timeout_s)
    finally:
        await transport.close()


async def refused(work: Awaitable[Any]) -> MemdockError:
    with pytest.raises(MemdockError) as caught:
        await work
    return caught.value


def failing(*reasons: str, **fields: Any) -> Callable[[Method, Any, Call], Awaitable[Any]]:
    """Fails with each reason once, then answers."""
    left = list(reasons)

    async def answer(method: Method, request: Any, call: Call) -> Any:
        if left:
            raise error(left.pop(0), FOREIGN, **fields)
        results = [pb.TurnResult(turn_id=turn.turn_id, state=pb.TURN_STATE_SEARCHABLE) for turn in request.turns]
        return pb.AddTurnsResponse(results=results)

    return answer


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_unavailable_twice_then_fine_is_one_answer(tmp_path: Path, scheme: str) -> None:
    service = ScriptedService(failing("STORE_UNREACHABLE", "DRAINING"))
    async with over(tmp_path, scheme, service) as gateway, single_tries(gateway, scheme) as client:
        assert len((await client.add_turns("s", [TURN])).results) == 1
    assert len(service.seen) == 3
    assert len({request.SerializeToString(deterministic=True) for _, request, _ in service.seen}) == 1


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("reason", ["STORE_UNREACHABLE", "IN_PROGRESS"])
async def test_a_client_does_not_multiply_the_tries(tmp_path: Path, scheme: str, reason: str) -> None:
    service = ScriptedService(failing(*[reason] * 99, retry_after_s=0.01))
    async with over(tmp_path, scheme, service) as gateway, gateway.client(scheme, "rag") as client:
        problem = await refused(client.add_turns("s", [TURN]))
    assert (problem.reason, problem.retried, len(service.seen)) == (reason, True, 4)


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_what_a_repeat_cannot_mend_is_asked_once_and_told(tmp_path: Path, scheme: str) -> None:
    service = ScriptedService()
    async with over(tmp_path, scheme, service) as gateway, single_tries(gateway, scheme) as client:
        for reason in (
            "VALIDATION_FAILED",
            "TURN_ID_CONFLICT",
            "PROVIDER_RATE_LIMITED",
            "FEATURE_UNSUPPORTED",
            "INTERNAL",
        ):
            service.clear()
            service.answer = failing(reason)
            problem = await refused(client.add_turns("s", [TURN]))
            assert (problem.reason, len(service.seen)) == (reason, 1)


async def test_a_dead_adapter_is_named_within_seconds(tmp_path: Path) -> None:
    systems = [{"name": "rag", "address": "grpc://127.0.0.1:9"}, {"name": "web", "address": "http://127.0.0.1:9"}]
    async with gateway_over(tmp_path, systems) as gateway:
        for scheme in SCHEMES:
            async with single_tries(gateway, scheme) as client, asyncio.timeout(8):
                problem = await refused(client.retrieve("s", "q"))
            assert (problem.reason, problem.http_status) == ("ADAPTER_UNREACHABLE", 503)
            assert "rag" in problem.message
            assert "127.0.0.1" not in problem.message, "where a system stands is not the caller's business"


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_a_slow_system_is_refused_when_its_queue_is_full_and_slows_nobody(tmp_path: Path, scheme: str) -> None:
    release = asyncio.Event()

    async def stuck(method: Method, request: Any, call: Call) -> Any:
        await release.wait()
        return method.response()

    slow, quick = ScriptedService(stuck), ScriptedService()
    async with faces_of(slow) as slow_faces, faces_of(quick) as quick_faces:
        systems = [
            {"name": "rag", "address": getattr(slow_faces, scheme), "concurrency": 2, "queue": 3},
            {"name": "quick", "address": getattr(quick_faces, scheme)},
        ]
        async with gateway_over(tmp_path, systems) as gateway, single_tries(gateway, scheme) as client:
            inside = [asyncio.create_task(client.retrieve("s", "q")) for _ in range(5)]
            await until(lambda: len(slow.seen) == 2)
            await asyncio.sleep(0.05)
            problem = await refused(client.retrieve("s", "q"))
            assert (problem.reason, problem.http_status) == ("QUEUE_FULL", 429)
            assert problem.retry_after_s
            async with gateway.client(scheme, "quick") as other, asyncio.timeout(2):
                await other.retrieve("s", "q")
            async with asyncio.timeout(2):
                flush = asyncio.create_task(client.flush_once("s", timeout_s=1))
                await until(lambda: slow.seen[-1][0] == "Flush")
            release.set()
            await asyncio.gather(*inside, flush)
    assert len(slow.seen) == 6


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_sixty_four_waiting_flushes_do_not_delay_a_retrieve(tmp_path: Path, scheme: str) -> None:
    release = asyncio.Event()

    async def answer(method: Method, request: Any, call: Call) -> Any:
        if method.name == "Flush":
            await release.wait()
        return method.response()

    service = ScriptedService(answer)
    async with over(tmp_path, scheme, service, concurrency=4) as gateway, single_tries(gateway, scheme) as client:
        flushes = [asyncio.create_task(client.flush_once("s")) for _ in range(64)]
        await until(lambda: len(service.seen) == 64)
        async with asyncio.timeout(2):
            await client.retrieve("s", "q")
        release.set()
        await asyncio.gather(*flushes)


# Each HTTP call is a connection with two ends in this process, which may be allowed no more than 1,024 files.
@pytest.mark.parametrize(("scheme", "callers"), [("grpc", 1000), ("http", 400)])
async def test_of_many_callers_at_once_those_without_a_place_are_told_to_come_back(
    tmp_path: Path, scheme: str, callers: int
) -> None:
    release = asyncio.Event()
    outcomes: Counter[str] = Counter()
    places = 64 + 256

    async def answer(method: Method, request: Any, call: Call) -> Any:
        await release.wait()
        return method.response()

    async def ask_once(client: AsyncClient, number: int) -> None:
        try:
            await client.retrieve(f"s{number}", "q")
        except MemdockError as problem:
            outcomes[problem.reason] += 1
        else:
            outcomes["OK"] += 1
        if outcomes.total() == callers - places:
            release.set()

    async with over(tmp_path, scheme, ScriptedService(answer)) as gateway:
        async with single_tries(gateway, scheme, timeout_s=60) as client, asyncio.timeout(60):
            await asyncio.gather(*(ask_once(client, number) for number in range(callers)))
        async with aiohttp.ClientSession() as session, session.get(gateway.url("http") + "/metrics") as response:
            metrics = await response.text()
    assert outcomes == {"OK": places, "QUEUE_FULL": callers - places}
    for gauge in ("inside", "waiting"):
        assert f'memdock_gateway_calls_{gauge}{{system="rag"}} 0.0' in metrics


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_a_deadline_ends_the_call_and_the_work_behind_it(tmp_path: Path, scheme: str) -> None:
    cancelled = asyncio.Event()

    async def stuck(method: Method, request: Any, call: Call) -> Any:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    service = ScriptedService(stuck)
    async with over(tmp_path, scheme, service) as gateway, single_tries(gateway, scheme, timeout_s=0.3) as client:
        async with asyncio.timeout(2):
            problem = await refused(client.retrieve("s", "q"))
            await cancelled.wait()
    assert (problem.reason, problem.http_status) == ("DEADLINE_EXCEEDED", 504)


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_a_system_has_a_deadline_of_its_own(tmp_path: Path, scheme: str) -> None:
    async def stuck(method: Method, request: Any, call: Call) -> Any:
        await asyncio.Event().wait()

    service = ScriptedService(stuck)
    async with over(tmp_path, scheme, service, deadline_s=0.3) as gateway, single_tries(gateway, scheme) as client:
        async with asyncio.timeout(3):
            problem = await refused(client.retrieve("s", "q"))
    assert (problem.reason, problem.http_status) == ("ADAPTER_TIMEOUT", 504)
    assert "rag" in problem.message


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_the_end_waits_for_those_inside_as_long_as_it_is_told_to(tmp_path: Path, scheme: str) -> None:
    async def stuck(method: Method, request: Any, call: Call) -> Any:
        await asyncio.Event().wait()

    service = ScriptedService(stuck)
    async with faces_of(service) as faces, asyncio.timeout(8):
        async with gateway_over(tmp_path, [{"name": "rag", "address": faces.grpc}], drain_s=0.3) as gateway:
            transport = open_transport(Endpoint(url=gateway.url(scheme), credential=gateway.keys["all"]))
            inside = asyncio.create_task(AsyncClient(transport, system="rag").retrieve("s", "q"))
            await until(lambda: service.seen)
        problem = await refused(inside)
        assert (problem.reason, problem.http_status) == ("DRAINING", 503)
        await transport.close()


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_who_asks_for_the_systems_is_told_of_the_end_too(tmp_path: Path, scheme: str) -> None:
    asked = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await reader.read()
        writer.close()

    async with await asyncio.start_server(silent, "127.0.0.1", 0) as server, asyncio.timeout(8):
        systems = [{"name": "rag", "address": f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"}]
        async with gateway_over(tmp_path, systems, drain_s=0.05) as gateway:
            transport = open_transport(Endpoint(url=gateway.url(scheme), credential=gateway.keys["all"]))
            inside = asyncio.create_task(AsyncClient(transport).list_systems())
            await asked.wait()
        assert (await refused(inside)).reason == "DRAINING"
        await transport.close()


WRONG_ANSWERS = [
    ("retrieve", pb.RetrieveResponse(memories=[pb.Memory(memory_id=str(n), text=FOREIGN) for n in range(11)])),
    ("retrieve", pb.RetrieveResponse(memories=[pb.Memory(text=FOREIGN)])),
    ("add_turns", pb.AddTurnsResponse(results=[pb.TurnResult(turn_id=FOREIGN, state=pb.TURN_STATE_SEARCHABLE)])),
    ("add_turns", pb.AddTurnsResponse()),
    ("forget", pb.ForgetResponse(erased_turn_ids=[FOREIGN])),
    ("describe", pb.DescribeResponse(system=FOREIGN)),
]


def ask(client: AsyncClient, call: str) -> Awaitable[Any]:
    return {
        "retrieve": lambda: client.retrieve("s", "q"),
        "add_turns": lambda: client.add_turns("s", [TURN]),
        "forget": lambda: client.forget("s", turn_ids=["t"]),
        "describe": client.describe,
    }[call]()


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_an_answer_that_cannot_be_right_is_the_adapters_error(tmp_path: Path, scheme: str) -> None:
    service = ScriptedService()
    async with over(tmp_path, scheme, service) as gateway, single_tries(gateway, scheme) as client:
        for name, answer in WRONG_ANSWERS:

            async def wrong(method: Method, request: Any, call: Call, answer: Any = answer) -> Any:
                return answer

            service.answer = wrong
            problem = await refused(ask(client, name))
            assert (problem.reason, problem.http_status) == ("ADAPTER_PROTOCOL_ERROR", 500), answer
            assert FOREIGN not in problem.message


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_an_adapter_cannot_refuse_in_the_gateways_name(tmp_path: Path, scheme: str) -> None:
    service = ScriptedService()
    async with over(tmp_path, scheme, service) as gateway, single_tries(gateway, scheme) as client:
        for reason in ("CREDENTIAL_INVALID", "SPACE_FORBIDDEN", "SYSTEM_NOT_FOUND"):
            service.answer = failing(reason)
            problem = await refused(client.add_turns("s", [TURN]))
            assert problem.reason == "ADAPTER_PROTOCOL_ERROR"
            assert FOREIGN not in problem.message


HTTP_GARBAGE = [
    b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nwords",
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 22\r\n\r\n" + b'{"memories":"FOREIGN"}',
    b"HTTP/1.1 500 No\r\ncontent-length: 7\r\n\r\nFOREIGN",
    b"HTTP/1.1 302 No\r\nlocation: http://127.0.0.1:9/FOREIGN\r\ncontent-length: 0\r\n\r\n",
    b"FOREIGN\r\n\r\n",
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n" + b" " * (MAX_ANSWER_BYTES + 1),
]


async def test_an_http_stranger_is_an_adapters_error(tmp_path: Path) -> None:
    async with AsyncExitStack() as ends:
        systems = []
        for number, garbage in enumerate(HTTP_GARBAGE):
            port = await ends.enter_async_context(http_stranger(garbage))
            systems.append({"name": f"stranger-{number}", "address": f"http://127.0.0.1:{port}"})
        gateway = await ends.enter_async_context(gateway_over(tmp_path, systems))
        for system in systems:
            for scheme in SCHEMES:
                async with single_tries(gateway, scheme, system=system["name"]) as client:
                    problem = await refused(client.retrieve("s", "q"))
                assert (problem.reason, problem.http_status) == ("ADAPTER_PROTOCOL_ERROR", 500), system
                assert "FOREIGN" not in problem.message


@asynccontextmanager
async def http_stranger(garbage: bytes) -> AsyncIterator[int]:
    """A server that answers every request with the same bytes; its port."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(garbage)
        with suppress(ConnectionError):
            await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


async def test_a_grpc_stranger_is_an_adapters_error(tmp_path: Path) -> None:
    async def in_its_own_words(body: bytes, context: Any) -> bytes:
        await context.abort(grpc.StatusCode.UNKNOWN, "FOREIGN")
        return b""

    def saying(garbage: bytes) -> Any:
        async def answer(body: bytes, context: Any) -> bytes:
            return garbage

        return answer

    answers = [saying(garbage) for garbage in (b"\xff\xff\xff", b"\x0a\x02\x12", b"\0" * (MAX_ANSWER_BYTES + 1))]
    async with AsyncExitStack() as ends:
        systems = []
        for number, answer in enumerate([*answers, in_its_own_words]):
            port = await ends.enter_async_context(grpc_stranger(answer))
            systems.append({"name": f"stranger-{number}", "address": f"grpc://127.0.0.1:{port}"})
        gateway = await ends.enter_async_context(gateway_over(tmp_path, systems))
        for system in systems:
            for scheme in SCHEMES:
                async with single_tries(gateway, scheme, system=system["name"]) as client:
                    problem = await refused(client.retrieve("s", "q"))
                assert (problem.reason, problem.http_status) == ("ADAPTER_PROTOCOL_ERROR", 500), system
                assert "FOREIGN" not in problem.message


@asynccontextmanager
async def grpc_stranger(answer: Any) -> AsyncIterator[int]:
    """A server that answers every call so; its port."""

    class Stranger(grpc.GenericRpcHandler):
        def service(self, details: grpc.HandlerCallDetails) -> Any:
            return grpc.unary_unary_rpc_method_handler(answer)

    server = grpc.aio.server(handlers=(Stranger(),), options=(("grpc.max_send_message_length", -1),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield port
    finally:
        await server.stop(0)
