"""The compiled JSON against protobuf's own, and where it is narrower on purpose."""

import json
from typing import Any

import pytest
from google.protobuf import json_format
from google.protobuf.message import Message
from hypothesis import given, settings
from hypothesis import strategies as st

from memdock.errors import InternalError, InvalidArgumentError
from memdock.service import METHODS
from memdock.v1 import memory_pb2 as pb
from memdock.wire import answer_from_json, from_json, from_query, to_json
from support.messages import messages

REQUESTS = [method.request for method in METHODS.values()]
ANSWERS = [method.response for method in METHODS.values()]


def refused(cls: type[Message], body: str, **path: str) -> InvalidArgumentError:
    with pytest.raises(InvalidArgumentError) as caught:
        from_json(cls, body.encode(), **path)
    return caught.value


@given(st.sampled_from(REQUESTS + ANSWERS).flatmap(messages))
@settings(max_examples=80, deadline=None)
def test_protobuf_reads_what_is_written(message: Any) -> None:
    assert json_format.Parse(to_json(message), type(message)()) == message


@given(st.sampled_from(REQUESTS).flatmap(messages), st.booleans())
@settings(max_examples=50, deadline=None)
def test_what_protobuf_writes_is_read_as_a_request_in_either_case(message: Any, snake: bool) -> None:
    body = json_format.MessageToJson(message, preserving_proto_field_name=snake)
    assert from_json(type(message), body.encode()) == message


@given(st.sampled_from(ANSWERS).flatmap(messages), st.booleans())
@settings(max_examples=50, deadline=None)
def test_what_protobuf_writes_is_read_as_an_answer(message: Any, snake: bool) -> None:
    body = json_format.MessageToJson(message, preserving_proto_field_name=snake)
    assert answer_from_json(type(message), body.encode()) == message


@given(st.sampled_from(REQUESTS + ANSWERS).flatmap(messages))
@settings(max_examples=40, deadline=None)
def test_what_is_written_names_the_fields_that_protobuf_names(message: Any) -> None:
    ours = json.loads(to_json(message))
    theirs = json_format.MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    assert shape(ours) == shape(theirs)


def shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    return [shape(item) for item in value] if isinstance(value, list) else type(value) is str


@pytest.mark.parametrize("names", [("turn_id", "turnId"), ("turnId", "turn_id")])
@pytest.mark.parametrize("values", [('"a"', '"b"'), ('"a"', "null"), ("null", '"b"')])
def test_a_field_in_both_cases_of_its_name_is_refused_in_either_order(
    names: tuple[str, str], values: tuple[str, str]
) -> None:
    given = ", ".join(f'"{name}": {value}' for name, value in zip(names, values, strict=True))
    error = refused(pb.AddTurnsRequest, f'{{"turns": [{{{given}}}]}}')
    assert [field.field for field in error.fields] == ["turns[0].turn_id"]


TIMES = [
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999999999Z",
    "2024-02-29T12:00:00+03:00",
    "2024-05-01T09:30:00-03:30",
    "2024-05-01T09:30:00.5Z",
    "2024-05-01T23:59:59+14:00",
    "2024-02-30T12:00:00Z",
    "2023-02-29T12:00:00Z",
    "0000-01-01T00:00:00Z",
    "2024-05-01T09:30:00",
    "2024-05-01",
    "2024-05-01 09:30:00Z",
    "2024-05-01T25:00:00Z",
    "2024-05-01T09:30:61Z",
    "0001-01-01T00:00:00+01:00",
    "9999-12-31T23:59:59-01:00",
    "",
    "now",
    "1714555800",
]


@pytest.mark.parametrize("text", TIMES)
def test_a_time_is_read_as_protobuf_reads_it(text: str) -> None:
    body = json.dumps({"reference_time": text})
    try:
        theirs = json_format.Parse(body, pb.RetrieveRequest()).reference_time
    except json_format.ParseError:
        assert refused(pb.RetrieveRequest, body).reason == "BAD_TIMESTAMP"
    else:
        assert from_json(pb.RetrieveRequest, body.encode()).reference_time == theirs


