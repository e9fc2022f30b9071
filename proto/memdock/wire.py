"""Bytes to messages and back, for both faces: protobuf and narrowed ProtoJSON.

Readers of requests are strict: an unknown field is refused by name at any depth. Readers of answers tolerate what a
newer server may add, and call anything else ADAPTER_PROTOCOL_ERROR without repeating a word of it.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import orjson
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet

from memdock.errors import InternalError, InvalidArgumentError, MemdockError
from memdock.findings import Findings, refuse
from memdock.json_plan import is_map, is_repeated, read_plan, write_plan
from memdock.json_values import RefusedValueError

M = TypeVar("M", bound=Message)

MAX_ANSWER_BYTES = 16 * 1024 * 1024

_ESCAPED_COLON = re.compile(rb"\\u003[aA]")
_WHOLE_NUMBER = re.compile(r"0|[1-9]\d{0,9}", re.ASCII)


def to_json(message: Message) -> bytes:
    """The message as JSON; what JSON cannot hold (a NaN, a time outside the years) is ADAPTER_PROTOCOL_ERROR."""
    try:
        return orjson.dumps(write_plan(message.DESCRIPTOR)(message))
    except RefusedValueError as refused:
        raise not_of_the_protocol(f"a value in it {refused.description}") from None


def from_json(cls: type[M], body: bytes, **path: str) -> M:
    """The request in `body` (empty: `{}`), with the fields that stand in the URL's path.

    Raises `InvalidArgumentError`: MALFORMED_REQUEST, UNKNOWN_FIELD, BAD_TIMESTAMP or VALIDATION_FAILED.
    """
    try:
        value = orjson.loads(body or b"{}")
    except orjson.JSONDecodeError as problem:
        where = f"line {problem.lineno}, column {problem.colno}"
        raise InvalidArgumentError("MALFORMED_REQUEST", f"the body is not JSON: look at {where}") from None
    arguments = _read_strictly(cls, value, path)
    if _has_repeated_key(body, value):
        _name_repeated_key(body)
    return cls(**arguments)


def from_query(cls: type[M], query: Iterable[tuple[str, str]], **path: str) -> M:
    """The request of a GET call: its scalar fields as query parameters, each at most once, in either case."""
    numbers = {field.name for field in cls.DESCRIPTOR.fields if field.type == FieldDescriptor.TYPE_UINT32}
    value: dict[str, Any] = {}
    for name, text in query:
        if name in value:
            raise refuse("VALIDATION_FAILED", name, "is given twice")
        field = re.sub("[A-Z]", lambda capital: f"_{capital[0].lower()}", name)
        value[name] = int(text) if field in numbers and _WHOLE_NUMBER.fullmatch(text) else text
    return cls(**_read_strictly(cls, value, path))


def answer_from_json(cls: type[M], body: bytes) -> M:
    """The answer in `body`; fields and enum values that are not known here are let pass."""
    try:
        findings = Findings()
        arguments = read_plan(cls.DESCRIPTOR, strict=False).read(orjson.loads(body), "", findings)
        findings.raise_any()
        return cls(**arguments)
    except (orjson.JSONDecodeError, MemdockError, ValueError, TypeError):
        raise not_of_the_protocol("its JSON does not fit the call") from None


def from_bytes(cls: type[M], body: bytes) -> M:
    """The request in protobuf's `body`; fields without a name here are refused by number, at any depth."""
    try:
        message = cls.FromString(body)
    except DecodeError:
        raise InvalidArgumentError(
            "MALFORMED_REQUEST", f"the bytes are no {cls.DESCRIPTOR.name} of the protocol"
        ) from None
    message.DiscardUnknownFields()
    if message.ByteSize() != len(body):  # cheap; also true of an unusual but right encoding
        findings = Findings()
        _note_unknown(cls.FromString(body), "", findings)
        findings.raise_any()
    return message


def answer_from_bytes(cls: type[M], body: bytes) -> M:
    """The answer in protobuf's `body`."""
    try:
        return cls.FromString(body)
    except DecodeError:
        raise not_of_the_protocol("its bytes do not fit the call") from None


def not_of_the_protocol(detail: str) -> InternalError:
    """The error for an answer that breaks the protocol; `detail` is a sentence of our own, never foreign text."""
    return InternalError("ADAPTER_PROTOCOL_ERROR", f"the system's answer is not of the protocol: {detail}")


def _read_strictly(cls: type[M], value: Any, path: Mapping[str, str]) -> dict[str, Any]:
    findings = Findings()
    arguments = read_plan(cls.DESCRIPTOR, strict=True).read(value, "", findings)
    for name, segment in path.items():
        if arguments.setdefault(name, segment) != segment:
            findings.add("VALIDATION_FAILED", name, "differs from the path; leave it out of the body")
    findings.raise_any()
    return arguments


def _has_repeated_key(body: bytes, value: Any) -> bool:
    # orjson keeps the last of equal keys. Each key brings one colon, and writing again keeps those inside strings.
    return body.count(b":") != orjson.dumps(value).count(b":") or _ESCAPED_COLON.search(body) is not None


def _name_repeated_key(body: bytes) -> None:
    def refuse_repeats(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        members: dict[str, Any] = {}
        for key, value in pairs:
            if key in members:
                raise refuse("MALFORMED_REQUEST", key, "stands twice in one object")
            members[key] = value
        return members

    try:
        json.loads(body, object_pairs_hook=refuse_repeats)
    except RecursionError:
        raise InvalidArgumentError("MALFORMED_REQUEST", "the body is nested too deeply") from None


def _note_unknown(message: Message, path: str, findings: Findings) -> None:
    unknown, known = UnknownFieldSet(message), message.DESCRIPTOR.fields_by_number
    for index in range(len(unknown)):
        number = unknown[index].field_number
        if number in known:  # a map's entry with a field too many comes here as well
            description = "is not encoded as the protocol has it, or holds an unknown field"
            findings.add("UNKNOWN_FIELD", f"{path}{known[number].name}", description)
        else:
            findings.add("UNKNOWN_FIELD", f"{path}{number}", "is a field number that is not of the protocol")
    for field, value in message.ListFields():
        if field.message_type is None or is_map(field):
            continue
        if is_repeated(field):
            for index, item in enumerate(value):
                _note_unknown(item, f"{path}{field.name}[{index}].", findings)
        else:
            _note_unknown(value, f"{path}{field.name}.", findings)
