"""Logs, metrics, traces and the audit of a whole run hold no text, no key and no space id, and still tell enough."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from memdock.client import connect_async
from memdock.errors import MemdockError
from memdock.server import ServeOptions, Server
from memdock.sqlite_ledger import SqliteLedger
from memdock.types import Turn
from support.gateways import write_gateway
from support.processes import Daemon
from support.toys import ToySystem

SPACE = "very-private-space"
TEXT = "ничего-не-говори about-the-surprise"
CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@asynccontextmanager
async def collector(taken: list[bytes]) -> AsyncIterator[int]:
    """Takes OTLP over HTTP; its port."""

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
                taken.append(await reader.readexactly(length))
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async with await asyncio.start_server(take, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


async def whole_run(url: str, key: str) -> None:
    """Every call once, good and bad, each with the words that must not get out."""
    turn = Turn(
        turn_id="D1:1", session_id="s1", role="user", text=TEXT, name="Aunt Agafya", metadata={"secret": "m3ta"}
    )
    headers = {"traceparent": CALLER}
    async with connect_async(url, system="rag", key=key, headers=headers, timeout_s=10) as client:
        await client.add_turns(SPACE, [turn])
        await client.flush(SPACE)
        await client.retrieve(SPACE, TEXT)
        _ = [one async for one in client.list_turns(SPACE)], [one async for one in client.list_memories(SPACE)]
        await client.describe()
        await client.list_systems()
        bad: list[Any] = [
            client.retrieve(f"{SPACE} {TEXT}", TEXT),
            client.add_turns(SPACE, [Turn(turn_id="D1:1", session_id="s1", role="user", text=f"{TEXT}!")]),
            client.forget(SPACE),
        ]
        for work in bad:
            with pytest.raises(MemdockError) as refused:
                await work
            assert TEXT not in refused.value.message
        await client.forget(SPACE, turn_ids=["D1:1"])
        await client.reset(SPACE)
    for wrong in (f"{key}x", "mdk_aaaaaaaaaa_" + "5" * 64):
        async with connect_async(url, system="rag", key=wrong, timeout_s=10) as client:
            with pytest.raises(MemdockError):
                await client.retrieve(SPACE, TEXT)


async def metrics_of(port: int) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
    text = (await reader.read()).decode()
    writer.close()
    return text


async def test_nothing_that_was_said_gets_into_logs_metrics_traces_or_the_audit(tmp_path: Path) -> None:
    taken: list[bytes] = []
    async with (
        Server(ToySystem(), SqliteLedger(tmp_path / "ledger.db"), ServeOptions()) as adapter,
        collector(taken) as collector_port,
    ):
        config, keys = write_gateway(
            tmp_path,
            [{"name": "rag", "address": f"grpc://127.0.0.1:{adapter.ports['grpc']}"}],
            telemetry={"otlp_endpoint": f"http://127.0.0.1:{collector_port}", "sample_ratio": 1.0},
        )
        process = Daemon("gateway", "memdock-gateway", ["serve", "--config", config], tmp_path)
        await asyncio.to_thread(process.start)
        try:
            for face in ("grpc", "http"):
                await whole_run(f"{face}://127.0.0.1:{process.ports()[face]}", keys["all"])
            metrics = await metrics_of(process.ports()["http"])
            assert await asyncio.to_thread(process.stop) == 0
        finally:
            await asyncio.to_thread(process.kill)

    audit = (tmp_path / "audit.jsonl").read_text()
    traces = b"".join(taken)
    secret = keys["all"].rpartition("_")[2]
    for told in (process.log.encode(), metrics.encode(), traces, audit.encode()):
        for words in (TEXT, "surprise", "Agafya", "m3ta", secret, keys["all"], SPACE, "5" * 64):
            assert words.encode() not in told

    lines = [orjson.loads(line) for line in process.log.splitlines()]
    calls = [line for line in lines if line["event"] == "call"]
    assert {line["method"] for line in calls} >= {"AddTurns", "Flush", "Retrieve", "Forget", "Reset", "ListSystems"}
    assert {line["code"] for line in calls} == {"OK", "INVALID_ARGUMENT", "ALREADY_EXISTS", "UNAUTHENTICATED"}
    assert all(line["request_id"] for line in calls)
    assert 'memdock_gateway_calls_total{code="ALREADY_EXISTS",method="AddTurns",system="rag"} 2.0' in metrics

    spans = [
        span
        for body in taken
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    assert len(spans) == len(calls)
    ours = [span for span in spans if span.trace_id.hex() == CALLER[3:35]]
    assert {span.parent_span_id.hex() for span in ours} == {CALLER[36:52]}
    assert {span.name for span in ours} >= {"AddTurns", "Retrieve", "Reset"}

    entries = [orjson.loads(line) for line in audit.splitlines()]
    assert [(entry["method"], entry["stage"]) for entry in entries] == [
        ("Forget", "asked"),
        ("Forget", "answered"),
        ("Reset", "asked"),
        ("Reset", "answered"),
    ] * 2
    assert len({entry["space"] for entry in entries}) == 1


async def test_a_collector_that_is_away_holds_up_neither_a_call_nor_the_end(tmp_path: Path) -> None:
    async with Server(ToySystem(), SqliteLedger(tmp_path / "ledger.db"), ServeOptions()) as adapter:
        config, keys = write_gateway(
            tmp_path,
            [{"name": "rag", "address": f"grpc://127.0.0.1:{adapter.ports['grpc']}"}],
            telemetry={"otlp_endpoint": "http://127.0.0.1:9", "sample_ratio": 1.0},
        )
        process = Daemon("gateway", "memdock-gateway", ["serve", "--config", config], tmp_path)
        await asyncio.to_thread(process.start)
        try:
            url = f"grpc://127.0.0.1:{process.ports()['grpc']}"
            async with connect_async(url, system="rag", key=keys["all"]) as client:
                await client.describe()
            async with asyncio.timeout(8):
                assert await asyncio.to_thread(process.stop) == 0
        finally:
            await asyncio.to_thread(process.kill)
