"""Every rule of the protocol about values, exactly at its limit and one above."""

from typing import Any

import pytest

from memdock.check import check, check_turn
from memdock.errors import InvalidArgumentError, PayloadTooLargeError
from memdock.types import Limits
from memdock.v1 import memory_pb2 as pb

SMALL = Limits(max_turns_per_request=3, max_turn_bytes=10, max_top_k=5, max_query_bytes=10, max_page_size=7)


def turn(**fields: Any) -> pb.Turn:
    return pb.Turn(**{"turn_id": "t1", "session_id": "s1", "role": "user", "text": "hi", **fields})


def add(*turns: pb.Turn) -> pb.AddTurnsRequest:
    return pb.AddTurnsRequest(space_id="a", turns=turns)


def retrieve(**fields: Any) -> pb.RetrieveRequest:
    return pb.RetrieveRequest(**{"space_id": "a", "query": "q", **fields})


def forget(**selector: Any) -> pb.ForgetRequest:
    return pb.ForgetRequest(space_id="a", selector=selector)


def metadata(count: int) -> dict[str, str]:
    return {f"k{index}": "v" for index in range(count)}


@pytest.mark.parametrize(
    "request_",
    [
        pb.ListSystemsRequest(),
        pb.DescribeRequest(),
        pb.DescribeRequest(system="a" * 63),
        pb.ResetRequest(system="rag-dense", space_id="A.b_c~d-" + "9" * 120),
        pb.ResetRequest(space_id="a", request_id="~" * 128),
        add(turn()),
        add(turn(turn_id="D1:3 ~" + "!" * 122)),
        add(*(turn(turn_id=str(index)) for index in range(3))),
        add(turn(text="12345 7890", name="n" * 256)),
        add(turn(text="йцуке")),
        add(turn(time={"seconds": -62_135_596_800})),
        add(turn(time={"seconds": 253_402_300_799, "nanos": 999_999_999})),
        add(turn(time_zone="Europe/Moscow")),
        add(turn(metadata={**metadata(31), "k" * 64: "v" * 1024})),
        add(turn(metadata={"user_id": "", "$where": '"; DROP TABLE'})),
        pb.FlushRequest(space_id="a"),
        pb.FlushRequest(space_id="a", timeout={"seconds": 0}),
        retrieve(query="1234567890", top_k=5),
        retrieve(top_k=1, reference_time={"seconds": 1}, time_zone="UTC"),
        retrieve(filter={"session_ids": ["s1"], "since": {"seconds": 1}, "until": {"seconds": 2}}),
        forget(memory_ids=["any ☃"]),
        forget(turn_ids=["D1:3"] * 1000),
        forget(session_ids=["s1"]),
        pb.ListTurnsRequest(space_id="a", page_size=7, page_token="x"),
        pb.ListMemoriesRequest(space_id="a"),
    ],
)
def test_what_is_right_passes(request_: Any) -> None:
    check(request_, SMALL)


