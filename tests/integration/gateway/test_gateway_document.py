"""The OpenAPI document that is served is true: every path and verb works as it says, answers included."""

import re
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from memdock.server import ServeOptions, Server
from memdock.sqlite_ledger import SqliteLedger
from support.gateways import RunningGateway, gateway_over
from support.toys import ToySystem

pytestmark = pytest.mark.asyncio(loop_scope="module")

TURN = {
    "turn_id": "t1",
    "session_id": "s1",
    "role": "user",
    "text": "I moved to Kazan.",
    "time": "2024-05-01T09:30:00+03:00",
    "metadata": {"a": "b"},
}
BODIES: dict[str, dict[str, Any]] = {
    "AddTurns": {"turns": [TURN]},
    "Flush": {"timeout": "2.5s"},
    "Retrieve": {
        "query": "Kazan",
        "top_k": 3,
        "reference_time": "2024-06-01T00:00:00Z",
        "filter": {"session_ids": ["s1"]},
    },
    "Forget": {"selector": {"turn_ids": ["t1", "nowhere"]}, "dry_run": True, "request_id": "once"},
    "Reset": {"request_id": "again"},
}
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


class Site:
    """The gateway's HTTP face and its document."""

    def __init__(self, session: aiohttp.ClientSession, gateway: RunningGateway, document: dict[str, Any]) -> None:
        self.session = session
        self.gateway = gateway
        self.document = document
        self.operations = {
            operation["operationId"]: (verb, path, operation)
            for path, operations in document["paths"].items()
            for verb, operation in operations.items()
        }

    async def send(
        self, operation_id: str, body: Any = None, *, key: str | None = None, query: str = ""
    ) -> tuple[int, str, Any]:
        """Status, content type and JSON."""
        verb, path, operation = self.operations[operation_id]
        url = self.gateway.url("http") + path.format(system="rag", space_id="s") + query
        credential = self.gateway.keys["all"] if key is None else key
        json = body if "requestBody" in operation else None
        async with self.session.request(
            verb, url, json=json, headers={"authorization": f"Bearer {credential}"}
        ) as response:
            return response.status, response.content_type, await response.json(content_type=None)

    def errors(self, value: Any, schema: dict[str, Any], where: str = "$") -> list[str]:
        """Where `value` is not as `schema` says; knows what the document uses, and no more."""
        if "$ref" in schema:
            return self.errors(value, self.document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]], where)
        unknown = set(schema) - KNOWN_WORDS
        assert not unknown, f"the walk does not know {unknown}"
        if (type(value) is bool and schema["type"] != "boolean") or not isinstance(value, KINDS[schema["type"]]):
            return [f"{where}: not {schema['type']}"]
        found = []
        if isinstance(value, dict):
            found += [f"{where}.{name}: missing" for name in schema.get("required", []) if name not in value]
            for name, item in value.items():
                inner = schema.get("properties", {}).get(name) or schema.get("additionalProperties")
                found += self.errors(item, inner, f"{where}.{name}") if inner else [f"{where}.{name}: not documented"]
        if isinstance(value, list):
            for index, item in enumerate(value):
                found += self.errors(item, schema["items"], f"{where}[{index}]")
            found += [f"{where}: too many"] if len(value) > schema.get("maxItems", len(value)) else []
        if value not in schema.get("enum", [value]) or value != schema.get("const", value):
            found.append(f"{where}: {value!r} is not in the list")
        if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
            found.append(f"{where}: not of the pattern")
        if schema.get("format") == "date-time" and datetime.fromisoformat(value).tzinfo is None:
            found.append(f"{where}: no time")
        return found


KINDS: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
}
KNOWN_WORDS = {
    "type",
    "description",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "maxItems",
    "enum",
    "const",
    "pattern",
    "format",
    "minimum",
    "maximum",
}


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    async with (
        Server(ToySystem(), SqliteLedger(folder / "ledger.db"), ServeOptions()) as adapter,
        gateway_over(folder, [{"name": "rag", "address": f"grpc://127.0.0.1:{adapter.ports['grpc']}"}]) as gateway,
        aiohttp.ClientSession() as session,
    ):
        async with session.get(gateway.url("http") + "/openapi.json") as response:
            assert response.content_type == "application/json"
            document = await response.json()
        yield Site(session, gateway, document)


async def test_every_documented_call_works_and_answers_as_documented(site: Site) -> None:
    assert sorted(ORDER) == sorted(site.operations)
    for operation_id in ORDER:
        _, _, operation = site.operations[operation_id]
        status, content_type, answer = await site.send(operation_id, BODIES.get(operation_id, {}))
        (documented,) = operation["responses"]["200"]["content"].items()
        assert (status, content_type) == (200, documented[0]), (operation_id, answer)
        assert site.errors(answer, documented[1]["schema"]) == [], operation_id


async def test_the_bodies_of_these_calls_are_as_documented(site: Site) -> None:
    for operation_id, body in BODIES.items():
        schema = site.operations[operation_id][2]["requestBody"]["content"]["application/json"]["schema"]
        assert site.errors(body, schema) == [], operation_id


async def test_what_is_documented_as_required_is_refused_when_missing(site: Site) -> None:
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


async def test_what_is_not_documented_is_refused_by_name(site: Site) -> None:
    for operation_id, body in BODIES.items():
        status, _, problem = await site.send(operation_id, body | {"no_such_field": 1})
        assert (status, problem["reason"]) == (400, "UNKNOWN_FIELD")
        assert [error["field"] for error in problem["errors"]] == ["no_such_field"]


async def test_errors_are_the_documented_problem(site: Site) -> None:
    for operation_id in ORDER:
        (documented,) = site.operations[operation_id][2]["responses"]["default"]["content"].items()
        for key, status in (("", 401), ("mdk_wrong", 401)):
            answered, content_type, problem = await site.send(operation_id, BODIES.get(operation_id, {}), key=key)
            assert (answered, content_type) == (status, documented[0])
            assert site.errors(problem, documented[1]["schema"]) == []
    _, _, problem = await site.send("Retrieve", {"query": ""})
    assert site.errors(problem, {"$ref": "#/components/schemas/Problem"}) == []


async def test_documented_query_parameters_are_taken_and_others_refused(site: Site) -> None:
    for operation_id in ("ListTurns", "ListMemories"):
        names = [one["name"] for one in site.operations[operation_id][2]["parameters"] if one["in"] == "query"]
        assert names == ["page_size", "page_token"]
        assert (await site.send(operation_id, query="?page_size=1&page_token="))[0] == 200
        assert (await site.send(operation_id, query="?page=1"))[2]["reason"] == "UNKNOWN_FIELD"


async def test_the_walk_finds_what_is_wrong(site: Site) -> None:
    schema = {"$ref": "#/components/schemas/RetrieveResponse"}
    good = {"memories": [], "pending": 0, "failed_count": 0, "timing": []}
    assert site.errors(good, schema) == []
    assert site.errors(good | {"pending": "0"}, schema) == ["$.pending: not integer"]
    assert site.errors(good | {"other": 1}, schema) == ["$.other: not documented"]
    assert site.errors({"memories": [{}]}, schema)
