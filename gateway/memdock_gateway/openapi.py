"""The OpenAPI document, derived from the descriptors and the comments of the .proto: nothing in it is written twice."""

import re
from collections.abc import Iterable
from typing import Any, TypeAlias

from memdock.errors import REASONS
from memdock.json_plan import is_map, is_repeated
from memdock.service import METHODS, Method
from memdock_gateway.contract import comments

Schema: TypeAlias = dict[str, Any]
# protobuf has two classes of descriptors, Python's and upb's, that share no type.
Descriptor: TypeAlias = Any
Field: TypeAlias = Any

_REQUIRED = re.compile(r"\bRequired[.;,]")
_HTTP_LINE = re.compile(r" *HTTP: \S+ \S+")
# By google.protobuf.FieldDescriptorProto.Type.
DOUBLE, BOOL, STRING, UINT32 = 1, 8, 9, 13
_SCALARS: dict[int, Schema] = {
    STRING: {"type": "string"},
    BOOL: {"type": "boolean"},
    UINT32: {"type": "integer", "minimum": 0, "maximum": 2**32 - 1},
    DOUBLE: {"type": "number"},
}
_WELL_KNOWN: dict[str, Schema] = {
    "google.protobuf.Timestamp": {"type": "string", "format": "date-time"},
    "google.protobuf.Duration": {"type": "string", "pattern": r"^-?\d{1,12}(\.\d{1,9})?s$"},
}


def _open(names: list[str], newer: str) -> Schema:
    """One of these names, or what a system that is newer than this document says: a text or an enum's number."""
    return {"anyOf": [{"type": "string", "enum": names}, {"type": newer, "description": "A newer one."}]}


_PROBLEM: Schema = {
    "type": "object",
    "description": "RFC 9457. `reason` is the word to act on; `request_id` finds the call in the logs.",
    "properties": {
        "type": {"type": "string", "const": "about:blank"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "reason": _open(sorted(REASONS), "string"),
        "request_id": {"type": "string"},
        "retry_after_s": {"type": "number", "description": "When a later try may succeed. Absent: no such promise."},
        "retried": {"type": "boolean", "description": "True: the gateway has tried again already; do not. Absent: no."},
        "errors": {
            "type": "array",
            "maxItems": 16,
            "items": {
                "type": "object",
                "properties": {"field": {"type": "string"}, "description": {"type": "string"}},
                "required": ["field", "description"],
            },
        },
    },
    "required": ["type", "title", "status", "detail", "reason", "request_id", "errors"],
}
_IDS: dict[str, Schema] = {
    "system": {"type": "string", "pattern": "^[a-z0-9][a-z0-9-]{0,62}$"},
    "space_id": {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._~-]{0,127}$"},
}


def openapi(version: str) -> Schema:
    """The document, OpenAPI 3.1."""
    paths: Schema = {}
    for method in METHODS.values():
        paths.setdefault(method.path, {})[method.verb.lower()] = _operation(method)
    schemas = {"Problem": _PROBLEM} | {
        message.name: _message(message, skip=_path_fields(method) if message is method.request.DESCRIPTOR else ())
        for method in METHODS.values()
        for message in _reached(_body_and_answer(method))
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "Memdock", "version": version, "description": _INTRODUCTION},
        "security": [{"key": []}],
        "paths": paths,
        "components": {
            "schemas": dict(sorted(schemas.items())),
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


_INTRODUCTION = (
    "One protocol for conversational memory. Times are RFC 3339 with an offset; unknown fields are refused by name; "
    "field names may also be written in camelCase. Every call may be repeated safely. `X-Timeout-Ms` carries the "
    "caller's deadline, `traceparent` its trace, `X-Request-Id` its own id for the call."
)


def _operation(method: Method) -> Schema:
    about = _HTTP_LINE.sub("", comments().get(f"{method.service}.{method.name}", ""))
    operation: Schema = {
        "operationId": method.name,
        "summary": about.partition(". ")[0].rstrip("."),
        "description": about,
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": _IDS[name]} for name in _path_fields(method)
        ],
        "responses": {
            "200": {
                "description": comments().get(method.response.DESCRIPTOR.full_name, "The answer."),
                "content": {"application/json": {"schema": _reference(method.response.DESCRIPTOR)}},
            },
            "default": {
                "description": "The call was refused or failed; the status tells which.",
                "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
            },
        },
    }
    if method.verb == "GET":
        operation["parameters"] += [
            {"name": field.name, "in": "query", "schema": _field(field)}
            for field in method.request.DESCRIPTOR.fields
            if field.name not in _path_fields(method)
        ]
    else:
        operation["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": _reference(method.request.DESCRIPTOR)}},
        }
    return operation


def _path_fields(method: Method) -> list[str]:
    return re.findall(r"\{(\w+)\}", method.path)


def _body_and_answer(method: Method) -> list[Descriptor]:
    answer = [method.response.DESCRIPTOR]
    return answer if method.verb == "GET" else [method.request.DESCRIPTOR, *answer]


def _reached(messages: Iterable[Descriptor]) -> Iterable[Descriptor]:
    for message in messages:
        yield message
        yield from _reached(
            field.message_type
            for field in message.fields
            if field.message_type and not is_map(field) and field.message_type.full_name not in _WELL_KNOWN
        )


def _message(message: Descriptor, skip: Iterable[str]) -> Schema:
    fields = [field for field in message.fields if field.name not in skip]
    given = _is_given(message)
    schema: Schema = {
        "type": "object",
        "description": comments().get(message.full_name, ""),
        "properties": {field.name: _field(field) for field in fields},
        # What callers send is held to the words "Required" of the .proto; what they get always has its plain fields.
        "required": [field.name for field in fields if (_is_required(field) if given else not field.has_presence)],
    }
    return schema | {"additionalProperties": False} if given else schema


def _is_given(message: Descriptor) -> bool:
    """Whether callers send the message, rather than get it."""
    return any(message in _reached([method.request.DESCRIPTOR]) for method in METHODS.values())


def _is_required(field: Field) -> bool:
    return _REQUIRED.search(comments().get(field.full_name, "")) is not None


def _field(field: Field) -> Schema:
    about = comments().get(field.full_name)
    return _value(field) | ({"description": about} if about else {})


def _value(field: Field) -> Schema:
    if is_map(field):
        return {"type": "object", "additionalProperties": _item(field.message_type.fields_by_name["value"])}
    return {"type": "array", "items": _item(field)} if is_repeated(field) else _item(field)


def _item(field: Field) -> Schema:
    if field.message_type:
        return _WELL_KNOWN.get(field.message_type.full_name) or _reference(field.message_type)
    if field.enum_type:
        return _open([value.name for value in field.enum_type.values if value.number], "integer")
    return _SCALARS[field.type]


def _reference(message: Descriptor) -> Schema:
    return {"$ref": f"#/components/schemas/{message.name}"}
