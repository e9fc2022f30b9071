"""Who is asked in a run: each memory system at each k, under the name that its rows get."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from memdock.types import Feature, Support
from memdock_evaluator.baselines import BASELINES, Baseline
from memdock_evaluator.results.parts import Parts
from memdock_evaluator.results.plan import SystemFacts
from memdock_evaluator.run.memory_system import MemorySystem
from memdock_evaluator.run.settings import RunSettings

AT = "@"
"""Between a system's name and its k; no system's name holds it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contestant:
    """A contestant and the parts that it has of one dialogue."""

    facts: SystemFacts
    parts: Parts

    @property
    def name(self) -> str:
        """What rows call it."""
        return self.facts.name

    @property
    def names_sources(self) -> bool:
        """Whether its memories say which turns they come from."""
        return self.facts.features.get(Feature.SOURCES.value) in (Support.NATIVE.value, Support.EMULATED.value)


def contestants(
    settings: RunSettings, systems: Iterable[MemorySystem], baselines: Mapping[str, Baseline]
) -> Iterator[SystemFacts]:
    """All that the settings ask for: system by system, each at every k, then the baselines."""
    for system in systems:
        for k in settings.ks:
            yield _facts(system, k, settings)
    for name in baselines:
        yield SystemFacts(name=name, baseline=True)


def announced(settings: RunSettings) -> list[SystemFacts]:
    """All that the settings ask for, before any system is asked: names alone."""
    systems = [
        SystemFacts(name=named(each, k, settings), system=each) for each in settings.systems for k in settings.ks
    ]
    return systems + [SystemFacts(name=BASELINES[each].system, baseline=True) for each in settings.baselines]


def named(system: str, k: int, settings: RunSettings) -> str:
    """What rows call a system at `k`: by its own name alone where the run has one k."""
    return system if len(settings.ks) == 1 else f"{system}{AT}{k}"


def _facts(system: MemorySystem, k: int, settings: RunSettings) -> SystemFacts:
    told = system.description
    return SystemFacts(
        name=named(system.name, k, settings),
        system=system.name,
        k=k,
        context_tokens=settings.context_tokens,
        ingest_unit=settings.ingest_unit.name,
        track=settings.track,
        vendor_settings=settings.vendor_settings.get(system.name),
        adapter=told.adapter,
        framework=told.framework,
        models=told.models,
        features={feature.value: support.value for feature, support in sorted(told.features.items())},
        limits=told.limits,
        config_digest=told.config_digest,
    )
