"""What the gateway is measured against and with, each a process of its own: `python gateway_parts.py ROLE FOLDER`.

`system`: a memory system that answers at once with ten memories of 200 characters, served with its ledger.
`proxy`: the floor, a grpc.aio proxy that forwards bytes and does nothing else.
`collector`: takes OTLP traces and drops them.
"""

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import grpc
import grpc.aio
import uvloop

from memdock.server import ServeOptions, serve
from memdock.service import METHODS
from memdock.sqlite_ledger import SqliteLedger
from memdock.system import Batch, Outcome, SystemInfo
from memdock.types import Erasure, Memory, Query, Residue, Selection, Software, Turn, TurnState

MEMORIES = tuple(
    Memory(memory_id=f"m{number}", text="a" * 200, kind="fact", score=1.0 / number) for number in range(1, 11)
)


class FixedSystem:
    """Costs nothing itself, so that what is measured is the way to it."""

    info = SystemInfo(
        name="fixed",
        adapter=Software(name="fixed", version="1"),
        framework=Software(name="none", version="1"),
    )

    async def add(self, space: str, turns: Sequence[Turn], *, final: bool) -> Batch:
        return Batch(outcomes=[Outcome(state=TurnState.SEARCHABLE)] * len(turns))

    async def retrieve(self, space: str, query: Query) -> Sequence[Memory]:
        return MEMORIES[: query.top_k]

    async def forget(self, space: str, selection: Selection, *, dry_run: bool) -> Erasure:
        return Erasure()

    async def reset(self, space: str) -> Sequence[Residue]:
        return ()


async def run_proxy(upstream: str, port_file: Path) -> None:
    """Bytes in, bytes out, no thought."""
    channel = grpc.aio.insecure_channel(upstream)
    calls: dict[str, grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]] = {
        method.grpc_path: channel.unary_unary(method.grpc_path) for method in METHODS.values()
    }

    class Forward(grpc.GenericRpcHandler):
        def service(self, handler_call_details: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[bytes, bytes]":
            call = calls[handler_call_details.method]

            async def forward(body: bytes, context: "grpc.aio.ServicerContext[bytes, bytes]") -> bytes:
                answer: bytes = await call(body, timeout=context.time_remaining())
                return answer

            return grpc.unary_unary_rpc_method_handler(forward)

    server = grpc.aio.server(handlers=(Forward(),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    tell(port_file, {"grpc": port})
    await server.wait_for_termination()


async def run_collector(port_file: Path) -> None:
    """Answers 200 to every request, as a collector that is never full."""

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await read_head(reader):
            await reader.readexactly(content_length(head))
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    tell(port_file, {"http": server.sockets[0].getsockname()[1]})
    await server.serve_forever()


async def read_head(reader: asyncio.StreamReader) -> bytes:
    """A message's first line and headers; empty when the connection is over."""
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""


def content_length(head: bytes) -> int:
    """The length that a head tells; 0 where it tells none."""
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    return 0


def tell(port_file: Path, ports: dict[str, int]) -> None:
    """Writes the ports in one step, when they can be used."""
    aside = port_file.with_suffix(f".{os.getpid()}")
    aside.write_text(json.dumps(ports))
    aside.replace(port_file)


async def run_system(folder: Path) -> None:
    """The fixed system, served with its ledger as any adapter is."""
    await serve(FixedSystem(), SqliteLedger(folder / "ledger.db"), ServeOptions(port_file=folder / "system.json"))


def main(role: str, folder: Path, *rest: str) -> None:
    """Runs one part until it is stopped; `ROLE.json` in the folder gets its ports."""
    if role == "proxy":
        uvloop.run(run_proxy(rest[0], folder / "proxy.json"))
    elif role == "collector":
        uvloop.run(run_collector(folder / "collector.json"))
    else:
        uvloop.run(run_system(folder))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
