"""A run to be merged with others: opened, given another name where that is asked for, copied into a folder."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from memdock_evaluator.results.finalise import with_stores
from memdock_evaluator.results.folder import Folder
from memdock_evaluator.results.manifest import Compared, Manifest
from memdock_evaluator.results.parts import Parts, Unit
from memdock_evaluator.results.plan import SystemFacts
from memdock_evaluator.results.records import ANSWER, CLOSE, INGEST, JUDGE, RETRIEVE, ROWS, Kind
from memdock_evaluator.results.rows import Row
from memdock_evaluator.run.choice import Shard
from memdock_evaluator.summary.source import read_run

_KINDS: tuple[Kind[Any], ...] = (INGEST, RETRIEVE, ANSWER, JUDGE, CLOSE, ROWS)


class MergeError(Exception):
    """Runs that cannot be one; the message names what is wrong with which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A run: its manifest as the merged run takes it, and the units that it has parts of.

    `names`: where the run's memory system is given another name, the old ones of it and its contestants -> the new.
    """

    folder: Folder
    manifest: Manifest
    rows: Mapping[Unit, int]
    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """Where it is."""
        return self.folder.address

    @property
    def shard(self) -> Shard | None:
        """`None`: the run is whole."""
        written = self.manifest.plan.data.shard
        return Shard.read(written) if written else None

    @property
    def systems(self) -> frozenset[str]:
        """The names of its contestants."""
        return frozenset(each.name for each in self.manifest.plan.systems)

    def copy(self, out: Folder) -> None:
        """Copies the parts, byte for byte unless they get another name; raises `PartError`."""
        old = {new: old for old, new in self.names.items()}
        for unit in sorted(with_stores(self.manifest.plan, self.rows)):
            there = replace(unit, system=old.get(unit.system, unit.system))
            parts = Parts(self.folder, there)
            parts.check()
            if there != unit:
                for kind in _KINDS:
                    _copy_renamed(kind, parts, Parts(out, unit))
                continue
            for name in self.folder.names(unit.folder):
                out.write(f"{unit.folder}/{name}", self.folder.read(f"{unit.folder}/{name}") or b"")


def opened(folder: Folder, name: str = "") -> Piece:
    """The run in a folder, its memory system called `name` where one is given.

    Raises `MergeError` for a run that is not complete or has not one memory system to be renamed, and what `read_run`
    raises.
    """
    run = read_run(folder)
    manifest = run.manifest
    if manifest.finished is None:
        shard = f" (shard {manifest.plan.data.shard})" if manifest.plan.data.shard else ""
        raise MergeError(f"{folder.address}{shard} is not complete: finish it first")
    piece = Piece(folder=folder, manifest=manifest, rows=Counter(map(Unit.of, run.rows)))
    return _renamed(piece, name) if name else piece


def _renamed(piece: Piece, name: str) -> Piece:
    systems = sorted({each.system for each in piece.manifest.plan.systems if not each.baseline})
    if len(systems) != 1:
        has = ", ".join(systems) or "none"
        raise MergeError(f"{name}={piece.address} names the memory system of a run that has one: this has {has}")
    (old,) = systems
    contestants = [each.name for each in piece.manifest.plan.systems if not each.baseline]
    names = {each: name + each.removeprefix(old) for each in (old, *contestants)}

    def facts(each: SystemFacts) -> SystemFacts:
        return each if each.baseline else replace(each, name=names[each.name], system=name)

    manifest = piece.manifest
    plan = replace(manifest.plan, systems=tuple(map(facts, manifest.plan.systems)))
    return Piece(
        folder=piece.folder,
        manifest=replace(manifest, plan=plan, compared=_compared(manifest.compared, names)),
        rows={replace(unit, system=names.get(unit.system, unit.system)): n for unit, n in piece.rows.items()},
        names=names,
    )


def _compared(compared: Compared, names: Mapping[str, str]) -> Compared:
    def new(systems: Sequence[str]) -> tuple[str, ...]:
        return tuple(names.get(system, system) for system in systems)

    return Compared(
        families=tuple(replace(family, systems=new(family.systems)) for family in compared.families),
        atemporal=new(compared.atemporal),
        case_studies=new(compared.case_studies),
    )


def _copy_renamed(kind: Kind[Any], parts: Parts, out: Parts) -> None:
    system = out.unit.system
    for attempt in parts.attempts(kind):
        out.write(kind, [_of_system(record, system) for record in attempt])


def _of_system(record: Any, system: str) -> Any:
    if isinstance(record, Row):
        return replace(record, system=system)
    if timings := getattr(record, "timings", ()):
        return replace(record, timings=tuple(replace(timing, system=system) for timing in timings))
    return record
