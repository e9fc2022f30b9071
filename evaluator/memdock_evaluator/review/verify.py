"""Whether a run's files say the same: parts, rows, the manifest's counts and every figure of the summary."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import PurePosixPath
from typing import Any

import orjson

from memdock_evaluator.cost.bill import bill
from memdock_evaluator.cost.prices import Prices
from memdock_evaluator.results.finalise import (
    MANIFEST,
    OUTCOMES,
    TIMINGS,
    outcome_lines,
    timing_lines,
    totals,
    with_stores,
)
from memdock_evaluator.results.folder import Folder
from memdock_evaluator.results.manifest import Manifest
from memdock_evaluator.results.parts import PARTS, Parts, Unit
from memdock_evaluator.results.plan import SystemFacts
from memdock_evaluator.results.records import ANSWER, CLOSE, INGEST, JUDGE, RETRIEVE, ROWS
from memdock_evaluator.results.rows import Outcome, Row
from memdock_evaluator.results.stored import ingested_in
from memdock_evaluator.summary.build import SUMMARY, summary_of, to_json
from memdock_evaluator.summary.comparisons import STATISTICS, compare_again
from memdock_evaluator.summary.source import read_run

_STAGES = "|".join(kind.name for kind in (INGEST, RETRIEVE, ANSWER, JUDGE, CLOSE, ROWS))
_PART = re.compile(rf"({_STAGES})-\d{{3,}}\.jsonl")


class VerifyError(Exception):
    """Two files of a run that do not agree; the message names the first difference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """How much was found to agree: part files, rows, and the figures of `summary.json` and `statistics.json`."""

    parts: int
    rows: int
    figures: int


def verify(folder: Folder) -> Verified:
    """Checks every part's checksum, the rows and timings against the parts, the manifest's counts against the rows, and
    `summary.json` and `statistics.json` against the figures of the rows.

    Raises `VerifyError` at the first difference, `PartError` for a damaged part, and what `read_run` raises.
    """
    run = read_run(folder)
    units = with_stores(run.manifest.plan, Counter(map(Unit.of, run.rows)))
    parts = sum(Parts(folder, unit).check() for unit in units)
    _no_strays(folder, units)
    _all_stored(folder, run.manifest, units)
    _from_records(folder, run.manifest, units)
    _same_lines(folder, OUTCOMES, outcome_lines(folder, units))
    _same_lines(folder, TIMINGS, timing_lines(folder, units))
    _as_planned(run.manifest, run.rows)
    for system, found in totals(folder, units).items():
        told = run.manifest.totals.get(system)
        _same(f"{MANIFEST}: totals.{system}", told and asdict(told), asdict(found))
    if (cost := run.manifest.cost) is not None:
        prices = Prices(date=cost.date, currency=cost.currency, models=cost.prices)
        made = bill(run.manifest.plan, folder, units, prices)
        _same(f"{MANIFEST}: cost", asdict(cost), asdict(made))
    summary = orjson.loads(to_json(summary_of(run)))
    told_summary = folder.read(SUMMARY)
    if told_summary is None:
        raise VerifyError(f"{SUMMARY} is not there: memdock-eval report makes it from the rows")
    try:
        _same(SUMMARY, orjson.loads(told_summary), summary)
    except orjson.JSONDecodeError as error:
        raise VerifyError(f"{SUMMARY} is no JSON: memdock-eval report makes it again from the rows") from error
    compared = _comparisons(folder, run.rows, run.manifest.plan.systems)
    return Verified(parts=parts, rows=len(run.rows), figures=_leaves(summary) + _leaves(compared))


def _comparisons(folder: Folder, rows: Sequence[Row], contestants: Sequence[SystemFacts]) -> Any:
    """`statistics.json` where it is as made again."""
    told = folder.read(STATISTICS)
    if told is None:
        raise VerifyError(f"{STATISTICS} is not there: memdock-eval report makes it from the rows")
    try:
        found = orjson.loads(told)
        made = orjson.loads(compare_again(rows, found, contestants).to_json())
    except ValueError as error:
        raise VerifyError(f"{STATISTICS}: {error}; memdock-eval report makes it again from the rows") from error
    _same(STATISTICS, found, made)
    return made


def _all_stored(folder: Folder, manifest: Manifest, units: Iterable[Unit]) -> None:
    """Of every dialogue that a memory system was asked about, it is known what became of its turns."""
    stores = {each.system or each.name for each in manifest.plan.systems if not each.baseline}
    for unit in sorted(units):
        if unit.system in stores and ingested_in(Parts(folder, unit)) is None:
            raise VerifyError(
                f"{unit.folder}: no ingest part says what became of the dialogue's turns; the command that began the "
                "run stores it and asks its questions again"
            )


