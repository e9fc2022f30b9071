"""The OpenAPI document that is served is true: every path and verb works as it says, answers included."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from memdock.server import ServeOptions, Server
from memdock.sqlite_ledger import SqliteLedger
from support.documented import BODIES, TURN, DocumentedSite, documented
from support.gateways import gateway_over
from support.toys import ToySystem

pytestmark = pytest.mark.asyncio(loop_scope="module")

ORDER = [
    "ListSystems",
    "Describe",
    "AddTurns",
    "Flush",
    "Retrieve",
    "ListTurns",
    "ListMemories",
    "Forget",
    "Reset",
]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[DocumentedSite]:
    folder = tmp_path_factory.mktemp("site")
    async with (
        Server(ToySystem(), SqliteLedger(folder / "ledger.db"), ServeOptions()) as adapter,
        gateway_over(folder, [{"name": "rag", "address": f"grpc://127.0.0.1:{adapter.ports['grpc']}"}]) as gateway,
        documented(gateway) as site,
    ):
        yield site


async def test_every_documented_call_works_and_answers_as_documented(site: DocumentedSite) -> None:
    assert sorted(ORDER) == sorted(site.operations)
    for operation_id in ORDER:
        status, content_type, answer = await site.send(operation_id, BODIES.get(operation_id, {}))
        assert status == 200, (operation_id, answer)
        assert site.errors_of(operation_id, status, content_type, answer) == [], operation_id


async def test_the_bodies_of_these_calls_are_as_documented(site: DocumentedSite) -> None:
    for operation_id, body in BODIES.items():
        schema = site.operations[operation_id][2]["requestBody"]["content"]["application/json"]["schema"]
        assert site.errors(body, schema) == [], operation_id


async def test_what_is_documented_as_required_is_refused_when_missing(site: DocumentedSite) -> None:
    schemas = site.document["components"]["schemas"]
    for name in schemas["Turn"]["required"]:
        turn = {key: value for key, value in TURN.items() if key != name}
        status, _, problem = await site.send("AddTurns", {"turns": [turn]})
        assert status == 400
        assert f"turns[0].{name}" in [error["field"] for error in problem["errors"]]
    for operation_id, name in (("Retrieve", "query"), ("Forget", "selector")):
        request = site.operations[operation_id][2]["requestBody"]["content"]["application/json"]["schema"]
        assert name in schemas[request["$ref"].rsplit("/", 1)[1]]["required"]
        body = {key: value for key, value in BODIES[operation_id].items() if key != name}
        assert (await site.send(operation_id, body))[0] == 400


async def test_what_is_not_documented_is_refused_by_name(site: DocumentedSite) -> None:
    for operation_id, body in BODIES.items():
        status, _, problem = await site.send(operation_id, body | {"no_such_field": 1})
        assert (status, problem["reason"]) == (400, "UNKNOWN_FIELD")
        assert [error["field"] for error in problem["errors"]] == ["no_such_field"]


async def test_documented_query_parameters_are_taken_and_others_refused(site: DocumentedSite) -> None:
    for operation_id in ("ListTurns", "ListMemories"):
        names = [one["name"] for one in site.operations[operation_id][2]["parameters"] if one["in"] == "query"]
        assert names == ["page_size", "page_token"]
        assert (await site.send(operation_id, query="?page_size=1&page_token="))[0] == 200
        assert (await site.send(operation_id, query="?page=1"))[2]["reason"] == "UNKNOWN_FIELD"


async def test_the_walk_finds_what_is_wrong(site: DocumentedSite) -> None:
    schema = {"$ref": "#/components/schemas/RetrieveResponse"}
    good = {"memories": [], "pending": 0, "failed_count": 0, "timing": []}
    assert site.errors(good, schema) == []
    assert site.errors(good | {"pending": "0"}, schema) == ["$.pending: not integer"]
    assert site.errors(good | {"other": 1}, schema) == ["$.other: not documented"]
    assert site.errors({"memories": [{}]}, schema)
