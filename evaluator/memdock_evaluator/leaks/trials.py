"""From what spaces showed to trials: leaked, void, taken; nothing is asked here."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from memdock_evaluator.faults import Fault
from memdock_evaluator.leaks.asking import LIST, QUESTION, VALUE, Seen, Texts
from memdock_evaluator.leaks.rows import Moment, TrialRow, Void
from memdock_evaluator.leaks.twins import Pair, Twin, shows
from memdock_evaluator.run.settling import blame_of

Sighting: TypeAlias = tuple[str, str]
"""By which way a canary was seen, and whose it was."""

Place: TypeAlias = tuple[str, str, str]
"""A twin's language and name, and a fact's name."""

_ERASING = (Moment.FORGET, Moment.RESET)


class Canaries:
    """Every canary of the run, by fact."""

    def __init__(self, pairs: Iterable[Pair]) -> None:
        self._owners: defaultdict[str, dict[str, tuple[str, str]]] = defaultdict(dict)
        for pair in pairs:
            for twin in (pair.first, pair.second):
                for fact in twin.facts:
                    self._owners[fact.name][fact.value] = twin.key

    def foreign(self, fact: str, asker: Twin, *, forgotten: bool = False) -> Mapping[str, str]:
        """Value -> whose it is, of all canaries of a fact that the asker may not see: its own too where `forgotten`."""
        return {
            value: f"{language}/{owner}"
            for value, (language, owner) in self._owners[fact].items()
            if forgotten or (language, owner) != asker.key
        }


@dataclass(slots=True, kw_only=True)
class Met:
    """What was seen, and what failed, while everything was written and asked at once."""

    leaks: defaultdict[Place, set[Sighting]] = field(default_factory=lambda: defaultdict(set))
    faults: dict[Place, Fault] = field(default_factory=dict)

    def failed(self, system: str, moment: Moment, pair: Pair, fault: Fault) -> list[TrialRow]:
        """The rows of a moment that could not be measured; what leaked until then is in them."""
        return [
            _row(system, moment, asker, owner, fact.name, self.leaks[(*asker.key, fact.name)], fault)
            for asker, owner in pair.ways
            for fact in asker.facts
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """What each of a pair found of its own when it was last asked; of the first, before it forgot."""

    first: frozenset[str] = frozenset()
    second: frozenset[str] = frozenset()


def shown(foreign: Mapping[str, str], ways: Mapping[str, Texts]) -> set[Sighting]:
    """The foreign canaries that stand in the texts."""
    return {(way, owner) for way, texts in ways.items() for value, owner in foreign.items() if shows(value, texts)}


def trials(
    system: str,
    moment: Moment,
    pair: Pair,
    seen: Sequence[Seen],
    canaries: Canaries,
    *,
    before: Pairing,
    met: Met,
) -> tuple[list[TrialRow], Pairing]:
    """The trials of a pair at a moment, and what each found of its own; `seen` is in the order of `pair.ways`."""
    found = {asker.key: each for (asker, _), each in zip(pair.ways, seen, strict=True)}
    erasing = moment in _ERASING
    now = Pairing(
        first=before.first if erasing else _own(pair.first, found[pair.first.key]),
        second=_own(pair.second, found[pair.second.key]),
    )
    held = {pair.first.key: now.first, pair.second.key: now.second}
    rows = []
    for asker, owner in pair.ways:
        forgot = erasing and asker is pair.first
        for fact in asker.facts:
            place = (*asker.key, fact.name)
            foreign = canaries.foreign(fact.name, asker, forgotten=forgot)
            sightings = shown(foreign, found[asker.key].ways(fact.name)) | met.leaks[place]
            fault = found[asker.key].faults.get(fact.name) or met.faults.get(place)
            void = Void.NOT_FOUND if not sightings and fault is None and fact.name not in held[owner.key] else None
            taken = erasing and asker is pair.second and fact.name in before.second - now.second and fault is None
            rows.append(_row(system, moment, asker, owner, fact.name, sightings, fault, void=void, taken=taken))
    return rows, now


def _own(twin: Twin, seen: Seen) -> frozenset[str]:
    return frozenset(fact.name for fact in twin.facts if seen.holds(fact))


def _row(
    system: str,
    moment: Moment,
    asker: Twin,
    owner: Twin,
    fact: str,
    sightings: set[Sighting],
    fault: Fault | None,
    *,
    void: Void | None = None,
    taken: bool = False,
) -> TrialRow:
    return TrialRow(
        system=system,
        language=asker.language,
        moment=moment,
        pair=asker.pair,
        asker=asker.name,
        owner=owner.name,
        fact=fact,
        blame=None if fault is None else blame_of(fault),
        void=void,
        leaked_by=tuple(way for way in (QUESTION, VALUE, LIST) if any(way == by for by, _ in sightings)),
        leaked_from=tuple(sorted({whose for _, whose in sightings})),
        taken=taken,
    )
