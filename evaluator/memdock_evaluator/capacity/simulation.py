"""A run's way as discrete events: dialogues that wait for each other at what they share.

One dialogue: its pairs are sent one after the other, embedded and stored; its questions are searched a few at a time;
then all are answered and judged at once, as the provider has places; each question takes its time of the index's core,
and the parts are uploaded. SimPy's resources are first come, first served.
"""

from collections.abc import Generator
from dataclasses import dataclass, field
from math import ceil
from random import Random
from typing import Any, TypeAlias

import simpy

from memdock_evaluator.capacity.shape import Platform, Prediction, Workload
from memdock_evaluator.cost.prices import money
from memdock_evaluator.results.manifest import Price

Steps: TypeAlias = Generator[simpy.Event, Any, None]

MOST_AT_ONCE = 256
"""Dialogues in work at once that are simulated one by one: of more, a part with its part of what all share."""
_PIECES = 8
"""A dialogue's work at a shared core comes in so many pieces, so that others go between."""


@dataclass(slots=True, kw_only=True)
class Shared:
    """Something with places. A half of a place is one that takes twice as long."""

    name: str
    resource: simpy.Resource
    slow: float
    busy_s: float = 0.0

    @classmethod
    def of(cls, env: simpy.Environment, name: str, places: float) -> "Shared":
        """With so many places, more than 0."""
        whole = max(1, round(places))
        return cls(name=name, resource=simpy.Resource(env, capacity=whole), slow=whole / places)

    def take(self, env: simpy.Environment, seconds: float) -> Steps:
        """Waits for a place, and holds it so long."""
        with self.resource.request() as place:
            yield place
            yield env.timeout(seconds * self.slow)
            self.busy_s += seconds * self.slow

    def used(self, seconds: float) -> float:
        """What part of its time it was taken."""
        return self.busy_s / (seconds * self.resource.capacity) if seconds else 0.0


@dataclass(slots=True, kw_only=True)
class Rate:
    """So many a second, evenly; 0: no bound."""

    name: str
    per_second: float
    others: float = 0.0
    """Of them, what others take all the time."""
    free_at: float = 0.0
    passed: int = 0

    def take(self, env: simpy.Environment) -> Steps:
        """Waits for its turn."""
        self.passed += 1
        if self.per_second:
            self.free_at = max(self.free_at, env.now) + 1 / (self.per_second - self.others)
            yield env.timeout(self.free_at - env.now)

    def used(self, seconds: float) -> float:
        """What part of what could have passed did."""
        if not (seconds and self.per_second):
            return 0.0
        return (self.passed / seconds + self.others) / self.per_second


@dataclass(slots=True, kw_only=True)
class _World:
    env: simpy.Environment
    work: Workload
    on: Platform
    random: Random
    embedder: Shared
    database: Shared
    provider: Shared
    calls: Rate
    uploads: Rate
    indexes: list[Shared]
    left: int
    ended: list[float] = field(default_factory=list)
    on_the_way: list[float] = field(default_factory=list)

    def worker(self, index: Shared) -> Steps:
        """One of the dialogues that an index has in work at once."""
        while self.left > 0:
            self.left -= 1
            began = self.env.now
            yield from self._dialogue(index)
            self.ended.append(self.env.now)
            self.on_the_way.append(self.env.now - began)

    def _dialogue(self, index: Shared) -> Steps:
        work, on = self.work, self.on
        yield self.env.timeout(work.requests * on.add_s)
        for _ in range(_PIECES):
            yield from self.embedder.take(self.env, work.requests * on.embed_s / _PIECES)
            yield from self.database.take(self.env, work.requests * on.store_s / _PIECES)
        for _ in range(ceil(work.questions / on.parallel_questions)):
            at_once = min(on.parallel_questions, work.questions)
            yield from self.embedder.take(self.env, at_once * on.embed_query_s)
            yield from self.database.take(self.env, at_once * on.search_s)
        yield self.env.all_of([self.env.process(self._question(index)) for _ in range(work.questions)])
        for _ in range(on.parts):
            yield from self.uploads.take(self.env)
            yield self.env.timeout(on.upload_s)

    def _question(self, index: Shared) -> Steps:
        for _ in ("answer", "judge"):
            yield from index.take(self.env, self.on.evaluator_s / 2)
            yield from self.calls.take(self.env)
            yield from self.provider.take(self.env, self._call_s())

    def _call_s(self) -> float:
        """Log-normal around the mean."""
        spread = self.on.call_spread
        return self.on.call_s * (self.random.lognormvariate(-spread * spread / 2, spread) if spread else 1.0)


