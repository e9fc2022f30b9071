"""Dataclasses and wire messages, there and back."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memdock import convert, read_answers
from memdock.errors import InternalError, InvalidArgumentError
from memdock.types import (
    Component,
    Erasure,
    Feature,
    Memory,
    ModelUsage,
    Query,
    Residue,
    Selection,
    Source,
    StageTiming,
    Support,
    Turn,
    TurnError,
    TurnRecord,
    TurnResult,
    TurnState,
)
from memdock.v1 import memory_pb2 as pb

NOON = datetime(2024, 5, 1, 12, 0, 0, 250_000, tzinfo=UTC)

aware = st.datetimes(timezones=st.timezones(), allow_imaginary=False).filter(
    lambda time: 1 < (time - datetime(1, 1, 1, tzinfo=UTC)).days < 3_652_057
)


@given(aware)
@settings(max_examples=50, deadline=None)
def test_an_instant_is_kept(time: datetime) -> None:
    assert convert.read_time(convert.wire_time(time)) == time.astimezone(UTC)


@pytest.mark.parametrize(
    "time",
    [
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        datetime(1, 1, 1, 3, 30, tzinfo=timezone(timedelta(hours=3, minutes=30))),
    ],
)
def test_the_first_and_the_last_instant_are_kept(time: datetime) -> None:
    assert convert.read_time(convert.wire_time(time)) == time


def test_a_naive_time_is_refused_by_its_path() -> None:
    bad = Turn(turn_id="t", session_id="s", role="user", text="x", time=datetime(2024, 5, 1))
    with pytest.raises(InvalidArgumentError) as caught:
        convert.wire_turn(bad, "turns[3].")
    assert (caught.value.reason, caught.value.fields[0].field) == ("BAD_TIMESTAMP", "turns[3].time")


def test_half_a_surrogate_pair_is_refused_by_its_path() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        convert.wire_turn(Turn(turn_id="t", session_id="s", role="user", text="\ud800"), "turns[0].")
    assert caught.value.fields[0].field == "turns[0].text"


def test_everything_goes_there_and_back() -> None:
    turn = Turn(
        turn_id="t", session_id="s", role="user", text="x", name="n", time=NOON, time_zone="UTC", metadata={"a": "b"}
    )
    assert convert.read_turn(convert.wire_turn(turn)) == turn
    error = TurnError(reason="PROVIDER_TIMEOUT", message="later", retryable=True)
    for result in (
        TurnResult(turn_id="t", state=TurnState.FAILED, error=error),
        TurnResult(turn_id="t", state=TurnState.SEARCHABLE, duplicate=True, memory_ids=("m1", "m2")),
    ):
        assert read_answers.read_result(convert.wire_result(result)) == result
    record = TurnRecord(turn_id="t", session_id="s", state=TurnState.FAILED, memory_ids=("m",), error=error)
    assert read_answers.read_record(convert.wire_record(record)) == record
    memory = Memory(
        memory_id="m",
        text="x",
        kind="turn",
        score=0.0,
        time=NOON,
        valid_from=NOON,
        valid_to=NOON,
        sources=(Source(session_id="s", turn_id="t"),),
        metadata={"a": "b"},
    )
    assert read_answers.read_memory(convert.wire_memory(memory)) == memory
    bare = Memory(memory_id="m", text="x")
    assert read_answers.read_memory(convert.wire_memory(bare)) == bare
    query = Query(text="q", top_k=3, reference_time=NOON, time_zone="UTC", session_ids=("s",), since=NOON, until=NOON)
    assert convert.read_query(convert.wire_query(query, system="", space_id="a")) == query
    selection = Selection(turn_ids=("a", "b"))
    assert convert.read_selection(convert.wire_selection(selection)) == selection
    usage = (ModelUsage(model="m", purpose="p", calls=1, input_tokens=2, output_tokens=3, estimated=True),)
    assert read_answers.read_usage(convert.wire_usage(usage)) == usage
    timing = (StageTiming(stage="embed", ms=1.5),)
    assert read_answers.read_timing(convert.wire_timing(timing)) == timing


@pytest.mark.parametrize("component", [word for word in Component if word is not Component.UNKNOWN])
def test_every_component_goes_there_and_back(component: Component) -> None:
    left = (Residue(component=component, items=2, verified=True, note="n"),)
    erasure = Erasure(erased_memory_ids=("m",), erased_turn_ids=("t",), not_found=("x",), residual=left)
    found = read_answers.forgotten(convert.wire_erasure(erasure))
    assert (found.erased_memory_ids, found.erased_turn_ids, found.not_found) == (("m",), ("t",), ("x",))
    assert found.residual == left


def test_every_word_has_its_number() -> None:
    for kind, prefix, enum in (
        (TurnState, "TURN_STATE", pb.TurnState),
        (Feature, "FEATURE", pb.Feature),
        (Support, "SUPPORT", pb.Support),
        (Component, "COMPONENT", pb.Component),
    ):
        known = {number for number in enum.values() if number}
        assert set(convert.numbers_of(kind, prefix).values()) == known


def test_words_of_a_newer_server_are_unknown_and_cannot_be_written() -> None:
    assert read_answers.read_result(pb.TurnResult(state=77)).state is TurnState.UNKNOWN  # type: ignore[arg-type]
    with pytest.raises(KeyError):
        convert.wire_result(TurnResult(turn_id="t", state=TurnState.UNKNOWN))


def test_a_description_has_every_feature_and_leaves_out_new_ones() -> None:
    answer = pb.DescribeResponse(
        system="s",
        features=[
            pb.FeatureSupport(feature=pb.FEATURE_SOURCES, support=pb.SUPPORT_NATIVE),
            pb.FeatureSupport(feature=99, support=pb.SUPPORT_NATIVE),  # type: ignore[arg-type]
        ],
        limits=pb.Limits(max_wait={"seconds": 2, "nanos": 500_000_000}),
    )
    found = read_answers.description(answer)
    assert set(found.features) == set(Feature)
    assert found.features[Feature.SOURCES] is Support.NATIVE
    assert found.features[Feature.SCORES] is Support.UNSUPPORTED
    assert found.limits.max_wait_s == 2.5


def test_a_time_outside_the_years_is_an_error_of_the_system() -> None:
    for seconds in (10**12, -(10**12), 2**62):
        answer = pb.RetrieveResponse(memories=[pb.Memory(time={"seconds": seconds})])
        with pytest.raises(InternalError) as caught:
            read_answers.retrieved(answer)
        assert caught.value.reason == "ADAPTER_PROTOCOL_ERROR"
