"""Between the protocol's dataclasses and its wire messages: `wire_*` writes a message, `read_*` reads one.

What a server reads and writes, and what a client writes; `memdock.read_answers` is what a client reads.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, TypeVar

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from memdock.findings import refuse
from memdock.json_values import EPOCH
from memdock.types import (
    Component,
    Erasure,
    Memory,
    ModelUsage,
    Query,
    Residue,
    Selection,
    StageTiming,
    Turn,
    TurnError,
    TurnRecord,
    TurnResult,
    TurnState,
)
from memdock.v1 import memory_pb2 as pb

DEFAULT_TOP_K = 10

E = TypeVar("E", bound=StrEnum)


def numbers_of(kind: type[E], prefix: str) -> Mapping[E, Any]:
    """The wire's number of each word that has one; UNKNOWN has none, so that to write it is a KeyError."""
    values = pb.DESCRIPTOR.enum_types_by_name[kind.__name__].values_by_name
    return {word: values[f"{prefix}_{word}"].number for word in kind if f"{prefix}_{word}" in values}


_STATE_NUMBERS = numbers_of(TurnState, "TURN_STATE")
_COMPONENT_NUMBERS = numbers_of(Component, "COMPONENT")


def wire_time(time: datetime, path: str = "time") -> Timestamp:
    """An aware time as an instant; a naive one is BAD_TIMESTAMP, named by `path`."""
    if time.utcoffset() is None:
        raise refuse("BAD_TIMESTAMP", path, "must be a datetime with a time zone; this one is naive")
    since = time - EPOCH
    return Timestamp(seconds=since.days * 86400 + since.seconds, nanos=since.microseconds * 1000)


