"""What a call costs inside a memory system, and how long its stages take.

An adapter tells it where it happens, however deep: `usage.count(model=..., purpose=..., ...)` after a model call, and
`with usage.stage("embed"):` around a stage. The server collects both around each call into the system. They reach the
call through a context variable: tasks and `asyncio.to_thread` inherit it, a bare `run_in_executor` does not. Outside of
a call of the server they do nothing.
"""

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeGuard

from memdock.types import ModelUsage, StageTiming

MAX_COUNT = 2**32 - 1
"""Counters stop here (uint32 on the wire) rather than wrap."""

MAX_CALL_TOKENS, MAX_TOKENS_A_BYTE = 2**31, 100
"""No call of a model takes more tokens, or reads more of them for a byte that it was sent."""


def is_count(value: object, *, sent_bytes: int | None = None) -> TypeGuard[int]:
    """Whether what an endpoint gives as tokens of a call can be a count: else they are estimated.

    `sent_bytes`: of what the model has read, where these are its tokens; those that it writes may be thoughts, which
    nobody is sent.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        return False
    most = MAX_CALL_TOKENS if sent_bytes is None else min(MAX_CALL_TOKENS, MAX_TOKENS_A_BYTE * sent_bytes)
    return 0 <= value <= most


class Meter:
    """Gathers the usage and the stages of one call; safe to feed from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counted: list[ModelUsage] = []
        self._stages: dict[str, float] = {}

    @property
    def models(self) -> tuple[ModelUsage, ...]:
        """One entry for each model and purpose, in a fixed order."""
        with self._lock:
            return merge(self._counted)

    @property
    def timing(self) -> tuple[StageTiming, ...]:
        """The stages in the order of their first end; the times of a stage that ran more than once are added up."""
        with self._lock:
            return tuple(StageTiming(stage=stage, ms=ms) for stage, ms in self._stages.items())

    def add(self, counted: ModelUsage) -> None:
        """Adds calls of a model."""
        with self._lock:
            self._counted.append(counted)

    def add_stage(self, stage: str, ms: float) -> None:
        """Adds wall time to a stage."""
        with self._lock:
            self._stages[stage] = self._stages.get(stage, 0.0) + ms


_meter: ContextVar[Meter | None] = ContextVar("memdock_meter", default=None)


@contextmanager
def collect() -> Iterator[Meter]:
    """Collects what `count` and `stage` tell inside the block."""
    meter = Meter()
    token = _meter.set(meter)
    try:
        yield meter
    finally:
        _meter.reset(token)


def count(
    *,
    model: str,
    purpose: str,
    calls: int = 1,
    input_tokens: int = 0,
    output_tokens: int = 0,
    estimated: bool = False,
) -> None:
    """Tells of calls of a model. `estimated`: the tokens were not counted by the model's server."""
    meter = _meter.get()
    if meter is not None:
        meter.add(
            ModelUsage(
                model=model,
                purpose=purpose,
                calls=_bounded(calls),
                input_tokens=_bounded(input_tokens),
                output_tokens=_bounded(output_tokens),
                estimated=estimated,
            )
        )


def _bounded(count: int) -> int:
    return max(0, min(count, MAX_COUNT))


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Times a stage of the call: queue, embed, model, store, ..."""
    started = time.perf_counter()
    try:
        yield
    finally:
        meter = _meter.get()
        if meter is not None:
            meter.add_stage(name, (time.perf_counter() - started) * 1000)


def merge(usage: Iterable[ModelUsage]) -> tuple[ModelUsage, ...]:
    """Adds up by model and purpose, sorted by both; `estimated` where any part was."""
    totals: dict[tuple[str, str], ModelUsage] = {}
    for one in usage:
        key = (one.model, one.purpose)
        totals[key] = _sum(totals[key], one) if key in totals else one
    return tuple(totals[key] for key in sorted(totals))


def _sum(left: ModelUsage, right: ModelUsage) -> ModelUsage:
    return ModelUsage(
        model=left.model,
        purpose=left.purpose,
        calls=min(left.calls + right.calls, MAX_COUNT),
        input_tokens=min(left.input_tokens + right.input_tokens, MAX_COUNT),
        output_tokens=min(left.output_tokens + right.output_tokens, MAX_COUNT),
        estimated=left.estimated or right.estimated,
    )
