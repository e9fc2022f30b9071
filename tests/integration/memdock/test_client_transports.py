"""The clients against both faces, against strangers, and over TLS."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from memdock.client import connect_async
from memdock.errors import ConfigurationError, FieldError, MemdockError, error
from memdock.service import Call, Method
from memdock.transport import Endpoint
from memdock.types import Limits, Turn
from memdock.v1 import memory_pb2 as pb
from memdock.wire import MAX_ANSWER_BYTES, to_json
from support.certificates import Certificates, make_certificates
from support.faces import ScriptedService, faces_of, until

SCHEMES = ("grpc", "http")
TURN = Turn(turn_id="t", session_id="s", role="user", text="x")


def facts(problem: MemdockError) -> tuple[Any, ...]:
    return type(problem), problem.reason, problem.message, problem.fields, problem.retry_after_s


async def refusal(work: Awaitable[Any]) -> MemdockError:
    with pytest.raises(MemdockError) as caught:
        await work
    return caught.value


async def test_an_error_is_the_same_over_both_faces() -> None:
    sent = error("TURN_ID_CONFLICT", "ход есть", fields=[FieldError("turns[0].turn_id", "другой")], retry_after_s=None)

    async def answer(method: Method, request: Any, call: Call) -> Any:
        raise sent

    async with faces_of(ScriptedService(answer)) as faces:
        for url in faces.urls:
            async with connect_async(url) as client:
                assert facts(await refusal(client.add_turns("a", [TURN]))) == facts(sent)
                refused = await refusal(client.retrieve("..", " ", top_k=1000))
                assert [item.field for item in refused.fields] == ["space_id", "query", "top_k"]


async def test_too_large_is_the_same_over_both_faces() -> None:
    turns = [Turn(turn_id=str(index), session_id="s", role="user", text="x" * 60_000) for index in range(100)]
    async with faces_of(ScriptedService()) as faces:
        for url in faces.urls:
            async with connect_async(url) as client:
                problem = await refusal(client.add_turns("a", turns))
                assert problem.reason == "PAYLOAD_TOO_LARGE"
                assert "max_request_bytes" in problem.message


async def test_a_bug_before_the_service_is_the_same_over_both_faces(capsys: pytest.CaptureFixture[str]) -> None:
    async def admit(method: Method, path: Any, call: Call) -> None:
        raise RuntimeError("secret")

    async with faces_of(ScriptedService(), admit=admit) as faces:
        for url in faces.urls:
            async with connect_async(url) as client:
                problem = await refusal(client.describe())
                assert problem.reason == "INTERNAL"
    assert "secret" not in capsys.readouterr().out + problem.message


@pytest.mark.parametrize("missing", [0, 1])
async def test_the_largest_answer_comes_through_and_one_byte_more_does_not(missing: int) -> None:
    async def answer(method: Method, request: Any, call: Call) -> Any:
        return pb.RetrieveResponse(memories=[pb.Memory(text="x" * sizes[call.request_id])])

    def grown(size: Callable[[Any], int], largest: int) -> int:
        text_bytes = largest - 100
        return text_bytes + largest - size(pb.RetrieveResponse(memories=[pb.Memory(text="x" * text_bytes)]))

    sizes: dict[str, int] = {}
    async with faces_of(ScriptedService(answer)) as faces:
        for url, size in ((faces.grpc, lambda m: m.ByteSize()), (faces.http, lambda m: len(to_json(m)))):
            async with connect_async(url, headers={"x-request-id": "r"}) as client:
                sizes["r"] = grown(size, MAX_ANSWER_BYTES) + missing
                if missing:
                    assert "ask for fewer items" in (await refusal(client.retrieve("a", "q"))).message
                else:
                    assert len((await client.retrieve("a", "q")).memories[0].text) == sizes["r"]


async def test_what_the_client_is_given_goes_with_each_call() -> None:
    service = ScriptedService()
    async with faces_of(service) as faces:
        for url in faces.urls:
            async with connect_async(url, system="rag", key="k", headers={"x-team": "a"}, timeout_s=5.0) as client:
                await client.reset("a", request_id="r")
    assert [request for _, request, _ in service.seen] == [
        pb.ResetRequest(system="rag", space_id="a", request_id="r")
    ] * 2
    for _, _, call in service.seen:
        assert call.credential == "k"
        assert 4 < (call.left_s() or 0) <= 5


async def test_pages_are_followed_to_the_last() -> None:
    async def answer(method: Method, request: Any, call: Call) -> Any:
        start = int(request.page_token or 0)
        following = str(start + request.page_size) if start < 4 else ""
        turns = [pb.TurnRecord(turn_id=str(index)) for index in range(start, start + request.page_size)]
        return pb.ListTurnsResponse(turns=turns, next_page_token=following)

    async with faces_of(ScriptedService(answer)) as faces:
        for url in faces.urls:
            async with connect_async(url) as client:
                assert [turn.turn_id async for turn in client.list_turns("a", page_size=2)] == list("012345")


async def test_flush_asks_again_until_it_is_done_or_out_of_time() -> None:
    async def answer(method: Method, request: Any, call: Call) -> Any:
        await asyncio.sleep(0.02)
        return pb.FlushResponse(done=len(service.seen) >= 3, pending=1)

    service = ScriptedService(answer)
    async with faces_of(service) as faces, connect_async(faces.grpc) as client:
        assert (await client.flush("a")).done
        assert len(service.seen) == 3
        service.seen.clear()
        assert not (await client.flush("a", timeout_s=0.03)).done
        waits_s = [request.timeout.ToNanoseconds() / 1e9 for _, request, _ in service.seen]
        assert all(wait_s <= 0.03 for wait_s in waits_s)
    async with faces_of(service) as faces, connect_async(faces.grpc, timeout_s=10.0) as client:
        service.seen.clear()
        await client.flush_once("a", timeout_s=99)
        assert service.seen[0][1].timeout.seconds == 9


async def test_a_call_that_is_cancelled_is_cancelled_on_the_wire() -> None:
    async def answer(method: Method, request: Any, call: Call) -> Any:
        await asyncio.sleep(30)

    async with faces_of(ScriptedService(answer)) as faces:
        for url in faces.urls:
            for threaded in (False, True):
                async with connect_async(url, threaded=threaded) as client:
                    faces.told.clear()
                    going = asyncio.ensure_future(client.describe())
                    await asyncio.sleep(0.1)
                    going.cancel()
                    with pytest.raises(asyncio.CancelledError):
                        await going
                    await until(lambda: faces.told)
                    assert faces.told[0].reason == "CANCELLED"


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_nobody_at_the_address_is_unreachable_by_name(scheme: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    async with connect_async(f"{scheme}://127.0.0.1:{port}", timeout_s=3.0) as client:
        problem = await refusal(client.describe())
    assert problem.reason == "ADAPTER_UNREACHABLE"
    assert f"127.0.0.1:{port}" in problem.message


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_silence_ends_with_the_deadline(scheme: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"{scheme}://127.0.0.1:{silent.getsockname()[1]}"
        async with connect_async(url, timeout_s=0.3) as client:
            assert (await refusal(client.describe())).reason == "DEADLINE_EXCEEDED"


@asynccontextmanager
async def speaking(answer: bytes) -> AsyncIterator[int]:
    """A server that says the same bytes to everyone, and its port."""

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1024)
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(speak, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


def http_answer(status: str, content_type: str, body: bytes) -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (http_answer("200 OK", "text/html", b"<html>secret</html>"), "ADAPTER_PROTOCOL_ERROR"),
        (http_answer("200 OK", "application/json", b'{"system": {"secret": 1}}'), "ADAPTER_PROTOCOL_ERROR"),
        (http_answer("404 Not Found", "text/plain", b"secret"), "ADAPTER_PROTOCOL_ERROR"),
        (http_answer("302 Found", "text/plain", b"secret"), "ADAPTER_PROTOCOL_ERROR"),
        (http_answer("503 Busy", "text/html", b"secret"), "ADAPTER_UNREACHABLE"),
        (http_answer("413 Too Large", "text/html", b"secret"), "PAYLOAD_TOO_LARGE"),
        (b"secret secret\r\n\r\n", "ADAPTER_PROTOCOL_ERROR"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{", "ADAPTER_UNREACHABLE"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n" + b" " * 17_000_000, "ADAPTER_PROTOCOL_ERROR"),
        (b"", "ADAPTER_UNREACHABLE"),
    ],
)
async def test_a_stranger_over_http_is_named_without_its_words(answer: bytes, reason: str) -> None:
    async with speaking(answer) as port, connect_async(f"http://127.0.0.1:{port}", timeout_s=3.0) as client:
        problem = await refusal(client.describe())
    assert problem.reason == reason
    assert "secret" not in problem.message


Handler = Callable[[bytes, Any], Awaitable[bytes]]


@asynccontextmanager
async def answering(handle: Handler) -> AsyncIterator[str]:
    """A gRPC server that answers every call with `handle`, and its URL."""

    class Stranger(grpc.GenericRpcHandler):
        def service(self, handler_call_details: Any) -> Any:
            return grpc.unary_unary_rpc_method_handler(handle)

    server = grpc.aio.server(handlers=(Stranger(),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"grpc://127.0.0.1:{port}"
    finally:
        await server.stop(0)


async def test_a_stranger_over_grpc_is_named_without_its_words() -> None:
    async def garbage(body: bytes, context: Any) -> bytes:
        return b"\xff secret"

    async def refusing(body: bytes, context: Any) -> bytes:
        context.set_code(grpc.StatusCode.PERMISSION_DENIED)
        context.set_details("secret")
        return b""

    async def endless(body: bytes, context: Any) -> bytes:
        return b"\x0a" * (17 * 1024 * 1024)

    for handle in (garbage, refusing, endless):
        async with answering(handle) as url, connect_async(url, timeout_s=5.0) as client:
            problem = await refusal(client.describe())
        assert problem.reason == "ADAPTER_PROTOCOL_ERROR"
        assert "secret" not in problem.message


async def test_the_wrong_kind_of_server_is_no_riddle() -> None:
    async with faces_of(ScriptedService()) as faces:
        async with connect_async(f"http://127.0.0.1:{faces.grpc_port}", timeout_s=3.0) as client:
            assert (await refusal(client.describe())).reason in ("ADAPTER_PROTOCOL_ERROR", "ADAPTER_UNREACHABLE")
        async with connect_async(f"grpc://127.0.0.1:{faces.http_port}", timeout_s=3.0) as client:
            assert (await refusal(client.describe())).reason == "ADAPTER_UNREACHABLE"


async def test_a_prefix_is_kept() -> None:
    path = ""

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal path
        path = (await reader.readline()).decode().split(" ")[1]
        await reader.read(1024)
        writer.write(http_answer("200 OK", "application/json", b"{}"))
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(speak, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with connect_async(f"http://127.0.0.1:{port}/memory/", timeout_s=3.0) as client:
            _ = [turn async for turn in client.list_turns("a~b", page_size=5)]
    assert path == "/memory/v1/systems/-/spaces/a~b/turns?page_size=5"


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return make_certificates(tmp_path)


async def test_tls_and_mutual_tls(certificates: Certificates) -> None:
    for asks_clients, with_certificate, fits in ((False, False, True), (True, True, True), (True, False, False)):
        tls = certificates.client(with_certificate=with_certificate)
        async with faces_of(ScriptedService(), tls=certificates.server(asks_clients=asks_clients)) as faces:
            for port, scheme in ((faces.grpc_port, "grpcs"), (faces.http_port, "https")):
                for threaded in (False, True):
                    url = f"{scheme}://127.0.0.1:{port}"
                    async with connect_async(url, tls=tls, timeout_s=3.0, threaded=threaded) as client:
                        if fits:
                            assert (await client.describe()).system == ""
                        else:
                            assert (await refusal(client.describe())).reason == "ADAPTER_UNREACHABLE"


async def test_an_authority_that_is_not_ours_is_not_trusted(certificates: Certificates) -> None:
    async with faces_of(ScriptedService(), tls=certificates.server()) as faces:
        for port, scheme in ((faces.grpc_port, "grpcs"), (faces.http_port, "https")):
            async with connect_async(f"{scheme}://127.0.0.1:{port}", timeout_s=3.0) as client:
                assert (await refusal(client.describe())).reason == "ADAPTER_UNREACHABLE"


@pytest.mark.parametrize("scheme", ["grpcs", "https"])
async def test_tls_files_that_cannot_be_used_are_named(tmp_path: Path, scheme: str) -> None:
    from memdock.tls import Tls

    with pytest.raises(ConfigurationError, match=r"no\.pem"):
        connect_async(f"{scheme}://127.0.0.1:1", tls=Tls(ca_file=tmp_path / "no.pem"))


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:1",
        "ftp://a:1",
        "grpc://a",
        "grpc://a:1/x",
        "http://u:p@a:1",
        "http://a:1?x=1",
        "grpc://a:b",
        "grpc://",
        "127.0.0.1:7450",
        "http://a:99999",
        "grpc://a:99999",
        "http://[::1",
    ],
)
def test_an_address_of_another_form_is_refused_by_name_with_the_forms_there_are(url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Endpoint(url=url)
    assert isinstance(caught.value, MemdockError)
    assert isinstance(caught.value, ValueError)
    told = str(caught.value)
    assert told == caught.value.message
    assert repr(url) in told or "no user, query" in told
    assert "grpc://host:port" in told or "no user, query" in told


async def test_a_restarted_server_is_found_again() -> None:
    limits = Limits()
    async with faces_of(ScriptedService(), limits=limits) as faces:
        port = faces.grpc_port
        client = connect_async(f"grpc://127.0.0.1:{port}", timeout_s=5.0)
        await client.describe()
    try:
        assert (await refusal(client.describe())).reason == "ADAPTER_UNREACHABLE"
        from memdock.face_grpc import grpc_server

        server, _ = grpc_server(ScriptedService(), f"127.0.0.1:{port}", observe=lambda served: None)
        await server.start()
        try:
            async with asyncio.timeout(5):
                await client.describe()
        finally:
            await server.stop(0)
    finally:
        await client.close()