def read_time(time: Timestamp) -> datetime:
    """The instant in UTC, cut to microseconds."""
    return EPOCH + timedelta(seconds=time.seconds, microseconds=time.nanos // 1000)


def wire_duration(seconds: float) -> Duration:
    """Seconds as a duration."""
    whole, nanos = divmod(round(seconds * 1e9), 10**9)
    return Duration(seconds=whole, nanos=nanos)


def read_duration(duration: Duration) -> float:
    """The duration in seconds."""
    return duration.seconds + duration.nanos / 1e9


def wire_turn(turn: Turn, path: str = "") -> pb.Turn:
    """A turn; `path` is put before the names of its fields in an error."""
    try:
        message = pb.Turn(
            turn_id=turn.turn_id,
            session_id=turn.session_id,
            role=turn.role,
            name=turn.name,
            text=turn.text,
            time_zone=turn.time_zone,
            metadata=turn.metadata,
        )
    except UnicodeEncodeError:
        raise refuse("VALIDATION_FAILED", f"{path}text", "holds half of a surrogate pair: not Unicode") from None
    if turn.time is not None:
        message.time.CopyFrom(wire_time(turn.time, f"{path}time"))
    return message


def read_turn(message: pb.Turn) -> Turn:
    """A turn as a memory system sees it."""
    return Turn(
        turn_id=message.turn_id,
        session_id=message.session_id,
        role=message.role,
        name=message.name,
        text=message.text,
        time=optional_time(message, "time"),
        time_zone=message.time_zone,
        metadata=dict(message.metadata),
    )


def wire_query(query: Query, *, system: str, space_id: str) -> pb.RetrieveRequest:
    """A query as a request."""
    request = pb.RetrieveRequest(
        system=system, space_id=space_id, query=query.text, top_k=query.top_k, time_zone=query.time_zone
    )
    if query.reference_time is not None:
        request.reference_time.CopyFrom(wire_time(query.reference_time, "reference_time"))
    if query.session_ids:
        request.filter.session_ids.extend(query.session_ids)
    if query.since is not None:
        request.filter.since.CopyFrom(wire_time(query.since, "filter.since"))
    if query.until is not None:
        request.filter.until.CopyFrom(wire_time(query.until, "filter.until"))
    return request


def read_query(request: pb.RetrieveRequest) -> Query:
    """What a request asks, with the default `top_k` filled in."""
    return Query(
        text=request.query,
        top_k=request.top_k if request.HasField("top_k") else DEFAULT_TOP_K,
        reference_time=optional_time(request, "reference_time"),
        time_zone=request.time_zone,
        session_ids=tuple(request.filter.session_ids),
        since=optional_time(request.filter, "since"),
        until=optional_time(request.filter, "until"),
    )


def wire_selection(selection: Selection) -> pb.Selector:
    """What to forget."""
    return pb.Selector(memory_ids=selection.memory_ids, turn_ids=selection.turn_ids, session_ids=selection.session_ids)


def read_selection(selector: pb.Selector) -> Selection:
    """What to forget."""
    return Selection(
        memory_ids=tuple(selector.memory_ids),
        turn_ids=tuple(selector.turn_ids),
        session_ids=tuple(selector.session_ids),
    )


def wire_result(result: TurnResult) -> pb.TurnResult:
    """What became of one turn."""
    return pb.TurnResult(
        turn_id=result.turn_id,
        state=_STATE_NUMBERS[result.state],
        duplicate=result.duplicate,
        memory_ids=result.memory_ids,
        error=_wire_turn_error(result.error),
    )


def wire_record(record: TurnRecord) -> pb.TurnRecord:
    """A turn of the ledger."""
    return pb.TurnRecord(
        turn_id=record.turn_id,
        session_id=record.session_id,
        state=_STATE_NUMBERS[record.state],
        memory_ids=record.memory_ids,
        error=_wire_turn_error(record.error),
    )


def wire_memory(memory: Memory) -> pb.Memory:
    """A memory."""
    message = pb.Memory(
        memory_id=memory.memory_id,
        text=memory.text,
        score=memory.score,
        kind=memory.kind,
        sources=[pb.Source(session_id=source.session_id, turn_id=source.turn_id) for source in memory.sources],
        metadata=memory.metadata,
    )
    for name in ("time", "valid_from", "valid_to"):
        time = getattr(memory, name)
        if time is not None:
            getattr(message, name).CopyFrom(wire_time(time, name))
    return message


def wire_usage(usage: Iterable[ModelUsage]) -> pb.Usage:
    """What a call cost."""
    return pb.Usage(
        models=[
            pb.ModelUsage(
                model=one.model,
                purpose=one.purpose,
                calls=one.calls,
                input_tokens=one.input_tokens,
                output_tokens=one.output_tokens,
                estimated=one.estimated,
            )
            for one in usage
        ]
    )


def wire_timing(timing: Iterable[StageTiming]) -> Sequence[pb.StageTiming]:
    """How long each stage took."""
    return [pb.StageTiming(stage=one.stage, ms=one.ms) for one in timing]


def wire_residual(residual: Iterable[Residue]) -> Sequence[pb.Residue]:
    """What is left, by component."""
    return [
        pb.Residue(
            component=_COMPONENT_NUMBERS[one.component],
            items=one.items,
            verified=one.verified,
            note=one.note,
        )
        for one in residual
    ]


def wire_erasure(erasure: Erasure) -> pb.ForgetResponse:
    """What Forget took; usage and timing are the caller's to add."""
    return pb.ForgetResponse(
        erased_memory_ids=erasure.erased_memory_ids,
        erased_turn_ids=erasure.erased_turn_ids,
        not_found=erasure.not_found,
        residual=wire_residual(erasure.residual),
    )


def _wire_turn_error(error: TurnError | None) -> pb.TurnError | None:
    if error is None:
        return None
    return pb.TurnError(reason=error.reason, message=error.message, retryable=error.retryable)


def optional_time(message: Any, name: str) -> datetime | None:
    """The time in a field; `None` when it is unset."""
    return read_time(getattr(message, name)) if message.HasField(name) else None
