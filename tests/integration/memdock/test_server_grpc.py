"""The end of a gRPC server, as callers see it who know nothing of it."""

import asyncio
from typing import Any

import grpc
import grpc.aio
import pytest

from memdock.face_grpc import grpc_server
from memdock.service import METHODS, Call, Method
from memdock.v1 import memory_pb2 as pb
from support.faces import ScriptedService, until

DESCRIBE = METHODS["Describe"]


async def codes_until_the_end(port: int, codes: list[grpc.StatusCode]) -> None:
    """Calls again and again on one connection until nobody is there; each call's code."""
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", (("grpc.use_local_subchannel_pool", 1),)) as channel:
        call: Any = channel.unary_unary(DESCRIBE.grpc_path)
        while grpc.StatusCode.UNAVAILABLE not in codes[-1:]:
            try:
                await call(b"")
            except grpc.aio.AioRpcError as refused:
                codes.append(refused.code())
            else:
                codes.append(grpc.StatusCode.OK)


@pytest.mark.parametrize("time", range(5))
async def test_calls_that_come_while_it_stops_are_unavailable_and_never_cancelled(time: int) -> None:
    server, port = grpc_server(ScriptedService(), "127.0.0.1:0", observe=lambda served: None)
    await server.start()
    codes: list[list[grpc.StatusCode]] = [[] for _ in range(40)]
    callers = [asyncio.create_task(codes_until_the_end(port, one)) for one in codes]
    await until(lambda: all(len(one) > 1 for one in codes))
    await server.stop(1.0)
    await asyncio.gather(*callers)
    assert {code for one in codes for code in one} == {grpc.StatusCode.OK, grpc.StatusCode.UNAVAILABLE}


async def test_an_answer_on_its_way_is_waited_for() -> None:
    release = asyncio.Event()

    async def large(method: Method, request: Any, call: Call) -> Any:
        await release.wait()
        return pb.DescribeResponse(system="x" * 10_000_000)

    service = ScriptedService(large)
    server, port = grpc_server(service, "127.0.0.1:0", observe=lambda served: None)
    await server.start()
    options = (("grpc.max_receive_message_length", -1),)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options) as channel:
        call: Any = channel.unary_unary(DESCRIBE.grpc_path)
        inside = asyncio.ensure_future(call(b""))
        await until(lambda: service.seen)
        stopping = asyncio.create_task(server.stop(30.0))
        release.set()
        assert len(await inside) > 10_000_000
        await stopping