@pytest.mark.parametrize(
    ("request_", "reason", "field"),
    [
        (pb.DescribeRequest(system="a" * 64), "VALIDATION_FAILED", "system"),
        (pb.DescribeRequest(system="Rag"), "VALIDATION_FAILED", "system"),
        (pb.DescribeRequest(system="-a"), "VALIDATION_FAILED", "system"),
        *(
            (pb.ResetRequest(space_id=space), "VALIDATION_FAILED", "space_id")
            for space in ("", " ", ".", "..", "-a", "a/b", "a b", "а", "a" * 129, "*", "a\n", "a\0")
        ),
        (pb.ResetRequest(space_id="a", request_id="x" * 129), "VALIDATION_FAILED", "request_id"),
        (pb.ResetRequest(space_id="a", request_id="й"), "VALIDATION_FAILED", "request_id"),
        (add(), "VALIDATION_FAILED", "turns"),
        (add(*(turn(turn_id=str(index)) for index in range(4))), "VALIDATION_FAILED", "turns"),
        (add(turn(), turn(turn_id="t2"), turn()), "VALIDATION_FAILED", "turns[2].turn_id"),
        (add(turn(turn_id="")), "VALIDATION_FAILED", "turns[0].turn_id"),
        (add(turn(turn_id="x" * 129)), "VALIDATION_FAILED", "turns[0].turn_id"),
        (add(turn(turn_id="a\tb")), "VALIDATION_FAILED", "turns[0].turn_id"),
        (add(turn(session_id="")), "VALIDATION_FAILED", "turns[0].session_id"),
        (add(turn(session_id="..")), "VALIDATION_FAILED", "turns[0].session_id"),
        (add(turn(role="")), "VALIDATION_FAILED", "turns[0].role"),
        (add(turn(role="User")), "VALIDATION_FAILED", "turns[0].role"),
        (add(turn(name="n" * 257)), "VALIDATION_FAILED", "turns[0].name"),
        (add(turn(name="a\0")), "VALIDATION_FAILED", "turns[0].name"),
        (add(turn(text="")), "VALIDATION_FAILED", "turns[0].text"),
        (add(turn(), turn(turn_id="2", text="a\0b")), "VALIDATION_FAILED", "turns[1].text"),
        (add(turn(text="12345678901")), "VALIDATION_FAILED", "turns[0].text"),
        (add(turn(text="йцукен")), "VALIDATION_FAILED", "turns[0].text"),
        (add(turn(time={"seconds": -62_135_596_801})), "BAD_TIMESTAMP", "turns[0].time"),
        (add(turn(time={"seconds": 253_402_300_800})), "BAD_TIMESTAMP", "turns[0].time"),
        (add(turn(time={"nanos": -1})), "BAD_TIMESTAMP", "turns[0].time"),
        (add(turn(time={"nanos": 10**9})), "BAD_TIMESTAMP", "turns[0].time"),
        (add(turn(time_zone="Moscow")), "VALIDATION_FAILED", "turns[0].time_zone"),
        (add(turn(time_zone="+03:00")), "VALIDATION_FAILED", "turns[0].time_zone"),
        (add(turn(time_zone="localtime")), "VALIDATION_FAILED", "turns[0].time_zone"),
        (add(turn(time_zone="../../etc/passwd")), "VALIDATION_FAILED", "turns[0].time_zone"),
        (add(turn(metadata=metadata(33))), "VALIDATION_FAILED", "turns[0].metadata"),
        (add(turn(metadata={"": "v"})), "VALIDATION_FAILED", "turns[0].metadata"),
        (add(turn(metadata={"k" * 65: "v"})), "VALIDATION_FAILED", "turns[0].metadata (a key)"),
        (add(turn(metadata={"k": "v" * 1025})), "VALIDATION_FAILED", "turns[0].metadata (a value)"),
        (add(turn(metadata={"k": "\0"})), "VALIDATION_FAILED", "turns[0].metadata (a value)"),
        (pb.FlushRequest(space_id="a", timeout={"seconds": -1}), "VALIDATION_FAILED", "timeout"),
        (pb.FlushRequest(space_id="a", timeout={"nanos": -1}), "VALIDATION_FAILED", "timeout"),
        (pb.FlushRequest(space_id="a", timeout={"nanos": 10**9}), "VALIDATION_FAILED", "timeout"),
        (pb.FlushRequest(space_id="a", timeout={"seconds": 315_576_000_001}), "VALIDATION_FAILED", "timeout"),
        (retrieve(query=""), "VALIDATION_FAILED", "query"),
        (retrieve(query=" \n\u3000"), "VALIDATION_FAILED", "query"),
        (retrieve(query="12345678901"), "VALIDATION_FAILED", "query"),
        (retrieve(query="a\0"), "VALIDATION_FAILED", "query"),
        (retrieve(top_k=0), "VALIDATION_FAILED", "top_k"),
        (retrieve(top_k=6), "VALIDATION_FAILED", "top_k"),
        (retrieve(time_zone="UTC"), "VALIDATION_FAILED", "time_zone"),
        (retrieve(time_zone="Mars", reference_time={"seconds": 1}), "VALIDATION_FAILED", "time_zone"),
        (retrieve(reference_time={"seconds": 10**12}), "BAD_TIMESTAMP", "reference_time"),
        (retrieve(filter={"session_ids": ["s1", ""]}), "VALIDATION_FAILED", "filter.session_ids[1]"),
        (retrieve(filter={"session_ids": ["s1"] * 1001}), "VALIDATION_FAILED", "filter.session_ids"),
        (retrieve(filter={"since": {"nanos": -1}}), "BAD_TIMESTAMP", "filter.since"),
        (retrieve(filter={"since": {"seconds": 2}, "until": {"seconds": 2}}), "VALIDATION_FAILED", "filter.until"),
        (pb.ForgetRequest(space_id="a"), "SELECTOR_MISSING", "selector"),
        (forget(), "SELECTOR_MISSING", "selector"),
        (forget(turn_ids=["t1"], session_ids=["s1"]), "SELECTOR_MISSING", "selector"),
        (forget(memory_ids=["m"] * 1001), "VALIDATION_FAILED", "selector.memory_ids"),
        (forget(memory_ids=["m", ""]), "VALIDATION_FAILED", "selector.memory_ids[1]"),
        (forget(memory_ids=["m\0"]), "VALIDATION_FAILED", "selector.memory_ids[0]"),
        (forget(turn_ids=["t1", "й"]), "VALIDATION_FAILED", "selector.turn_ids[1]"),
        (forget(session_ids=[".."]), "VALIDATION_FAILED", "selector.session_ids[0]"),
        (pb.ListTurnsRequest(space_id="a", page_size=8), "VALIDATION_FAILED", "page_size"),
        (pb.ListMemoriesRequest(space_id="a", page_token="\0"), "BAD_PAGE_TOKEN", "page_token"),
    ],
)
def test_what_is_wrong_is_named(request_: Any, reason: str, field: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        check(request_, SMALL)
    assert (caught.value.reason, caught.value.fields[0].field) == (reason, field)


def test_a_request_past_its_bytes_is_too_large_and_one_at_them_is_not() -> None:
    request = add(turn(text="x" * 100))
    size_bytes = request.ByteSize()
    check(request, Limits(max_request_bytes=size_bytes))
    with pytest.raises(PayloadTooLargeError) as caught:
        check(request, Limits(max_request_bytes=size_bytes - 1))
    assert caught.value.reason == "PAYLOAD_TOO_LARGE"
    assert str(size_bytes - 1) in caught.value.message


def test_all_that_is_wrong_is_named_up_to_sixteen_fields() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        check(add(turn(role="x", text=""), turn(turn_id="2", name="n" * 300)))
    assert [item.field for item in caught.value.fields] == ["turns[0].role", "turns[0].text", "turns[1].name"]
    assert "(and 2 more)" in caught.value.message
    with pytest.raises(InvalidArgumentError) as caught:
        check(add(*(pb.Turn() for _ in range(256))))
    assert len(caught.value.fields) == 16


def test_no_text_of_a_turn_is_in_an_error() -> None:
    secret = "secret" * 20_000
    bad = turn(text=secret, name=secret, role=secret, time_zone=secret, metadata={secret: secret}, turn_id=secret)
    with pytest.raises(InvalidArgumentError) as caught:
        check_turn(bad)
    assert "secret" not in str(caught.value) + repr(caught.value.fields)


def test_no_request_has_an_enum() -> None:
    """Its zero would have to be refused over gRPC too; `memdock.json_plan` does it over JSON."""

    def enums(descriptor: Any) -> list[str]:
        inner = [name for field in descriptor.fields if field.message_type for name in enums(field.message_type)]
        return inner + [field.full_name for field in descriptor.fields if field.enum_type]

    requests = [message for name, message in pb.DESCRIPTOR.message_types_by_name.items() if name.endswith("Request")]
    assert len(requests) == 9
    assert [name for request in requests for name in enums(request)] == []
