"""The OpenAPI document says what the descriptors and the comments of the .proto say."""

from collections.abc import Iterator

from memdock.service import METHODS
from memdock_gateway.contract import comments
from memdock_gateway.openapi import openapi

DOCUMENT = openapi("1.2.3")
SCHEMAS = DOCUMENT["components"]["schemas"]


def references(part: object) -> Iterator[str]:
    if isinstance(part, dict):
        if "$ref" in part:
            yield part["$ref"]
        for value in part.values():
            yield from references(value)
    elif isinstance(part, list):
        for value in part:
            yield from references(value)


def test_every_call_is_documented_once_with_its_verb_and_path() -> None:
    documented = {
        (verb.upper(), path): operation["operationId"]
        for path, operations in DOCUMENT["paths"].items()
        for verb, operation in operations.items()
    }
    assert documented == {(method.verb, method.path): method.name for method in METHODS.values()}


def test_every_reference_leads_somewhere_and_every_schema_is_used() -> None:
    used = set(references(DOCUMENT))
    assert used == {f"#/components/schemas/{name}" for name in SCHEMAS}


def test_the_comments_of_the_contract_are_its_descriptions() -> None:
    assert SCHEMAS["Turn"]["properties"]["time"]["description"].startswith("When it was said: an instant")
    add = DOCUMENT["paths"]["/v1/systems/{system}/spaces/{space_id}/turns"]["post"]
    assert add["summary"] == "Accepts turns of one space, in order"
    assert "HTTP:" not in add["description"]


def test_every_message_enum_field_and_call_with_a_comment_is_found() -> None:
    found = comments()
    for method in METHODS.values():
        assert f"{method.service}.{method.name}" in found
    assert "memdock.v1.Turn.metadata" in found, "a map"
    assert "memdock.v1.RetrieveRequest.top_k" in found, "an optional field"
    assert "memdock.v1.Feature.FEATURE_USAGE" in found, "an enum's value"


def test_requests_are_closed_and_name_what_is_required() -> None:
    assert SCHEMAS["Turn"]["required"] == ["turn_id", "session_id", "role", "text"]
    assert SCHEMAS["RetrieveRequest"]["required"] == ["query"]
    assert SCHEMAS["Turn"]["additionalProperties"] is False
    assert set(SCHEMAS["RetrieveRequest"]["properties"]).isdisjoint({"system", "space_id"}), "they stand in the path"


def test_answers_are_open_and_always_have_their_plain_fields() -> None:
    memory = SCHEMAS["Memory"]
    assert "additionalProperties" not in memory
    assert memory["required"] == ["memory_id", "text", "kind", "sources", "metadata"]


def test_values_have_their_forms() -> None:
    assert SCHEMAS["Turn"]["properties"]["time"]["format"] == "date-time"
    assert SCHEMAS["FlushRequest"]["properties"]["timeout"]["pattern"]
    assert SCHEMAS["Turn"]["properties"]["metadata"]["additionalProperties"] == {"type": "string"}
    states, newer = SCHEMAS["TurnResult"]["properties"]["state"]["anyOf"]
    assert "TURN_STATE_PENDING" in states["enum"]
    assert "TURN_STATE_UNSPECIFIED" not in states["enum"]
    assert newer["type"] == "integer"
    assert SCHEMAS["RetrieveRequest"]["properties"]["top_k"]["type"] == "integer"
