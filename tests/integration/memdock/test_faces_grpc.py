"""The gRPC face as a stranger's client sees it: bytes, codes, trailers, health, reflection."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import grpc.aio
import pytest
import pytest_asyncio
from google.rpc import error_details_pb2, status_pb2
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from memdock.error_wire import DETAILS_KEY
from memdock.errors import FieldError, UnauthenticatedError, UnavailableError, error
from memdock.face_grpc import grpc_server
from memdock.http_server import MAX_HEAD_BYTES
from memdock.service import METHODS, Call, Method
from memdock.types import Limits
from memdock.v1 import memory_pb2 as pb
from support.faces import Faces, ScriptedService, faces_of, until

pytestmark = pytest.mark.asyncio(loop_scope="module")

HEALTH = "/grpc.health.v1.Health"
SERVING, NOT_SERVING, SERVICE_UNKNOWN = b"\x08\x01", b"\x08\x02", b"\x08\x03"


class Raw:
    """Bytes over one channel."""

    def __init__(self, channel: grpc.aio.Channel, faces: Faces, service: ScriptedService) -> None:
        self.channel = channel
        self.faces = faces
        self.service = service

    async def __call__(self, method: str, body: bytes = b"", **options: Any) -> bytes:
        call: Any = self.channel.unary_unary(METHODS[method].grpc_path)
        answer: bytes = await call(body, **options)
        return answer

    async def refused(self, method: str, body: bytes = b"", **options: Any) -> grpc.aio.AioRpcError:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await self(method, body, **options)
        return caught.value


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def started() -> AsyncIterator[Raw]:
    service = ScriptedService()
    async with (
        faces_of(service, limits=Limits(max_request_bytes=2000)) as faces,
        grpc.aio.insecure_channel(f"127.0.0.1:{faces.grpc_port}") as channel,
    ):
        yield Raw(channel, faces, service)


@pytest.fixture
def raw(started: Raw) -> Raw:
    """The started face with nothing seen and the empty answers."""
    started.service.clear()
    started.faces.told.clear()
    return started


def trailers_of(problem: grpc.aio.AioRpcError) -> dict[str, Any]:
    return {key: value for key, value in problem.trailing_metadata() or ()}  # noqa: C416  it has keys of its own


def status_of(problem: grpc.aio.AioRpcError) -> status_pb2.Status:
    return status_pb2.Status.FromString(trailers_of(problem)[DETAILS_KEY])


RESET = pb.ResetRequest(space_id="a").SerializeToString()


async def test_an_error_is_a_status_with_details(raw: Raw) -> None:
    async def answer(method: Method, request: Any, call: Call) -> Any:
        raise error("QUEUE_FULL", "очередь полна", fields=[FieldError("a", "b")], retry_after_s=0.25)

    raw.service.answer = answer
    problem = await raw.refused("Reset", RESET, metadata=(("x-request-id", "r-1"),))
    assert problem.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert problem.details() == "очередь полна"
    assert trailers_of(problem)["x-request-id"] == "r-1"
    status = status_of(problem)
    assert (status.code, status.message) == (8, "очередь полна")
    info, bad, retry = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest(), error_details_pb2.RetryInfo()
    assert [detail.Unpack(kind) for detail, kind in zip(status.details, (info, bad, retry), strict=True)] == [True] * 3
    assert (info.reason, info.domain) == ("QUEUE_FULL", "memdock.dev")
    assert [(item.field, item.description) for item in bad.field_violations] == [("a", "b")]
    assert retry.retry_delay.ToMilliseconds() == 250


async def test_an_unknown_field_and_wrong_bytes_are_refused(raw: Raw) -> None:
    for body, reason in ((RESET + b"\x98\x06\x01", "UNKNOWN_FIELD"), (b"\xff\xff", "MALFORMED_REQUEST")):
        problem = await raw.refused("Reset", body)
        assert problem.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert raw.faces.told[-1].reason == reason
    assert raw.service.seen == []


async def test_a_request_past_the_limit_is_refused_by_grpc_itself(raw: Raw) -> None:
    problem = await raw.refused("Reset", b"\x12" * 2001)
    assert problem.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert DETAILS_KEY not in trailers_of(problem)


async def test_metadata_and_deadline_reach_the_call(raw: Raw) -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    metadata = (("authorization", "Bearer key"), ("traceparent", trace), ("x-request-id", "r"))
    await raw("Reset", RESET, metadata=metadata, timeout=60)
    await raw("Reset", RESET)
    (_, _, call), (_, _, bare) = raw.service.seen
    assert (call.credential, call.trace_parent, call.request_id) == ("key", trace, "r")
    assert 59 < (call.left_s() or 0) < 61  # gRPC rounds a timeout up
    assert (bare.credential, bare.deadline) == ("", None)


@pytest.mark.parametrize("name", ["authorization", "x-request-id"])  # gRPC itself passes on one traceparent
async def test_metadata_that_is_read_may_stand_there_once(raw: Raw, name: str) -> None:
    problem = await raw.refused("Reset", RESET, metadata=((name, "a"), ("x-other", "a"), (name, "a")))
    assert problem.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert problem.details() == f"{name}: this header is given more than once; send it once"
    assert raw.faces.told[-1].reason == "MALFORMED_REQUEST"
    assert raw.service.seen == []
    await raw("Reset", RESET, metadata=((name, "a"), ("x-other", "a"), ("x-other", "a"), ("x-other-bin", b"a")))


async def test_metadata_is_bounded_by_grpc_itself(raw: Raw) -> None:
    problem = await raw.refused("Reset", RESET, metadata=(("x-long", "y" * MAX_HEAD_BYTES),))
    assert problem.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert f"vs. {MAX_HEAD_BYTES})" in (problem.details() or "")
    assert raw.service.seen == []


async def test_a_call_that_is_cancelled_cancels_the_work_behind_it(raw: Raw) -> None:
    cancelled = asyncio.Event()

    async def answer(method: Method, request: Any, call: Call) -> Any:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    raw.service.answer = answer
    going = asyncio.ensure_future(raw("Reset", RESET))
    await until(lambda: raw.service.seen)
    going.cancel()
    await asyncio.wait_for(cancelled.wait(), 5)
    await until(lambda: raw.faces.told)
    assert raw.faces.told[0].reason == "CANCELLED"
    cancelled.clear()
    problem = await raw.refused("Reset", RESET, timeout=0.1)
    assert problem.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    await asyncio.wait_for(cancelled.wait(), 5)


async def test_a_bug_shows_none_of_its_words(raw: Raw) -> None:
    async def answer(method: Method, request: Any, call: Call) -> Any:
        raise RuntimeError("secret of a turn")

    raw.service.answer = answer
    problem = await raw.refused("Reset", RESET)
    assert problem.code() is grpc.StatusCode.INTERNAL
    assert "secret" not in str(problem) + str(status_of(problem))


async def test_an_answer_past_its_limit_is_told_so(raw: Raw) -> None:
    async def answer(method: Method, request: Any, call: Call) -> Any:
        return pb.RetrieveResponse(memories=[pb.Memory(text="x" * (16 * 1024 * 1024))])

    raw.service.answer = answer
    problem = await raw.refused("Retrieve", pb.RetrieveRequest(space_id="a", query="q").SerializeToString())
    assert problem.code() is grpc.StatusCode.INTERNAL
    assert "ask for fewer items" in (problem.details() or "")


async def test_an_unknown_call_is_unimplemented(raw: Raw) -> None:
    call: Any = raw.channel.unary_unary("/memdock.v1.MemoryService/Dream")
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call(b"")
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_a_caller_is_refused_before_anything_is_parsed() -> None:
    async def admit(method: Method, path: Any, call: Call) -> None:
        raise UnauthenticatedError("CREDENTIAL_MISSING", "no key")

    service = ScriptedService()
    async with (
        faces_of(service, admit=admit) as faces,
        grpc.aio.insecure_channel(f"127.0.0.1:{faces.grpc_port}") as channel,
    ):
        problem = await Raw(channel, faces, service).refused("Reset", b"\xff")
    assert problem.code() is grpc.StatusCode.UNAUTHENTICATED


async def test_health_is_checked_and_watched() -> None:
    away = False

    async def check_ready() -> dict[str, bool]:
        if away:
            raise UnavailableError("STORE_UNREACHABLE", "the store is away")
        return {}

    async with (
        faces_of(ScriptedService(), check_ready=check_ready) as faces,
        grpc.aio.insecure_channel(f"127.0.0.1:{faces.grpc_port}") as channel,
    ):
        check: Any = channel.unary_unary(f"{HEALTH}/Check")
        watching: Any = channel.unary_stream(f"{HEALTH}/Watch")
        named = b"\x0a\x18memdock.v1.MemoryService"
        assert [await check(b""), await check(named)] == [SERVING, SERVING]
        watch = watching(b"")
        assert await watch.read() == SERVING
        away = True
        assert await asyncio.wait_for(watch.read(), 5) == NOT_SERVING
        assert await check(b"") == NOT_SERVING
        watch.cancel()
        stranger = watching(b"\x0a\x01x")
        assert await stranger.read() == SERVICE_UNKNOWN
        stranger.cancel()
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await check(b"\x0a\x01x")
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND


async def test_reflection_names_the_services_and_gives_the_contract(raw: Raw) -> None:
    stub = reflection_pb2_grpc.ServerReflectionStub(raw.channel)
    asked = [
        reflection_pb2.ServerReflectionRequest(list_services=""),
        reflection_pb2.ServerReflectionRequest(file_containing_symbol="memdock.v1.MemoryService"),
    ]
    listed, described = [answer async for answer in stub.ServerReflectionInfo(iter(asked))]
    names = {service.name for service in listed.list_services_response.service}
    assert names >= {"memdock.v1.MemoryService", "memdock.v1.GatewayService"}
    assert any(b"memdock/v1/memory.proto" in file for file in described.file_descriptor_response.file_descriptor_proto)


async def test_a_port_in_use_is_told(raw: Raw) -> None:
    address = f"127.0.0.1:{raw.faces.grpc_port}"
    with pytest.raises(OSError, match=f"cannot listen on {address}"):
        grpc_server(ScriptedService(), address)
