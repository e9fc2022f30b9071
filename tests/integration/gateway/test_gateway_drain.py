"""SIGTERM while many write: each call is answered, refused as DRAINING, or finds nobody there; never another way."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import aiohttp
import grpc
import grpc.aio
import pytest

from memdock.error_wire import DETAILS_KEY, error_from_status
from memdock.service import METHODS, Call, Method
from memdock.v1 import memory_pb2 as pb
from memdock.wire import to_json
from support.faces import ScriptedService, faces_of, until
from support.gateways import write_gateway
from support.processes import Daemon

ADD_TURNS = METHODS["AddTurns"]
WRITERS = 24
"""Of each face; each with a connection of its own."""
AT_ONCE = 4
"""Calls of a writer that are on their way at the same time."""
ROUNDS = 5

NOBODY = "nobody there"


class Writers:
    """Writers without retries or manners: foreign to the protocol, they send on until nobody is there."""

    def __init__(self, process: Daemon, key: str) -> None:
        self._ports = process.ports()
        self._key = key
        self._count = 0
        # What each turn's call came to.
        self.outcomes: dict[str, str] = {}

    async def run(self) -> None:
        """Returns when each writer has met nobody."""
        await asyncio.gather(*(self._grpc() for _ in range(WRITERS)), *(self._http() for _ in range(WRITERS)))

    def _request(self) -> pb.AddTurnsRequest:
        self._count += 1
        turn = pb.Turn(turn_id=f"t{self._count}", session_id="s", role="user", text="Kazan")
        return pb.AddTurnsRequest(system="rag", space_id="s", turns=[turn])

    async def _grpc(self) -> None:
        # A pool of its own for each, or all channels of a process share one connection.
        options = (("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0))
        async with grpc.aio.insecure_channel(f"127.0.0.1:{self._ports['grpc']}", options=options) as channel:
            call: Any = channel.unary_unary(ADD_TURNS.grpc_path, response_deserializer=pb.AddTurnsResponse.FromString)
            metadata = (("authorization", f"Bearer {self._key}"),)

            async def one(request: pb.AddTurnsRequest) -> str:
                try:
                    await call(request.SerializeToString(), metadata=metadata, timeout=30)
                except grpc.aio.AioRpcError as refused:
                    return _reason(refused)
                return "OK"

            await asyncio.gather(*(self._write(one) for _ in range(AT_ONCE)))

    async def _http(self) -> None:
        url = f"http://127.0.0.1:{self._ports['http']}" + ADD_TURNS.path.format(system="rag", space_id="s")
        headers = {"authorization": f"Bearer {self._key}", "content-type": "application/json"}
        async with aiohttp.ClientSession(headers=headers) as session:

            async def one(request: pb.AddTurnsRequest) -> str:
                try:
                    async with session.post(url, data=to_json(request)) as response:
                        answer = await response.json(content_type=None)
                except aiohttp.ClientConnectionError:
                    return NOBODY
                return "OK" if response.status == 200 else f"{answer['reason']}"

            await asyncio.gather(*(self._write(one) for _ in range(AT_ONCE)))

    async def _write(self, one: Any) -> None:
        outcome = ""
        while outcome != NOBODY:
            request = self._request()
            outcome = await one(request)
            self.outcomes[request.turns[0].turn_id] = outcome


def _reason(refused: grpc.aio.AioRpcError) -> str:
    details = next((value for name, value in refused.trailing_metadata() or () if name == DETAILS_KEY), None)
    if isinstance(details, bytes):
        return error_from_status(refused.code().value[0], details, "the gateway").reason
    return (
        NOBODY if refused.code() is grpc.StatusCode.UNAVAILABLE else f"bare {refused.code().name}: {refused.details()}"
    )


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_sigterm_among_writers_ends_each_call_in_one_of_three_ways(tmp_path: Path) -> None:
    async def accept(method: Method, request: Any, call: Call) -> Any:
        await asyncio.sleep(0.005)
        results = [pb.TurnResult(turn_id=turn.turn_id, state=pb.TURN_STATE_SEARCHABLE) for turn in request.turns]
        return pb.AddTurnsResponse(results=results)

    service = ScriptedService(accept)
    async with faces_of(service) as faces:
        # Longer than the test may take, and the writers go on: those who are refused must not hold up the end.
        config, keys = write_gateway(tmp_path, [{"name": "rag", "address": faces.grpc}], drain_s=600)
        process = Daemon("gateway", "memdock-gateway", ["serve", "--config", config], tmp_path)
        for _ in range(ROUNDS):
            service.seen.clear()
            try:
                await asyncio.to_thread(process.start)
                outcomes = await written_until_the_end(process, keys["all"])
            finally:
                await asyncio.to_thread(process.kill)
            counts = Counter(outcomes.values())
            assert set(counts) == {"OK", "DRAINING", NOBODY}, counts
            reached = {turn.turn_id for _, request, _ in service.seen for turn in request.turns}
            assert {turn_id for turn_id, outcome in outcomes.items() if outcome == "OK"} == reached


async def written_until_the_end(process: Daemon, key: str) -> dict[str, str]:
    """What each turn's call came to, from the first writer to the last, with SIGTERM among them."""
    writers = Writers(process, key)
    running = asyncio.create_task(writers.run())
    await until(lambda: sum(outcome == "OK" for outcome in writers.outcomes.values()) > 1000, 60)
    assert await asyncio.to_thread(process.stop) == 0
    await running
    return writers.outcomes
