"""Looks at the containers of a run's systems while it goes on, and makes the record of it."""

import contextlib
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from memdock_evaluator.isolation.engine import LABEL, Engine, EngineError, Reading
from memdock_evaluator.results.manifest import ContainerFacts, Isolation

LOOK_S = 1.0


@dataclass(slots=True, kw_only=True)
class Taken:
    """What a container has taken since the watch began. Processor time begins anew where the engine restarts it."""

    facts: ContainerFacts
    restarts_before: int
    last_cpu_s: float | None = None

    def add(self, reading: Reading) -> None:
        """Counts one look."""
        since = 0.0 if self.last_cpu_s is None else reading.cpu_s - self.last_cpu_s
        self.last_cpu_s = reading.cpu_s
        self.facts = replace(
            self.facts,
            peak_memory_bytes=max(self.facts.peak_memory_bytes, reading.memory_bytes),
            cpu_s=self.facts.cpu_s + (since if since >= 0 else reading.cpu_s),
        )


@dataclass(slots=True, kw_only=True)
class Watch:
    """Of an engine, or of none."""

    engine: Engine | None = None
    taken: Mapping[str, Taken] = field(default_factory=dict)

    def look(self) -> None:
        """One look at every container; one that is away for a moment is passed over."""
        for container_id, taken in self.taken.items():
            with contextlib.suppress(EngineError):
                taken.add(self._asked().read(container_id))

    def record(self, earlier: Isolation | None) -> Isolation | None:
        """What was seen, on top of what an earlier part of the run has recorded; `earlier` itself without an engine."""
        if self.engine is None:
            return earlier
        self.look()
        found = [self._with_restarts(container_id, taken) for container_id, taken in self.taken.items()]
        return united([earlier, Isolation(engine=self.engine.name, containers=_in_order(found))])

    def _with_restarts(self, container_id: str, taken: Taken) -> ContainerFacts:
        try:
            restarts = self._asked().restarts(container_id) - taken.restarts_before
        except EngineError:
            restarts = 0
        return replace(taken.facts, restarts=restarts)

    def _asked(self) -> Engine:
        assert self.engine is not None, "containers are only known with an engine"
        return self.engine


@contextmanager
def watching(address: str, systems: Collection[str], say: Callable[[str], None]) -> Iterator[Watch]:
    """Looks every second, in a thread of its own. `address`: the engine's; "": nobody looks.

    Raises `SettingsError` where no engine answers.
    """
    if not address:
        yield Watch()
        return
    engine = Engine(address)
    try:
        watch = _begun(engine, systems, say)
        ended = threading.Event()

        def look_on() -> None:
            while not ended.wait(LOOK_S):
                watch.look()

        watch.look()
        looking = threading.Thread(target=look_on, name="containers", daemon=True)
        looking.start()
        try:
            yield watch
        finally:
            ended.set()
            looking.join()
    finally:
        engine.close()


def united(records: Iterable[Isolation | None]) -> Isolation | None:
    """Several records as one: by container and image the highest peak, processor time and restarts added up."""
    told = [record for record in records if record is not None]
    found: dict[tuple[str, str], ContainerFacts] = {}
    for each in (each for record in told for each in record.containers):
        key = (each.container, each.digest)
        found[key] = _added(found[key], each) if key in found else each
    return Isolation(engine=told[-1].engine, containers=_in_order(found.values())) if told else None


def _added(one: ContainerFacts, other: ContainerFacts) -> ContainerFacts:
    return replace(
        other,
        peak_memory_bytes=max(one.peak_memory_bytes, other.peak_memory_bytes),
        cpu_s=one.cpu_s + other.cpu_s,
        restarts=one.restarts + other.restarts,
    )


def _begun(engine: Engine, systems: Collection[str], say: Callable[[str], None]) -> Watch:
    try:
        found = engine.containers(systems)
        taken = {each: Taken(facts=facts, restarts_before=engine.restarts(each)) for each, facts in found.items()}
    except EngineError as fault:
        say(f"the containers are not recorded: the engine does not tell of them ({fault})")
        return Watch(engine=engine)
    seen = {name for facts in found.values() for name in facts.system.split(", ")}
    if missing := sorted(set(systems) - seen):
        say(f"no running container has the label {LABEL} of {', '.join(missing)}: nothing is recorded of them")
    return Watch(engine=engine, taken=taken)


def _in_order(facts: Collection[ContainerFacts]) -> tuple[ContainerFacts, ...]:
    return tuple(sorted(facts, key=lambda each: (each.system, each.container)))