def _no_strays(folder: Folder, units: Iterable[Unit]) -> None:
    """Below the folder of parts there is nothing else than parts of the run's units."""
    known: set[str] = set()
    for unit in units:
        known |= {f"{above.as_posix()}/" for above in (PurePosixPath(unit.folder), *PurePosixPath(unit.folder).parents)}
        known |= {f"{unit.folder}/{name}" for name in folder.names(unit.folder) if _PART.fullmatch(name)}
    for path in folder.below(PARTS):
        if path not in known:
            raise VerifyError(f"{path} is no part of this run: put it elsewhere")


def _from_records(folder: Folder, manifest: Manifest, units: Iterable[Unit]) -> None:
    """Each row says what the last records of its question say: a part that was taken away is told by its stage."""
    bounds = {each.name for each in manifest.plan.systems if each.baseline}
    for unit in sorted(units):
        parts = Parts(folder, unit)
        retrieved = {record.key: record for record in parts.read(RETRIEVE)}
        answered = {record.key: record for record in parts.read(ANSWER)}
        judged = {record.key: record for record in parts.read(JUDGE)}
        for row in parts.newest(ROWS):
            if row.outcome is not Outcome.ANSWERED:
                continue
            key = row.question_id, row.repeat // manifest.plan.judge_repeats
            judging = row.question_id, row.repeat
            memories, answer, verdict = retrieved.get(key), answered.get(key), judged.get(judging)
            told = {
                RETRIEVE.name: unit.system in bounds or (memories is not None and memories.memories == row.memories),
                ANSWER.name: answer is not None and answer.answer == row.answer,
                JUDGE.name: verdict is not None and verdict.label == row.verdict,
            }
            if missing := next((stage for stage, same in told.items() if not same), ""):
                raise VerifyError(
                    f"{unit.folder}: the {missing} parts do not hold what the row of {_name(row)} was made of: one of "
                    f"{missing}-*.jsonl is missing, or stands for another"
                )


def _as_planned(manifest: Manifest, rows: Iterable[Row]) -> None:
    """Every system of the plan has a row for each question of each language, as often as it is asked."""
    found = Counter((row.system, row.language) for row in rows)
    planned = {
        (system.name, language): counts.questions * manifest.plan.rows_of_question(baseline=system.baseline)
        for system in manifest.plan.systems
        for language, counts in manifest.plan.data.languages.items()
    }
    for system, language in sorted(planned.keys() | found.keys()):
        wanted, has = planned.get((system, language), 0), found[system, language]
        if wanted != has:
            raise VerifyError(f"{OUTCOMES}: {system} in {language} has {has} rows; the manifest's plan makes {wanted}")


def _same_lines(folder: Folder, name: str, wanted: Iterator[bytes]) -> None:
    lines = (folder.read(name) or b"").splitlines()
    for number, (line, made) in enumerate(zip_longest(lines, wanted), start=1):
        if line is None or made is None:
            raise VerifyError(f"{name}, line {number}: {'missing' if line is None else 'in no part'}")
        if line != made:
            _same(f"{name}, line {number}", orjson.loads(line), orjson.loads(made))
            raise VerifyError(f"{name}, line {number}: written otherwise than its part")


def _same(place: str, told: Any, found: Any) -> None:
    """Raises at the first leaf that differs; `place` grows to its path."""
    if isinstance(told, dict) and isinstance(found, dict):
        for key in told | found:
            if key not in told or key not in found:
                raise VerifyError(f"{place}: {key} is {'missing' if key not in told else 'one too many'}")
            _same(f"{place}{'.' if ': ' in place else ': '}{key}", told[key], found[key])
    elif isinstance(told, list | tuple) and isinstance(found, list | tuple) and len(told) == len(found):
        for number, (one, other) in enumerate(zip(told, found, strict=True)):
            _same(f"{place}[{number}]", one, other)
    elif told != found:
        raise VerifyError(f"{place} is {_shown(told)}; made again, it is {_shown(found)}")


def _leaves(value: Any) -> int:
    if isinstance(value, dict | list):
        return sum(map(_leaves, value.values() if isinstance(value, dict) else value))
    return 1


def _shown(value: Any) -> str:
    text = orjson.dumps(value).decode()
    return text if len(text) <= 80 else text[:77] + "..."


def _name(row: Row) -> str:
    return f"{row.system}, {row.language}, {row.dialogue_id}/{row.question_id}, repeat {row.repeat}"
