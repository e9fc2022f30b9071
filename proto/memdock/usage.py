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

from memdock.types import ModelUsage, StageTiming

MAX_COUNT = 2**32 - 1
"""Counters stop here (uint32 on the wire) rather than wrap."""


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
                calls=calls,
                input_tokens=input_tokens,
                output_tokens=output_tokens,
                estimated=estimated,
            )
        )


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
