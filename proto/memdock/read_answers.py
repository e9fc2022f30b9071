"""Reads the protocol's answers into dataclasses; one that breaks the protocol is ADAPTER_PROTOCOL_ERROR.

An enum number that a newer server sends is UNKNOWN.
"""

from collections.abc import Callable, Iterable
from functools import wraps
from typing import ParamSpec, TypeVar

from memdock.convert import numbers_of, optional_time, read_duration
from memdock.types import (
    Added,
    Component,
    Description,
    Feature,
    Flushed,
    Forgotten,
    Limits,
    Memory,
    Model,
    ModelUsage,
    ResetDone,
    Residue,
    Retrieved,
    Software,
    Source,
    StageTiming,
    Support,
    SystemSummary,
    TurnError,
    TurnRecord,
    TurnResult,
    TurnState,
)
from memdock.v1 import memory_pb2 as pb
from memdock.wire import not_of_the_protocol

P = ParamSpec("P")
T = TypeVar("T")

_FEATURES = {number: feature for feature, number in numbers_of(Feature, "FEATURE").items()}
_SUPPORTS = {number: support for support, number in numbers_of(Support, "SUPPORT").items()}
_STATES = {number: state for state, number in numbers_of(TurnState, "TURN_STATE").items()}
_COMPONENTS = {number: component for component, number in numbers_of(Component, "COMPONENT").items()}


def _reader(read: Callable[P, T]) -> Callable[P, T]:
    @wraps(read)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return read(*args, **kwargs)
        except (OverflowError, ValueError):
            raise not_of_the_protocol("a time in it is not in the years 1 to 9999") from None

    return guarded


def description(answer: pb.DescribeResponse) -> Description:
    """Features and supports of a newer server, which have no word here, are left out."""
    supports = {entry.feature: entry.support for entry in answer.features}
    return Description(
        system=answer.system,
        adapter=Software(name=answer.adapter.name, version=answer.adapter.version),
        framework=Software(name=answer.framework.name, version=answer.framework.version),
        protocol_versions=tuple(answer.protocol_versions),
        features={
            feature: _SUPPORTS.get(supports.get(number, 0), Support.UNSUPPORTED)
            for number, feature in _FEATURES.items()
        },
        limits=limits(answer.limits),
        models=tuple(Model(purpose=one.purpose, name=one.name, dimension=one.dimension) for one in answer.models),
        config_digest=answer.config_digest,
    )


def limits(message: pb.Limits) -> Limits:
    """The limits that hold behind an address."""
    return Limits(
        max_turns_per_request=message.max_turns_per_request,
        max_request_bytes=message.max_request_bytes,
        max_turn_bytes=message.max_turn_bytes,
        max_top_k=message.max_top_k,
        max_query_bytes=message.max_query_bytes,
        max_page_size=message.max_page_size,
        max_wait_s=read_duration(message.max_wait),
    )


def added(answer: pb.AddTurnsResponse) -> Added:
    """AddTurns."""
    return Added(
        results=tuple(map(read_result, answer.results)),
        usage=read_usage(answer.usage),
        timing=read_timing(answer.timing),
    )


def flushed(answer: pb.FlushResponse) -> Flushed:
    """Flush."""
    return Flushed(
        done=answer.done,
        pending=answer.pending,
        failed_count=answer.failed_count,
        failed=tuple(map(read_result, answer.failed)),
        space_usage=read_usage(answer.space_usage),
        timing=read_timing(answer.timing),
    )


@_reader
def retrieved(answer: pb.RetrieveResponse) -> Retrieved:
    """Retrieve."""
    return Retrieved(
        memories=tuple(map(read_memory, answer.memories)),
        pending=answer.pending,
        failed_count=answer.failed_count,
        usage=read_usage(answer.usage),
        timing=read_timing(answer.timing),
    )


def forgotten(answer: pb.ForgetResponse) -> Forgotten:
    """Forget."""
    return Forgotten(
        erased_memory_ids=tuple(answer.erased_memory_ids),
        erased_turn_ids=tuple(answer.erased_turn_ids),
        not_found=tuple(answer.not_found),
        residual=read_residual(answer.residual),
        usage=read_usage(answer.usage),
        timing=read_timing(answer.timing),
    )


def reset_done(answer: pb.ResetResponse) -> ResetDone:
    """Reset."""
    return ResetDone(
        erased_memories=answer.erased_memories,
        erased_turns=answer.erased_turns,
        residual=read_residual(answer.residual),
        usage=read_usage(answer.usage),
        timing=read_timing(answer.timing),
    )


def records(page: pb.ListTurnsResponse) -> tuple[TurnRecord, ...]:
    """One page of ListTurns."""
    return tuple(map(read_record, page.turns))


@_reader
def memories(page: pb.ListMemoriesResponse) -> tuple[Memory, ...]:
    """One page of ListMemories."""
    return tuple(map(read_memory, page.memories))


def systems(answer: pb.ListSystemsResponse) -> tuple[SystemSummary, ...]:
    """ListSystems."""
    return tuple(SystemSummary(system=one.system, ready=one.ready) for one in answer.systems)


def read_result(message: pb.TurnResult) -> TurnResult:
    """What became of one turn."""
    return TurnResult(
        turn_id=message.turn_id,
        state=_STATES.get(message.state, TurnState.UNKNOWN),
        duplicate=message.duplicate,
        memory_ids=tuple(message.memory_ids),
        error=_read_turn_error(message),
    )


def read_record(message: pb.TurnRecord) -> TurnRecord:
    """A turn of the ledger."""
    return TurnRecord(
        turn_id=message.turn_id,
        session_id=message.session_id,
        state=_STATES.get(message.state, TurnState.UNKNOWN),
        memory_ids=tuple(message.memory_ids),
        error=_read_turn_error(message),
    )


def read_memory(message: pb.Memory) -> Memory:
    """A memory."""
    return Memory(
        memory_id=message.memory_id,
        text=message.text,
        score=message.score if message.HasField("score") else None,
        kind=message.kind,
        time=optional_time(message, "time"),
        valid_from=optional_time(message, "valid_from"),
        valid_to=optional_time(message, "valid_to"),
        sources=tuple(Source(session_id=source.session_id, turn_id=source.turn_id) for source in message.sources),
        metadata=dict(message.metadata),
    )


def read_usage(message: pb.Usage) -> tuple[ModelUsage, ...]:
    """What a call cost."""
    return tuple(
        ModelUsage(
            model=one.model,
            purpose=one.purpose,
            calls=one.calls,
            input_tokens=one.input_tokens,
            output_tokens=one.output_tokens,
            estimated=one.estimated,
        )
        for one in message.models
    )


def read_timing(timing: Iterable[pb.StageTiming]) -> tuple[StageTiming, ...]:
    """How long each stage took."""
    return tuple(StageTiming(stage=one.stage, ms=one.ms) for one in timing)


def read_residual(residual: Iterable[pb.Residue]) -> tuple[Residue, ...]:
    """What is left, by component."""
    return tuple(
        Residue(
            component=_COMPONENTS.get(one.component, Component.UNKNOWN),
            items=one.items,
            verified=one.verified,
            note=one.note,
        )
        for one in residual
    )


def _read_turn_error(message: pb.TurnResult | pb.TurnRecord) -> TurnError | None:
    if not message.HasField("error"):
        return None
    error = message.error
    return TurnError(reason=error.reason, message=error.message, retryable=error.retryable)