def predict(work: Workload, on: Platform, price: Price, *, seed: int = 0) -> Prediction:
    """How long all of it takes and what it costs: answers and verdicts by `price`, machines by the core's hour.

    Not in it: models inside memory systems, tries that are lost, and the reports. Raises `ValueError` where leases
    alone are more than the results' store takes.
    """
    if 0 < on.uploads_per_second <= on.lease_writes_per_second:
        raise ValueError(
            f"the leases of {on.systems_that_fit * on.indexes:,} indexes are {on.lease_writes_per_second:,.0f} writes "
            f"a second, and the results' store takes {on.uploads_per_second:,.0f}: begin fewer, or at several addresses"
        )
    slots = on.systems_that_fit * on.indexes * on.dialogues_at_once
    part = max(1.0, slots / MOST_AT_ONCE)
    many = work.all_dialogues / part
    simulated = max(1, round(min(many, max(4 * slots / part, 200))))
    world = _world(work, on, part, simulated, seed)
    # So that not all begin with the same step.
    for index in world.indexes:
        for _ in range(on.dialogues_at_once):
            world.env.process(world.worker(index))
    world.env.run()
    seconds = world.env.now
    if many > simulated:
        early, late = world.ended[simulated // 4], world.ended[3 * simulated // 4]
        seconds += (many - simulated) * (late - early) / (3 * simulated // 4 - simulated // 4)
    calls = 2 * work.all_dialogues * work.questions
    (in_a, out_a), (in_j, out_j) = work.answer_tokens, work.judge_tokens
    return Prediction(
        seconds=seconds,
        systems_at_once=on.systems_that_fit,
        calls=calls,
        models=calls / 2 * money(price, in_a + in_j, out_a + out_j),
        machines=on.cores * seconds / 3600 * on.core_hour,
        dialogue_s=sum(world.on_the_way) / len(world.on_the_way),
        used=_used(world),
        simulated=simulated,
    )


def _world(work: Workload, on: Platform, part: float, dialogues: int, seed: int) -> _World:
    env = simpy.Environment()
    indexes = max(1, round(on.systems_that_fit * on.indexes / part))
    return _World(
        env=env,
        work=work,
        on=on,
        random=Random(seed),  # noqa: S311 - no secret
        embedder=Shared.of(env, "embedder", on.embedder_cores / part),
        database=Shared.of(env, "database", on.database_cores / part),
        provider=Shared.of(env, "provider's calls at once", on.provider_calls / part),
        calls=Rate(name="provider's calls a minute", per_second=on.provider_calls_per_minute / 60 / part),
        uploads=Rate(
            name="results",
            per_second=on.uploads_per_second / part,
            others=on.lease_writes_per_second / part if on.uploads_per_second else 0.0,
        ),
        indexes=[Shared.of(env, "evaluator's core", 1) for _ in range(indexes)],
        left=dialogues,
    )


def _used(world: _World) -> dict[str, float]:
    seconds = world.env.now
    found = {
        each.name: each.used(seconds)
        for each in (world.embedder, world.database, world.provider, world.calls, world.uploads)
    }
    found["evaluator's core"] = max(each.used(seconds) for each in world.indexes)
    return found
