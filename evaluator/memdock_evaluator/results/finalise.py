"""From parts to the files of a run: rows and timings in their order, and the totals of the manifest."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import groupby

from memdock import usage
from memdock.types import Component, ModelUsage, Residue
from memdock_evaluator.results.folder import Folder
from memdock_evaluator.results.manifest import Coverage, IngestCounts, SystemTotals
from memdock_evaluator.results.parts import PARTS, Parts, Unit
from memdock_evaluator.results.plan import Plan
from memdock_evaluator.results.records import ANSWER, CLOSE, INGEST, JUDGE, RETRIEVE, ROWS, spent_on
from memdock_evaluator.results.rows import Outcome, Row, Timing

OUTCOMES, TIMINGS, MANIFEST = "outcomes.jsonl", "timings.jsonl", "manifest.json"


def holds_something_else(folder: Folder) -> bool:
    """Whether the folder is neither empty nor a run's, begun or done."""
    return folder.is_without({MANIFEST, PARTS})


def write_outcomes(folder: Folder, units: Iterable[Unit]) -> None:
    """`outcomes.jsonl`: the rows of all units, by system, language, dialogue, question and repeat."""
    _write(folder, OUTCOMES, outcome_lines(folder, units))


def write_timings(folder: Folder, units: Iterable[Unit]) -> None:
    """`timings.jsonl`: what was measured, in the same order, then by stage."""
    _write(folder, TIMINGS, timing_lines(folder, units))


def outcome_lines(folder: Folder, units: Iterable[Unit]) -> Iterator[bytes]:
    """The lines of `outcomes.jsonl`, made from the parts; raises `PartError`."""
    for of_dialogue in _by_dialogue(units):
        rows = (row for unit in of_dialogue for row in Parts(folder, unit).newest(ROWS))
        for row in sorted(rows, key=lambda row: row.key):
            yield row.to_json()


def timing_lines(folder: Folder, units: Iterable[Unit]) -> Iterator[bytes]:
    """The lines of `timings.jsonl`, made from the parts; raises `PartError`."""
    for of_dialogue in _by_dialogue(units):
        timings = (timing for unit in of_dialogue for timing in _timings(Parts(folder, unit)))
        for timing in sorted(timings, key=lambda timing: timing.key):
            yield timing.to_json()


def _by_dialogue(units: Iterable[Unit]) -> Iterator[list[Unit]]:
    """The units of a system and dialogue together, whose rows stand between each other."""
    for _, group in groupby(sorted(units), key=lambda unit: (unit.system, unit.language, unit.dialogue_id)):
        yield list(group)


def _write(folder: Folder, name: str, lines: Iterator[bytes]) -> None:
    with folder.writing(name) as file:
        for line in lines:
            file.write(line + b"\n")


def with_stores(plan: Plan, rows: Mapping[Unit, int]) -> Counter[Unit]:
    """`rows`, the number of rows of each unit, and with 0 the units of systems that several contestants share."""
    stores = plan.stores
    shared = (replace(unit, system=stores.get(unit.system, unit.system)) for unit in rows)
    return Counter(dict.fromkeys(shared, 0) | dict(rows))


def totals(folder: Folder, expected: Counter[Unit]) -> dict[str, SystemTotals]:
    """The totals of each contestant, and of each system that several share.

    `expected` are all units with the number of rows that each should have.
    """
    of_system: dict[str, list[Unit]] = {}
    for unit in sorted(expected):
        of_system.setdefault(unit.system, []).append(unit)
    return {system: _totals(folder, mine, sum(expected[unit] for unit in mine)) for system, mine in of_system.items()}


def _timings(parts: Parts) -> list[Timing]:
    """Of every attempt: a try that came to nothing took its time as well."""
    stages = (parts.read(INGEST), parts.read(RETRIEVE), parts.read(ANSWER), parts.read(JUDGE))
    return [timing for records in stages for record in records for timing in record.timings]


def _totals(folder: Folder, units: Sequence[Unit], expected: int) -> SystemTotals:
    counts, coverage, failed = Counter[str](), Counter[str](), Counter[str]()
    spent: list[ModelUsage] = []
    residue: list[Residue] = []
    not_reset: list[str] = []
    for unit in units:
        parts = Parts(folder, unit)
        ingested = parts.newest(INGEST)
        for record in ingested:
            counts.update(asdict(record.counts))
            failed.update(turn.reason for turn in record.failed_turns)
        counts["stale_reads"] += sum(record.stale for record in parts.read(RETRIEVE))
        coverage.update(_coverage(parts.newest(ROWS)))
        closed = parts.read(CLOSE)
        spent.extend(spent_on(closed))
        residue.extend(closed[-1].residue if closed else ())
        if ingested and not (closed and closed[-1].reset and closed[-1].blame is None):
            not_reset.append(ingested[-1].space_id)
    return SystemTotals(
        ingest=IngestCounts(**counts),
        failed_turns=dict(sorted(failed.items())),
        usage=usage.merge(spent),
        coverage=Coverage(expected=expected, **coverage),
        residue=_by_component(residue),
        spaces_not_reset=tuple(not_reset),
    )


def _coverage(rows: Iterable[Row]) -> Counter[str]:
    found = Counter[str]()
    for row in rows:
        found[Outcome(row.outcome).value] += 1
        found["scored"] += row.correct is not None
    return found


def _by_component(residue: Iterable[Residue]) -> tuple[Residue, ...]:
    items, unverified, notes = Counter[Component](), set[Component](), dict[Component, str]()
    for each in residue:
        items[each.component] += each.items
        notes.setdefault(each.component, each.note)
        if not each.verified:
            unverified.add(each.component)
    return tuple(
        Residue(component=component, items=items[component], verified=component not in unverified, note=note)
        for component, note in sorted(notes.items())
    )
