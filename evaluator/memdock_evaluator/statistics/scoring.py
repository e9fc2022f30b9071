"""Every system's and family's score in every language and slice, and the best of each family."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite, nan, sqrt

from memdock_evaluator.intervals import proportion_se
from memdock_evaluator.statistics.clustered import cr1, means, reach
from memdock_evaluator.statistics.matrix import Measure, ScoreMatrix
from memdock_evaluator.statistics.plan import AnalysisPlan, Side, Term
from memdock_evaluator.statistics.shape import Best, Score, tidy
from memdock_evaluator.statistics.sums import SideReader


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cell:
    unit: str
    language: str
    side: Side


def scores(matrix: ScoreMatrix, plan: AnalysisPlan) -> tuple[Score, ...]:
    """By measure, unit (systems, then families), language and slice, in the order of the matrix and the plan."""
    measures = {"accuracy": matrix.accuracy, "f1": matrix.f1}
    return tuple(
        score
        for name, measure in measures.items()
        if measure is not None
        for score in _of_measure(name, measure, matrix, plan)
    )


def _of_measure(name: str, measure: Measure, matrix: ScoreMatrix, plan: AnalysisPlan) -> Iterator[Score]:
    cells = list(_cells(matrix, plan))
    reader = SideReader(matrix, measure, plan)
    (sides,) = reader.read([(cell.side,) for cell in cells])
    by_question, by_dialogue = reader.by_question, reader.by_dialogue
    totals, squares = by_question.sum(axis=1), (by_question**2).sum(axis=1)
    found = means(by_dialogue[sides.points], by_dialogue[sides.counts], sides.units)
    errors = cr1(found)
    far = reach(errors, plan.level)
    for place, cell in enumerate(cells):
        points, counts = sides.points[place], sides.counts[place]
        n, value, reaches = int(totals[counts]), float(found.values[place]), float(far[place])
        error = _paper_error(n, int(totals[points]), int(squares[points]), int(sides.units[place]))
        yield Score(
            measure=name,
            unit=cell.unit,
            language=cell.language,
            axis=cell.side.slice.axis,
            value=cell.side.slice.value,
            asked=int(sides.asked[place]),
            n=n,
            n_dialogues=int(errors.clusters[place]),
            score=tidy(value),
            standard_error=tidy(error),
            clustered_error=tidy(errors.standard[place]),
            low=tidy(max(0.0, value - reaches)) if isfinite(reaches) else None,
            high=tidy(min(1.0, value + reaches)) if isfinite(reaches) else None,
            least=tidy(sides.lows[place]),
            most=tidy(sides.highs[place]),
        )


def _cells(matrix: ScoreMatrix, plan: AnalysisPlan) -> Iterator[_Cell]:
    for unit in (*matrix.systems, *(family.name for family in plan.families)):
        for language in matrix.languages:
            for slice_ in matrix.slices:
                if plan.systems_of(unit, slice_):
                    side = Side(terms=(Term(unit=unit, language=language),), slice=slice_)
                    yield _Cell(unit=unit, language=language, side=side)


def _paper_error(n: int, total: int, squares: int, unit: int) -> float:
    """The paper's standard error from whole sums of points: Table 5's two formulas."""
    if unit == 1:
        error = proportion_se(total / n, n) if n else None
        return nan if error is None else error
    return sqrt((squares * n - total * total) / (n * (n - 1))) / unit / sqrt(n) if n > 1 else nan


def best_observed(found: Sequence[Score], plan: AnalysisPlan) -> tuple[Best, ...]:
    """The systems with the highest accuracy of each family in each language and slice (F.11)."""
    of_place: dict[tuple[str, str, str], dict[str, float]] = {}
    for score in found:
        if score.measure == "accuracy" and score.score is not None:
            place = score.language, score.axis, score.value
            of_place.setdefault(place, {})[score.unit] = score.score
    best = []
    for family in plan.families:
        for (language, axis, value), by_unit in of_place.items():
            present = {system: by_unit[system] for system in family.systems if system in by_unit}
            if present:
                top = max(present.values())
                best.append(
                    Best(
                        family=family.name,
                        language=language,
                        axis=axis,
                        value=value,
                        systems=tuple(system for system, score in present.items() if score == top),
                        score=top,
                    )
                )
    return tuple(best)
