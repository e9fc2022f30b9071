"""Compiles a message's descriptor, once, into a reader and a writer of its JSON.

Why not `google.protobuf.json_format`: it knows no field paths, takes more than the protocol does, and holds the event
loop for 15 ms at 256 turns. A reader gives plain dicts, which protobuf's constructor turns into the message in C.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from memdock import json_values
from memdock.findings import Findings
from memdock.json_values import Reader, RefusedValueError, Writer

FieldReader = Callable[[Any, str, Findings], Any]
MessageWriter = Callable[[Any], dict[str, Any]]

_SCALAR_READERS: dict[int, Reader] = {
    FieldDescriptor.TYPE_STRING: json_values.read_string,
    FieldDescriptor.TYPE_BOOL: json_values.read_bool,
    FieldDescriptor.TYPE_UINT32: json_values.read_uint32,
    FieldDescriptor.TYPE_DOUBLE: json_values.read_double,
}
_WELL_KNOWN: dict[str, tuple[Reader, Writer]] = {
    "google.protobuf.Timestamp": (json_values.read_time, json_values.write_time),
    "google.protobuf.Duration": (json_values.read_duration, json_values.write_duration),
}


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """How to read one message. `strict`: as a request; otherwise as an answer, perhaps of a newer server."""

    fields: dict[str, tuple[str, FieldReader]]
    strict: bool

    def read(self, value: Any, path: str, findings: Findings) -> dict[str, Any]:
        """The constructor's arguments for a JSON object; `path` is empty or ends in a dot. null means left out."""
        if type(value) is not dict:
            findings.add("VALIDATION_FAILED", path.rstrip(".") or "body", "must be an object")
            return {}
        arguments: dict[str, Any] = {}
        for key, item in value.items():
            known = self.fields.get(key)
            if known is None:
                if self.strict:
                    findings.add("UNKNOWN_FIELD", f"{path}{key}", "is not a field of the protocol")
                continue
            name, read = known
            if name in arguments:
                findings.add("VALIDATION_FAILED", f"{path}{name}", "is given twice, in both cases of its name")
            else:
                arguments[name] = None if item is None else read(item, f"{path}{name}", findings)
        return arguments


@cache
def read_plan(message: Descriptor, *, strict: bool) -> ReadPlan:
    """The reader of a message; it knows both cases of each name."""
    fields: dict[str, tuple[str, FieldReader]] = {}
    for field in message.fields:
        fields[field.name] = fields[field.json_name] = (field.name, _field_reader(field, strict))
    return ReadPlan(fields, strict)


def _field_reader(field: FieldDescriptor, strict: bool) -> FieldReader:
    if field.message_type is not None and is_map(field):
        return _map_reader(_field_reader(field.message_type.fields_by_name["value"], strict))
    one = _item_reader(field, strict)
    return _list_reader(one) if is_repeated(field) else one


def _item_reader(field: FieldDescriptor, strict: bool) -> FieldReader:
    if field.message_type is not None and field.message_type.full_name not in _WELL_KNOWN:
        plan = read_plan(field.message_type, strict=strict)
        return lambda value, path, findings: plan.read(value, f"{path}.", findings)
    return _noting(_value_reader(field, strict))


def _value_reader(field: FieldDescriptor, strict: bool) -> Reader:
    if field.message_type is not None:
        return _WELL_KNOWN[field.message_type.full_name][0]
    if field.enum_type is not None:
        return json_values.enum_reader(field.enum_type, strict=strict)
    return _SCALAR_READERS[field.type]


def _noting(read: Reader) -> FieldReader:
    def reader(value: Any, path: str, findings: Findings) -> Any:
        try:
            return read(value)
        except RefusedValueError as refused:
            findings.add(refused.reason, path, refused.description)
            return None

    return reader


def _list_reader(one: FieldReader) -> FieldReader:
    def reader(value: Any, path: str, findings: Findings) -> list[Any] | None:
        if type(value) is not list:
            findings.add("VALIDATION_FAILED", path, "must be a list")
            return None
        return [one(item, f"{path}[{index}]", findings) for index, item in enumerate(value)]

    return reader


def _map_reader(one: FieldReader) -> FieldReader:
    def reader(value: Any, path: str, findings: Findings) -> dict[str, Any] | None:
        if type(value) is not dict:
            findings.add("VALIDATION_FAILED", path, "must be an object")
            return None
        return {key: one(item, f"{path}.{key}", findings) for key, item in value.items()}

    return reader


@cache
def write_plan(message: Descriptor) -> MessageWriter:
    """The writer of a message: fields in their order in the .proto; unset ones with presence left out."""
    fields = tuple((field.name, field.has_presence, _field_writer(field)) for field in message.fields)

    def write(value: Any) -> dict[str, Any]:
        written: dict[str, Any] = {}
        for name, has_presence, writer in fields:
            if has_presence and not value.HasField(name):
                continue
            item = getattr(value, name)
            written[name] = item if writer is None else writer(item)
        return written

    return write


def _field_writer(field: FieldDescriptor) -> Writer | None:
    if is_map(field):
        return dict
    one = _item_writer(field)
    if not is_repeated(field):
        return one
    return list if one is None else lambda items: [one(item) for item in items]


def _item_writer(field: FieldDescriptor) -> Writer | None:
    if field.message_type is not None:
        known = _WELL_KNOWN.get(field.message_type.full_name)
        return known[1] if known else write_plan(field.message_type)
    if field.enum_type is not None:
        return json_values.enum_writer(field.enum_type)
    return json_values.write_double if field.type == FieldDescriptor.TYPE_DOUBLE else None


def is_repeated(field: FieldDescriptor) -> bool:
    """Whether the field is a list or a map."""
    if hasattr(field, "is_repeated"):
        return field.is_repeated
    return bool(getattr(field, "label") == FieldDescriptor.LABEL_REPEATED)  # noqa: B009  protobuf 5's only word for it


def is_map(field: FieldDescriptor) -> bool:
    """Whether the field is a map, which descriptors show as repeated entries."""
    return field.message_type is not None and field.message_type.GetOptions().map_entry
