"""An answer that breaks the contract is refused without a word of it."""

from typing import cast

import pytest
from google.protobuf.message import Message

from memdock.errors import MemdockError
from memdock.v1 import memory_pb2 as pb
from memdock_gateway.answers import check_answer

SEARCHABLE = pb.TURN_STATE_SEARCHABLE
FAILED = pb.TURN_STATE_FAILED
NEWER = cast("pb.TurnState", 99)  # open to values of later versions
LISTED = pb.TurnRecord(turn_id="t", session_id="s", state=SEARCHABLE)
ADD = pb.AddTurnsRequest(turns=[pb.Turn(turn_id="t1"), pb.Turn(turn_id="t2")])
BY_TURN = pb.ForgetRequest(selector=pb.Selector(turn_ids=["t1", "t2"]))


def result(turn_id: str, state: pb.TurnState = SEARCHABLE, *, error: pb.TurnError | None = None) -> pb.TurnResult:
    return pb.TurnResult(turn_id=turn_id, state=state, error=error)


def memory(*, memory_id: str = "m", score: float | None = None) -> pb.Memory:
    return pb.Memory(memory_id=memory_id, text="FOREIGN", score=score)


def described(*features: pb.FeatureSupport) -> pb.DescribeResponse:
    return pb.DescribeResponse(adapter=pb.Software(), limits=pb.Limits(), protocol_versions=["v1"], features=features)


GOOD = [
    (pb.DescribeRequest(), described(pb.FeatureSupport(feature=pb.FEATURE_USAGE, support=pb.SUPPORT_NATIVE))),
    (ADD, pb.AddTurnsResponse(results=[result("t1"), result("t2", FAILED, error=pb.TurnError(reason="INTERNAL"))])),
    (ADD, pb.AddTurnsResponse(results=[result("t1"), result("t2", NEWER)])),
    (pb.FlushRequest(), pb.FlushResponse(done=True)),
    (pb.RetrieveRequest(top_k=2), pb.RetrieveResponse(memories=[memory(score=0.5), memory()])),
    (BY_TURN, pb.ForgetResponse(erased_turn_ids=["t1"], not_found=["t2"])),
    (pb.ResetRequest(), pb.ResetResponse(residual=[pb.Residue(component=pb.COMPONENT_VECTOR)])),
    (
        pb.ListTurnsRequest(page_size=1),
        pb.ListTurnsResponse(turns=[LISTED]),
    ),
    (pb.ListMemoriesRequest(page_size=1), pb.ListMemoriesResponse(memories=[memory()], next_page_token="x")),
]

BAD = [
    (ADD, pb.AddTurnsResponse(results=[result("t1")])),
    (ADD, pb.AddTurnsResponse(results=[result("t2"), result("t1")])),
    (ADD, pb.AddTurnsResponse(results=[result("t1"), result("FOREIGN")])),
    (ADD, pb.AddTurnsResponse(results=[result("t1"), result("t2", pb.TURN_STATE_UNSPECIFIED)])),
    (ADD, pb.AddTurnsResponse(results=[result("t1"), result("t2", FAILED)])),
    (ADD, pb.AddTurnsResponse(results=[result("t1"), result("t2", error=pb.TurnError(reason="INTERNAL"))])),
    (pb.FlushRequest(), pb.FlushResponse(failed=[result("t", FAILED, error=pb.TurnError())], failed_count=0)),
    (
        pb.FlushRequest(),
        pb.FlushResponse(failed=[result("t", FAILED, error=pb.TurnError())] * 257, failed_count=257),
    ),
    (pb.RetrieveRequest(top_k=1), pb.RetrieveResponse(memories=[memory(), memory()])),
    (pb.RetrieveRequest(), pb.RetrieveResponse(memories=[memory()] * 11)),
    (pb.RetrieveRequest(), pb.RetrieveResponse(memories=[memory(memory_id="")])),
    (pb.RetrieveRequest(), pb.RetrieveResponse(memories=[memory(score=float("nan"))])),
    (BY_TURN, pb.ForgetResponse(not_found=["FOREIGN"])),
    (BY_TURN, pb.ForgetResponse(erased_turn_ids=["FOREIGN"])),
    (BY_TURN, pb.ForgetResponse(residual=[pb.Residue(note="FOREIGN")])),
    (pb.ResetRequest(), pb.ResetResponse(residual=[pb.Residue(note="FOREIGN")])),
    (
        pb.ListTurnsRequest(page_size=1),
        pb.ListTurnsResponse(turns=[LISTED] * 2),
    ),
    (pb.ListTurnsRequest(), pb.ListTurnsResponse(turns=[pb.TurnRecord(turn_id="t", state=pb.TURN_STATE_PENDING)])),
    (pb.ListMemoriesRequest(), pb.ListMemoriesResponse(next_page_token="x" * 5000)),
    (pb.ListMemoriesRequest(), pb.ListMemoriesResponse(memories=[memory()] * 257)),
    (pb.DescribeRequest(), pb.DescribeResponse(system="FOREIGN")),
    (pb.DescribeRequest(), described(pb.FeatureSupport(support=pb.SUPPORT_NATIVE))),
    (pb.DescribeRequest(), described(pb.FeatureSupport(feature=pb.FEATURE_USAGE))),
    (pb.DescribeRequest(), pb.DescribeResponse(adapter=pb.Software(), limits=pb.Limits(), protocol_versions=["v9"])),
]


@pytest.mark.parametrize(("request_", "answer"), GOOD)
def test_a_right_answer_passes(request_: Message, answer: Message) -> None:
    check_answer("rag", request_, answer)


@pytest.mark.parametrize(("request_", "answer"), BAD)
def test_a_wrong_answer_is_an_error_of_the_adapter(request_: Message, answer: Message) -> None:
    with pytest.raises(MemdockError) as refused:
        check_answer("rag", request_, answer)
    assert refused.value.reason == "ADAPTER_PROTOCOL_ERROR"
    assert "rag" in refused.value.message
    assert "FOREIGN" not in refused.value.message
