"""An HTTP face that is held to the OpenAPI document that it serves."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import aiohttp
import orjson

from support.gateways import RunningGateway

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
"""A good body of each call that takes one."""


class Document:
    """An OpenAPI document. `operations`: verb, path, operation by name."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self.operations = {
            operation["operationId"]: (verb, path, operation)
            for path, operations in document["paths"].items()
            for verb, operation in operations.items()
        }

    def errors_of(self, operation_id: str, status: int, content_type: str, answer: Any) -> list[str]:
        """Where an answer is not as the document says."""
        responses = self.operations[operation_id][2]["responses"]
        content = responses.get(str(status), responses["default"])["content"]
        if content_type not in content:
            return [f"{content_type} is not documented for {status}"]
        return self.errors(answer, content[content_type]["schema"])

    def errors(self, value: Any, schema: dict[str, Any], where: str = "$") -> list[str]:
        """Where `value` is not as `schema` says; knows what the document uses, and no more."""
        if "$ref" in schema:
            return self.errors(value, self.document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]], where)
        unknown = set(schema) - KNOWN_WORDS
        assert not unknown, f"the walk does not know {unknown}"
        if "anyOf" in schema:
            return min((self.errors(value, one, where) for one in schema["anyOf"]), key=len)
        if "type" not in schema:
            return []  # anything
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
        if type(value) is int and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
            found.append(f"{where}: out of bounds")
        if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
            found.append(f"{where}: not of the pattern")
        if schema.get("format") == "date-time" and datetime.fromisoformat(value).tzinfo is None:
            found.append(f"{where}: no time")
        return found


class DocumentedSite(Document):
    """The gateway's HTTP face and the OpenAPI document that it serves."""

    def __init__(self, session: aiohttp.ClientSession, gateway: RunningGateway, document: dict[str, Any]) -> None:
        super().__init__(document)
        self.session = session
        self.gateway = gateway

    async def send(
        self,
        operation_id: str,
        body: Any = None,
        *,
        key: str | None = None,
        query: str = "",
        system: str = "rag",
        verb: str = "",
        content_type: str = "application/json",
    ) -> tuple[int, str, Any]:
        """Status, content type and JSON; `verb`, `content_type`: other ones than documented."""
        own_verb, path, operation = self.operations[operation_id]
        url = self.gateway.url("http") + path.format(system=system, space_id="s") + query
        headers = {"authorization": f"Bearer {self.gateway.keys['all'] if key is None else key}"}
        data = None
        if "requestBody" in operation:
            headers["content-type"] = content_type
            data = orjson.dumps(body)
        async with self.session.request(verb or own_verb, url, data=data, headers=headers) as response:
            return response.status, response.content_type, await response.json(content_type=None)


KINDS: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "null": type(None),
}
KNOWN_WORDS = {
    "anyOf",
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
    "title",
    "default",
}


@asynccontextmanager
async def documented(gateway: RunningGateway) -> AsyncIterator[DocumentedSite]:
    """The gateway with the document that it serves now."""
    async with aiohttp.ClientSession() as session:
        async with session.get(gateway.url("http") + "/openapi.json") as response:
            assert response.content_type == "application/json"
            document = await response.json()
        yield DocumentedSite(session, gateway, document)
