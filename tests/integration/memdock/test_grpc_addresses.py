"""A name with several addresses, as a headless Service of Kubernetes has: calls go round those that answer."""

from typing import Any

import grpc.aio

from memdock import transport_grpc
from memdock.health import CHECK_PATH
from support.processes import free_port


class Counting(grpc.GenericRpcHandler):
    """Answers every call with nothing, and counts."""

    def __init__(self) -> None:
        self.calls = 0

    def service(self, _: "grpc.HandlerCallDetails") -> "grpc.RpcMethodHandler[bytes, bytes]":
        return grpc.unary_unary_rpc_method_handler(self._answer)

    async def _answer(self, _: bytes, __: "grpc.aio.ServicerContext[bytes, bytes]") -> bytes:
        self.calls += 1
        return b""


async def test_calls_go_round_the_servers_and_pass_over_one_that_is_gone() -> None:
    counts, servers, ports = [Counting() for _ in range(3)], [], []
    for count in counts:
        server, port = grpc.aio.server(handlers=(count,)), free_port()
        server.add_insecure_port(f"127.0.0.1:{port}")
        await server.start()
        servers.append(server)
        ports.append(port)
    target = "ipv4:" + ",".join(f"127.0.0.1:{port}" for port in ports)
    async with grpc.aio.insecure_channel(target, options=transport_grpc._OPTIONS) as channel:
        await channel.channel_ready()
        call: Any = channel.unary_unary(CHECK_PATH)
        while not all(count.calls for count in counts):  # each is used as soon as it is connected
            await call(b"")
        before = [count.calls for count in counts]
        for _ in range(30):
            await call(b"")
        assert [count.calls - first for count, first in zip(counts, before, strict=True)] == [10, 10, 10]
        await servers[0].stop(None)
        for _ in range(10):
            await call(b"", wait_for_ready=True)
        assert counts[1].calls + counts[2].calls >= sum(before[1:]) + 20 + 9
    for server in servers[1:]:
        await server.stop(None)
