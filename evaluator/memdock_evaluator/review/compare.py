"""Two runs over the same data: paired differences on the questions that both have, with errors by dialogue."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from statistics import fmean

import numpy as np

from memdock_evaluator.results.folder import Folder
from memdock_evaluator.results.plan import differences
from memdock_evaluator.results.rows import Outcome, Row
from memdock_evaluator.statistics.clustered import cr1, means, p_values, reach
from memdock_evaluator.summary.figures import score
from memdock_evaluator.summary.source import RunFiles, read_run

LEVEL = 0.95
_UNIT = 1_000_000
"""A score of 1 in whole numbers, as rows round to six digits: sums of whole numbers are the same in any order."""

MEASURES: Mapping[str, Callable[[Row], float | None]] = {
    "accuracy": score,
    "F1": lambda row: 0.0 if row.outcome is Outcome.SYSTEM_ERROR else row.f1,
    "recall by session": lambda row: row.recall_sessions,
    "recall by turn": lambda row: row.recall_turns,
    "MRR by session": lambda row: row.mrr_sessions,
}


class CompareError(Exception):
    """Runs that cannot be compared; the message says why and what can be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The second run minus the first in one measure, over the questions that both have a value for.

    `low`, `high` and `p` by dialogue (CR1 with Student's t on G - 1); `None` where fewer than two dialogues have
    questions or where the dialogues do not differ.
    """

    language: str
    first_system: str
    second_system: str
    measure: str
    questions: int
    dialogues: int
    first: float
    second: float
    difference: float
    low: float | None
    high: float | None
    p: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """`plan`: what differs between the plans, a line each."""

    plan: tuple[str, ...]
    differences: tuple[Difference, ...]


def compare(first: Folder, second: Folder, systems: Sequence[str] = ()) -> Comparison:
    """Compares every system that both runs have; with two `systems`, that of the first run with that of the second.

    Raises `CompareError`, and what `read_run` raises.
    """
    runs = read_run(first), read_run(second)
    _check_data(first, second, *runs)
    found = tuple(
        difference for pair in _pairs(*runs, systems) for difference in _differences(runs[0].rows, runs[1].rows, *pair)
    )
    if not found:
        raise CompareError("the runs have no question in common that both have scored")
    plans = runs[0].manifest.plan, runs[1].manifest.plan
    return Comparison(plan=tuple(differences(*plans, words=("first", "second"))), differences=found)


def _check_data(first: Folder, second: Folder, one: RunFiles, other: RunFiles) -> None:
    files = [{file.sha256: file.path for file in run.manifest.plan.data.files} for run in (one, other)]
    for folder, mine, theirs in ((first, files[0], files[1]), (second, files[1], files[0])):
        if odd := sorted(path for sha256, path in mine.items() if sha256 not in theirs):
            raise CompareError(
                f"the runs are over different data: {', '.join(odd)} of {folder.address} is, by its hash, "
                "not in the other"
            )


def _pairs(one: RunFiles, other: RunFiles, systems: Sequence[str]) -> list[tuple[str, str]]:
    has = [list(dict.fromkeys(row.system for row in run.rows)) for run in (one, other)]
    if not systems:
        if common := [name for name in has[0] if name in has[1]]:
            return [(name, name) for name in common]
        raise CompareError(
            f"the runs have no system in common: the first has {', '.join(has[0])}, the second {', '.join(has[1])}; "
            "name two with --system FIRST SECOND"
        )
    for name, known, which in zip(systems, has, ("first", "second"), strict=True):
        if name not in known:
            raise CompareError(f"the {which} run has no system {name}: it has {', '.join(known)}")
    return [(systems[0], systems[1])]


def _differences(one: Sequence[Row], other: Sequence[Row], first: str, second: str) -> Iterator[Difference]:
    languages = sorted({row.language for row in one} & {row.language for row in other})
    for language in languages:
        for measure, value in MEASURES.items():
            values = [_values(rows, name, language, value) for rows, name in ((one, first), (other, second))]
            if common := sorted(values[0].keys() & values[1].keys()):
                paired = [(question[0], values[0][question], values[1][question]) for question in common]
                yield _difference(language, first, second, measure, paired)


def _values(
    rows: Sequence[Row], system: str, language: str, value: Callable[[Row], float | None]
) -> dict[tuple[str, str], float]:
    """Dialogue and question -> the mean over its repeats."""
    found: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for row in rows:
        if (row.system, row.language) == (system, language) and (known := value(row)) is not None:
            found[row.dialogue_id, row.question_id].append(known)
    return {question: fmean(values) for question, values in found.items()}


def _difference(
    language: str, first: str, second: str, measure: str, paired: Sequence[tuple[str, float, float]]
) -> Difference:
    points: defaultdict[str, int] = defaultdict(int)
    counts: defaultdict[str, int] = defaultdict(int)
    for dialogue, one, other in paired:
        points[dialogue] += round((other - one) * _UNIT)
        counts[dialogue] += 1
    dialogues = sorted(points)
    found = means(
        np.array([[points[each] for each in dialogues]]),
        np.array([[counts[each] for each in dialogues]]),
        np.array([float(_UNIT)]),
    )
    errors = cr1(found)
    value, width, p = float(found.values[0]), float(reach(errors, LEVEL)[0]), float(p_values(found.values, errors)[0])
    known = isfinite(width)
    return Difference(
        language=language,
        first_system=first,
        second_system=second,
        measure=measure,
        questions=len(paired),
        dialogues=len(dialogues),
        first=fmean(one for _, one, _ in paired),
        second=fmean(other for _, _, other in paired),
        difference=value,
        low=max(-1.0, value - width) if known else None,
        high=min(1.0, value + width) if known else None,
        p=p if known else None,
    )
