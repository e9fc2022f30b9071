"""One memory system under test: the protocol's client, with patience and with failures told apart."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Generic, TypeVar
from zoneinfo import ZoneInfo

from memdock.client import AsyncClient
from memdock.errors import MemdockError
from memdock.types import (
    Added,
    Description,
    Feature,
    Flushed,
    Memory,
    ResetDone,
    Retrieved,
    Support,
    Turn,
    TurnRecord,
)
from memdock_evaluator.cost.budget import Budget
from memdock_evaluator.faults import Breaker, fault_of, may_pass
from memdock_evaluator.results.rows import Outcome
from memdock_evaluator.waiting import Say, Waiting, unheard

ResultT = TypeVar("ResultT")

_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.5, 10.0
_LOOK_EVERY_S = 5.0
_DEAD_AFTER = 5
"""Calls in a row that failed although each was tried for as long as the patience lasts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed(Generic[ResultT]):
    """A call's result and how long its last try took, in milliseconds."""

    result: ResultT
    ms: float


class MemorySystem:
    """Every method raises `faults.Fault`, or `RunStoppedError` where the run cannot go on."""

    def __init__(
        self, client: AsyncClient, description: Description, *, name: str, patience_s: float, say: Say = unheard
    ) -> None:
        """`patience_s`: for how long a call is tried. `say`: where it is told that an answer is long in coming."""
        self.name = name
        self.description = description
        self._client = client
        self._patience_s = patience_s
        self._breaker = Breaker(f"memory system {name}", limit=_DEAD_AFTER)
        self._waiting = Waiting(f"memory system {name}", say)
        self.budget: Budget | None = None
        """Where it is kept to: no turn is sent and no question asked once it is spent."""

    def declares(self, feature: Feature) -> bool:
        """Whether Describe says that the system can do this, itself or through its adapter."""
        return self.description.features.get(feature, Support.UNSUPPORTED) in (Support.EMULATED, Support.NATIVE)

    async def add_turns(self, space_id: str, turns: Sequence[Turn]) -> Timed[Added]:
        """Sends turns; the zone of their clock goes along where the system reads it."""
        self._heed()
        if self.declares(Feature.TIME_ZONES):
            turns = [replace(turn, time_zone=zone_name(turn.time)) for turn in turns]
        return await self._patiently(lambda: self._client.add_turns(space_id, turns))

    async def flush(
        self, space_id: str, *, timeout_s: float, pending: Callable[[int], None] = lambda _: None
    ) -> Timed[Flushed]:
        """The barrier, in one call after another until it says `done` or `timeout_s` have passed.

        `pending` is told after each call how many turns are not done.
        """
        started = time.perf_counter()
        while True:
            left_s = max(0.0, timeout_s - (time.perf_counter() - started))
            once = partial(self._client.flush_once, space_id, timeout_s=min(left_s, _LOOK_EVERY_S))
            flushed = (await self._patiently(once)).result
            pending(flushed.pending)
            if self.budget is not None:
                self.budget.pay_space(self.name, space_id, flushed.space_usage)
            ms = (time.perf_counter() - started) * 1000
            if flushed.done or ms >= timeout_s * 1000:
                return Timed(result=flushed, ms=ms)

    async def retrieve(
        self, space_id: str, query: str, *, k: int, reference_time: datetime | None = None
    ) -> Timed[Retrieved]:
        """At most `k` memories; a `reference_time` goes with the zone of its clock."""
        self._heed()
        zone = zone_name(reference_time)
        return await self._patiently(
            lambda: self._client.retrieve(space_id, query, top_k=k, reference_time=reference_time, time_zone=zone)
        )

    async def list_turns(self, space_id: str) -> list[TurnRecord]:
        """Every turn that the space holds."""

        async def collect() -> list[TurnRecord]:
            records: AsyncIterator[TurnRecord] = self._client.list_turns(space_id)
            return [record async for record in records]

        return (await self._patiently(collect)).result

    async def list_memories(self, space_id: str, *, most: int | None = None) -> list[Memory]:
        """Every memory of the space; of more than `most`, one more than that."""

        async def collect() -> list[Memory]:
            memories: list[Memory] = []
            async for memory in self._client.list_memories(space_id):
                memories.append(memory)
                if most is not None and len(memories) > most:
                    break
            return memories

        return (await self._patiently(collect)).result

    async def reset(self, space_id: str) -> ResetDone:
        """Makes the space as if never used."""
        done = (await self._patiently(lambda: self._client.reset(space_id))).result
        if self.budget is not None:
            self.budget.begin_space(self.name, space_id)
        return done

    def _heed(self) -> None:
        if self.budget is not None:
            self.budget.heed()

    async def _patiently(self, call: Callable[[], Awaitable[ResultT]]) -> Timed[ResultT]:
        with self._waiting.call():
            return await self._tried(call)

    async def _tried(self, call: Callable[[], Awaitable[ResultT]]) -> Timed[ResultT]:
        gives_up = time.monotonic() + self._patience_s
        wait_s = _FIRST_WAIT_S
        while True:
            started = time.perf_counter()
            try:
                result = await call()
            except MemdockError as failure:
                pause_s = wait_s if failure.retry_after_s is None else failure.retry_after_s
                if not may_pass(failure) or time.monotonic() + pause_s > gives_up:
                    raise self._given_up(failure) from failure
                self._waiting.failed(failure.message)
                await asyncio.sleep(pause_s)
                wait_s = min(2 * wait_s, _LONGEST_WAIT_S)
            else:
                self._breaker.succeeded()
                return Timed(result=result, ms=(time.perf_counter() - started) * 1000)

    def _given_up(self, failure: MemdockError) -> Exception:
        fault = fault_of(failure)
        if fault.outcome is Outcome.INFRASTRUCTURE_ERROR:
            self._breaker.failed(fault)
        return fault


def zone_name(moment: datetime | None) -> str:
    """The IANA name of the clock that a time was read from; empty for UTC and for a bare offset."""
    zone = moment.tzinfo if moment is not None else None
    return zone.key if isinstance(zone, ZoneInfo) and zone.key != "UTC" else ""
