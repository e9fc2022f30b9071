"""Whatever goes wrong, the answer is the problem that the served OpenAPI document describes, with the right status."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from memdock.errors import REASONS, MemdockError, error
from memdock.service import Call, Method
from memdock.v1 import memory_pb2 as pb
from support.documented import BODIES, TURN, DocumentedSite, documented
from support.faces import ScriptedService, faces_of
from support.gateways import gateway_over

pytestmark = pytest.mark.asyncio(loop_scope="module")

MAX_BYTES = 2000
# Of a reason that an adapter gave; what it says in the gateway's name is its own fault.
GATEWAYS_OWN = (401, 403, 404)
KEYS: dict[str, dict[str, Any]] = {"flusher": {"calls": ["Flush"]}, "reader": {"calls": ["Retrieve"]}}


class Adapter(ScriptedService):
    """Fails with `reason`."""

    def __init__(self) -> None:
        super().__init__(self._fail)
        self.reason = ""

    async def _fail(self, method: Method, request: Any, call: Call) -> Any:
        raise error(self.reason, "no") if self.reason in REASONS else MemdockError(self.reason, "no")


@pytest.fixture(scope="module")
def adapter() -> Adapter:
    return Adapter()


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def site(adapter: Adapter, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[DocumentedSite]:
    async with faces_of(adapter) as faces:
        limits = {"max_request_bytes": MAX_BYTES}
        systems = [{"name": "rag", "address": faces.grpc}]
        folder = tmp_path_factory.mktemp("site")
        async with gateway_over(folder, systems, keys=KEYS, limits=limits) as gateway, documented(gateway) as site:
            yield site


async def refusals_of(site: DocumentedSite, name: str) -> AsyncIterator[tuple[int, tuple[int, str, Any]]]:
    """Everything that the gateway itself refuses in a call: the status that it must have, and its answer."""
    body = BODIES.get(name, {})
    posts = "requestBody" in site.operations[name][2]
    yield 401, await site.send(name, body, key="")
    yield 401, await site.send(name, body, key="mdk_aaaaaaaaaa_" + "5" * 64)
    yield 403, await site.send(name, body, key=site.gateway.keys["reader" if name == "Flush" else "flusher"])
    yield 405, await site.send(name, body, verb="DELETE")
    yield 400, await site.send(name, body, query="?no_such_field=1")
    if name != "ListSystems":
        yield 404, await site.send(name, body, system="nothing-here")
        yield 400, await site.send(name, body, system="NO-NAME")
    if posts:
        yield 400, await site.send(name, {"no_such_field": 1})
        yield 413, await site.send(name, {"x": "x" * MAX_BYTES})
        yield 415, await site.send(name, body, content_type="text/plain")


async def test_what_the_gateway_refuses_is_as_documented_for_every_call(site: DocumentedSite) -> None:
    for name in site.operations:
        async for status, told in refusals_of(site, name):
            assert (told[0], site.errors_of(name, *told)) == (status, []), (name, told)
            assert told[2]["status"] == status


@pytest.mark.parametrize("reason", [*REASONS, "A_NEWER_REASON"])
async def test_what_an_adapter_fails_with_is_as_documented_for_every_call(
    site: DocumentedSite, adapter: Adapter, reason: str
) -> None:
    adapter.reason = reason
    kind = REASONS.get(reason, MemdockError)
    # What is HTTP's own, such as an unsupported content type, comes over gRPC as its code alone.
    status = 500 if kind.http_status in GATEWAYS_OWN else kind.http_status

    async def ask(name: str) -> None:
        told = await site.send(name, BODIES.get(name, {}))
        assert (told[0], site.errors_of(name, *told)) == (status, []), (name, told)

    await asyncio.gather(*(ask(name) for name in site.operations if name != "ListSystems"))


async def test_a_full_queue_and_a_slow_system_are_as_documented(tmp_path: Path) -> None:
    async def stuck(method: Method, request: Any, call: Call) -> Any:
        await asyncio.Event().wait()

    async with faces_of(ScriptedService(stuck)) as faces:
        systems = [{"name": "rag", "address": faces.http, "concurrency": 1, "queue": 0, "deadline_s": 0.5}]
        systems += [{"name": "gone", "address": "http://127.0.0.1:9"}]
        async with gateway_over(tmp_path, systems) as gateway, documented(gateway) as site:
            answers = await asyncio.gather(*(site.send("Retrieve", {"query": "q"}) for _ in range(2)))
            answers.append(await site.send("Retrieve", {"query": "q"}, system="gone"))
    assert sorted((told[0], told[2]["reason"]) for told in answers) == [
        (429, "QUEUE_FULL"),
        (503, "ADAPTER_UNREACHABLE"),
        (504, "ADAPTER_TIMEOUT"),
    ]
    assert [site.errors_of("Retrieve", *told) for told in answers] == [[], [], []]


async def test_a_state_that_is_newer_than_the_gateway_is_as_documented(tmp_path: Path) -> None:
    async def newer(method: Method, request: Any, call: Call) -> Any:
        answer = pb.AddTurnsResponse()
        answer.results.add(turn_id=TURN["turn_id"]).MergeFromString(b"\x10\x63")  # field 2, `state`: 99
        return answer

    async with faces_of(ScriptedService(newer)) as faces:
        systems = [{"name": "rag", "address": faces.grpc}]
        async with gateway_over(tmp_path, systems) as gateway, documented(gateway) as site:
            told = await site.send("AddTurns", BODIES["AddTurns"])
    assert (told[0], told[2]["results"][0]["state"]) == (200, 99)
    assert site.errors_of("AddTurns", *told) == []
