"""Requests and answers in protobuf's own bytes."""

import pytest
from google.protobuf.message import Message
from hypothesis import given, settings
from hypothesis import strategies as st

from memdock.errors import InternalError, InvalidArgumentError
from memdock.service import METHODS
from memdock.v1 import memory_pb2 as pb
from memdock.wire import answer_from_bytes, from_bytes
from support.messages import messages

UNKNOWN = b"\x98\x06\x01"
"""Field 99, a varint."""


def grown(message: Message) -> bytes:
    return message.SerializeToString() + UNKNOWN


def with_turn(turn: bytes) -> bytes:
    return pb.AddTurnsRequest(turns=[pb.Turn(turn_id="a")]).SerializeToString() + b"\x1a" + bytes([len(turn)]) + turn


@pytest.mark.parametrize(
    ("cls", "body", "field"),
    [
        (pb.DescribeRequest, grown(pb.DescribeRequest(system="s")), "99"),
        (pb.AddTurnsRequest, with_turn(grown(pb.Turn(turn_id="b"))), "turns[1].99"),
        (pb.AddTurnsRequest, with_turn(b"\x32\x05\x08\x01" + UNKNOWN), "turns[1].time.99"),
        (pb.AddTurnsRequest, with_turn(b"\x42\x09\x0a\x01k\x12\x01v" + UNKNOWN), "turns[1].metadata"),
        (pb.AddTurnsRequest, with_turn(b"\x0a\x01b\x10\x07"), "turns[1].session_id"),
        (pb.ForgetRequest, b"\x1a\x03" + UNKNOWN, "selector.99"),
        (pb.RetrieveRequest, b"\x3a\x03" + UNKNOWN, "filter.99"),
    ],
)
def test_an_unknown_field_is_refused_at_any_depth(cls: type[Message], body: bytes, field: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        from_bytes(cls, body)
    assert (caught.value.reason, caught.value.fields[0].field) == ("UNKNOWN_FIELD", field)


@given(st.sampled_from([method.request for method in METHODS.values()]).flatmap(messages))
@settings(max_examples=50, deadline=None)
def test_a_request_comes_through_unchanged(message: Message) -> None:
    assert from_bytes(type(message), message.SerializeToString()) == message


def test_an_unusual_encoding_is_no_unknown_field() -> None:
    twice = pb.FlushRequest(space_id="a").SerializeToString() + pb.FlushRequest(space_id="b").SerializeToString()
    assert from_bytes(pb.FlushRequest, twice).space_id == "b"
    explicit_default = b"\x18\x00"
    assert from_bytes(pb.ListTurnsRequest, explicit_default).page_size == 0


@pytest.mark.parametrize("body", [b"\xff", b"\x0a\x05ab", b"\x0a\x02\xff\xfe"])
def test_bytes_of_another_form_are_refused(body: bytes) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        from_bytes(pb.DescribeRequest, body)
    assert caught.value.reason == "MALFORMED_REQUEST"
    assert caught.value.message == "the bytes are no DescribeRequest of the protocol"


def test_an_answer_tolerates_new_fields_and_nothing_else() -> None:
    assert answer_from_bytes(pb.FlushResponse, grown(pb.FlushResponse(done=True))).done
    with pytest.raises(InternalError) as caught:
        answer_from_bytes(pb.FlushResponse, b"<html>")
    assert caught.value.reason == "ADAPTER_PROTOCOL_ERROR"