@pytest.mark.parametrize("value", ["1714555800", "1714555800.5", "true", '{"seconds": 1}', "[]"])
def test_a_time_that_is_no_string_is_refused(value: str) -> None:
    error = refused(pb.AddTurnsRequest, f'{{"turns": [{{}}, {{"time": {value}}}]}}')
    assert (error.reason, error.fields[0].field) == ("BAD_TIMESTAMP", "turns[1].time")


def test_digits_of_other_scripts_are_no_time() -> None:
    assert refused(pb.RetrieveRequest, '{"reference_time": "２024-05-01T09:30:00Z"}').reason == "BAD_TIMESTAMP"


@pytest.mark.parametrize("text", ["2024-05-01T09:30:00z", "2024-05-01t09:30:00+00:00"])
def test_rfc_3339_letters_may_be_small(text: str) -> None:
    request = from_json(pb.RetrieveRequest, f'{{"reference_time": "{text}"}}'.encode())
    assert request.reference_time.seconds == 1714555800


@pytest.mark.parametrize(
    ("text", "seconds", "nanos"),
    [("2.5s", 2, 500_000_000), ("30s", 30, 0), ("0s", 0, 0), ("0.000000001s", 0, 1), ("-1.5s", -1, -500_000_000)],
)
def test_a_duration_goes_both_ways(text: str, seconds: int, nanos: int) -> None:
    request = from_json(pb.FlushRequest, f'{{"timeout": "{text}"}}'.encode())
    assert (request.timeout.seconds, request.timeout.nanos) == (seconds, nanos)
    assert f'"timeout":"{text}"'.encode() in to_json(request)


@pytest.mark.parametrize("value", ["2.5", '"2.5"', '"PT2S"', '"1e3s"', '"999999999999s"', '"s"', '""'])
def test_a_duration_of_another_form_is_refused(value: str) -> None:
    assert refused(pb.FlushRequest, f'{{"timeout": {value}}}').fields[0].field == "timeout"


@pytest.mark.parametrize(
    ("cls", "body", "reason", "field"),
    [
        (pb.RetrieveRequest, '{"topk": 3}', "UNKNOWN_FIELD", "topk"),
        (pb.RetrieveRequest, '{"TopK": 3}', "UNKNOWN_FIELD", "TopK"),
        (pb.RetrieveRequest, '{"filter": {"session": []}}', "UNKNOWN_FIELD", "filter.session"),
        (pb.ForgetRequest, '{"selector": {"all": true}}', "UNKNOWN_FIELD", "selector.all"),
        (pb.AddTurnsRequest, '{"turns": [{}, {"body": ""}]}', "UNKNOWN_FIELD", "turns[1].body"),
        (pb.RetrieveRequest, '{"top_k": "3"}', "VALIDATION_FAILED", "top_k"),
        (pb.RetrieveRequest, '{"top_k": 3.5}', "VALIDATION_FAILED", "top_k"),
        (pb.RetrieveRequest, '{"top_k": true}', "VALIDATION_FAILED", "top_k"),
        (pb.RetrieveRequest, '{"top_k": -1}', "VALIDATION_FAILED", "top_k"),
        (pb.RetrieveRequest, '{"top_k": 4294967296}', "VALIDATION_FAILED", "top_k"),
        (pb.RetrieveRequest, '{"query": 5}', "VALIDATION_FAILED", "query"),
        (pb.RetrieveRequest, '{"filter": []}', "VALIDATION_FAILED", "filter"),
        (pb.RetrieveRequest, '{"filter": {"session_ids": "s1"}}', "VALIDATION_FAILED", "filter.session_ids"),
        (pb.RetrieveRequest, '{"filter": {"sessionIds": [1]}}', "VALIDATION_FAILED", "filter.session_ids[0]"),
        (pb.RetrieveRequest, '{"filter": {"session_ids": [null]}}', "VALIDATION_FAILED", "filter.session_ids[0]"),
        (pb.RetrieveRequest, '{"top_k": 3, "topK": 3}', "VALIDATION_FAILED", "top_k"),
        (pb.ForgetRequest, '{"dry_run": "yes"}', "VALIDATION_FAILED", "dry_run"),
        (pb.AddTurnsRequest, '{"turns": [{"metadata": {"a": 1}}]}', "VALIDATION_FAILED", "turns[0].metadata.a"),
        (pb.AddTurnsRequest, '{"turns": [{"metadata": ["a"]}]}', "VALIDATION_FAILED", "turns[0].metadata"),
        (pb.AddTurnsRequest, '{"turns": ["hello"]}', "VALIDATION_FAILED", "turns[0]"),
        (pb.AddTurnsRequest, "[]", "VALIDATION_FAILED", "body"),
        (pb.RetrieveRequest, '{"query": "a", "query": "b"}', "MALFORMED_REQUEST", "query"),
        (pb.AddTurnsRequest, '{"turns": [{"text": "a:b", "text": "c"}]}', "MALFORMED_REQUEST", "text"),
        (pb.RetrieveRequest, '{"query": "\\u003a", "query": "b"}', "MALFORMED_REQUEST", "query"),
        (pb.RetrieveRequest, '{"\\u0071uery": "a", "query": "b"}', "MALFORMED_REQUEST", "query"),
    ],
)
def test_a_wrong_field_is_named(cls: type[Message], body: str, reason: str, field: str) -> None:
    error = refused(cls, body)
    assert (error.reason, error.fields[0].field) == (reason, field)
    assert error.message.startswith(field)


