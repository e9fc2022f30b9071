"""Hypothesis strategies for wire messages, made from their descriptors."""

from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from hypothesis import strategies as st

from memdock.json_plan import is_map, is_repeated

FIRST_SECOND = -62_135_596_800
LAST_SECOND = 253_402_300_799

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


def messages(cls: type[Message]) -> st.SearchStrategy[Any]:
    """Any valid message of the class: times in the years 1 to 9999, finite numbers, known enum values."""
    return _arguments(cls.DESCRIPTOR).map(lambda arguments: cls(**arguments))


def _arguments(descriptor: Any) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional={field.name: _field(field) for field in descriptor.fields})


def _field(field: FieldDescriptor) -> st.SearchStrategy[Any]:
    if is_map(field):
        return st.dictionaries(TEXT, TEXT, max_size=3)
    return st.lists(_item(field), max_size=3) if is_repeated(field) else _item(field)


def _item(field: FieldDescriptor) -> st.SearchStrategy[Any]:
    if field.enum_type is not None:
        return st.sampled_from([value.number for value in field.enum_type.values])
    if field.message_type is None:
        return {
            FieldDescriptor.TYPE_STRING: TEXT,
            FieldDescriptor.TYPE_BOOL: st.booleans(),
            FieldDescriptor.TYPE_UINT32: st.integers(0, 2**32 - 1),
            FieldDescriptor.TYPE_DOUBLE: st.floats(allow_nan=False, allow_infinity=False),
        }[field.type]
    if field.message_type.name == "Timestamp":
        return _span(FIRST_SECOND, LAST_SECOND)
    if field.message_type.name == "Duration":
        return _span(0, 10**6)
    return _arguments(field.message_type)


def _span(first: int, last: int) -> st.SearchStrategy[dict[str, int]]:
    nanos = st.one_of(st.just(0), st.integers(0, 999).map(lambda ms: ms * 10**6), st.integers(0, 10**9 - 1))
    return st.fixed_dictionaries({"seconds": st.integers(first, last), "nanos": nanos})