@pytest.mark.parametrize("body", ["{", "nonsense", '{"query": "\ud800"}', '{"query": NaN}', '{"query": "\\ud800"}'])
def test_what_is_no_json_is_refused_by_its_place(body: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        from_json(pb.RetrieveRequest, body.encode(errors="surrogatepass"))
    assert caught.value.reason == "MALFORMED_REQUEST"
    assert "line 1, column" in caught.value.message


def test_colons_in_texts_are_no_repeated_keys() -> None:
    body = '{"query": "10:30 \\u003a ::", "filter": {"session_ids": ["a:b"]}}'
    assert from_json(pb.RetrieveRequest, body.encode()).query == "10:30 : ::"


@pytest.mark.parametrize("depth", [300, 1000, 100_000])
@pytest.mark.parametrize("opening", ['{"x":', "["])
def test_a_deep_body_is_refused_like_any_other(depth: int, opening: str) -> None:
    closing = "}" if opening.startswith("{") else "]"
    inner = opening * depth + "1" + closing * depth
    for body in (inner, f'{{"query": {inner}, "query": "q"}}'):
        assert refused(pb.RetrieveRequest, body).reason in ("MALFORMED_REQUEST", "VALIDATION_FAILED", "UNKNOWN_FIELD")


def test_null_is_a_field_left_out() -> None:
    body = b'{"query": "q", "top_k": null, "filter": null, "reference_time": null}'
    assert from_json(pb.RetrieveRequest, body) == pb.RetrieveRequest(query="q")


def test_sixteen_findings_are_enough() -> None:
    error = refused(pb.AddTurnsRequest, '{"turns": [' + ",".join(['{"a": 1, "b": 2}'] * 256) + "]}")
    assert len(error.fields) == 16
    assert error.fields[-1].field == "turns[7].b"


def test_the_path_fills_fields_and_may_not_be_contradicted() -> None:
    request = from_json(pb.FlushRequest, b"", system="", space_id="a")
    assert request == pb.FlushRequest(space_id="a")
    assert from_json(pb.FlushRequest, b'{"spaceId": "a"}', space_id="a") == request
    assert refused(pb.FlushRequest, '{"space_id": "b"}', space_id="a").fields[0].field == "space_id"
    assert refused(pb.FlushRequest, '{"system": "x"}', system="").fields[0].field == "system"


def test_a_query_string_is_a_request() -> None:
    pairs = [("pageSize", "5"), ("page_token", "10")]
    request = from_query(pb.ListTurnsRequest, pairs, system="s", space_id="a")
    assert request == pb.ListTurnsRequest(system="s", space_id="a", page_size=5, page_token="10")


@pytest.mark.parametrize(
    ("pairs", "reason", "field"),
    [
        ([("page_sise", "5")], "UNKNOWN_FIELD", "page_sise"),
        ([("page_size", "ten")], "VALIDATION_FAILED", "page_size"),
        ([("page_size", "-1")], "VALIDATION_FAILED", "page_size"),
        ([("page_size", "05")], "VALIDATION_FAILED", "page_size"),
        ([("page_size", "")], "VALIDATION_FAILED", "page_size"),
        ([("page_size", "1"), ("page_size", "2")], "VALIDATION_FAILED", "page_size"),
        ([("page_size", "1"), ("pageSize", "2")], "VALIDATION_FAILED", "page_size"),
        ([("space_id", "b")], "VALIDATION_FAILED", "space_id"),
    ],
)
def test_a_wrong_query_parameter_is_named(pairs: list[tuple[str, str]], reason: str, field: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        from_query(pb.ListTurnsRequest, pairs, system="s", space_id="a")
    assert (caught.value.reason, caught.value.fields[0].field) == (reason, field)


def test_enums_go_by_full_name_and_zero_is_refused_in_a_request() -> None:
    assert b'"state":"TURN_STATE_NO_MEMORY"' in to_json(pb.TurnResult(state=pb.TURN_STATE_NO_MEMORY))
    assert from_json(pb.TurnResult, b'{"state": "TURN_STATE_FAILED"}').state == pb.TURN_STATE_FAILED
    for value in ('"TURN_STATE_UNSPECIFIED"', '"FAILED"', "4", "true"):
        error = refused(pb.TurnResult, f'{{"state": {value}}}')
        assert "TURN_STATE_PENDING" in error.message


def test_a_reader_of_answers_tolerates_a_newer_server() -> None:
    body = b'{"results": [{"turn_id": "t", "state": 77, "mood": "good"}], "extra": {"a": 1}}'
    assert answer_from_json(pb.AddTurnsResponse, body).results[0].state == 77
    named = answer_from_json(pb.AddTurnsResponse, b'{"results": [{"state": "TURN_STATE_ARCHIVED"}]}')
    assert named.results[0].state == pb.TURN_STATE_UNSPECIFIED
    assert b'"state":77' in to_json(pb.TurnResult(state=77))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "body",
    [
        b"<html>secret</html>",
        b"[]",
        b'{"memories": {}}',
        b'{"memories": [{"score": "secret"}]}',
        b'{"pending": -1}',
        b"",
    ],
)
def test_an_answer_of_another_form_shows_none_of_its_words(body: bytes) -> None:
    with pytest.raises(InternalError) as caught:
        answer_from_json(pb.RetrieveResponse, body)
    assert caught.value.reason == "ADAPTER_PROTOCOL_ERROR"
    assert "secret" not in caught.value.message


@pytest.mark.parametrize(
    "answer",
    [
        pb.RetrieveResponse(memories=[pb.Memory(score=float("nan"))]),
        pb.RetrieveResponse(memories=[pb.Memory(score=float("-inf"))]),
        pb.RetrieveResponse(memories=[pb.Memory(time={"seconds": 10**12})]),
        pb.RetrieveResponse(memories=[pb.Memory(time={"nanos": -1})]),
    ],
)
def test_what_json_cannot_hold_is_an_error_of_the_system(answer: Message) -> None:
    with pytest.raises(InternalError) as caught:
        to_json(answer)
    assert caught.value.reason == "ADAPTER_PROTOCOL_ERROR"
