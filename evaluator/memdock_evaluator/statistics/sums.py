"""From scores to sums of whole numbers: what the sides of contrasts add up, by question and by dialogue.

A side is the mean of points over the questions of a slice, so two columns over the questions say all of it: the points,
and a 1 for every question that counts. Whatever resamples the questions or dialogues only weighs these columns.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import lcm

import numpy as np

from memdock_evaluator.statistics.arrays import Bools, Floats, Ints
from memdock_evaluator.statistics.matrix import Measure, ScoreMatrix
from memdock_evaluator.statistics.plan import AnalysisPlan, Side
from memdock_evaluator.statistics.slices import Slice


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sides:
    """K sides. `points` and `counts`, K each, are indices of the reader's columns; `units` the points of a score of 1;
    `lows` and `highs` the least and the greatest mean that the questions without a score leave possible, in scores;
    `asked` the questions of each side's slice that were asked in all languages of the group.
    """

    points: Ints
    counts: Ints
    units: Floats
    lows: Floats
    highs: Floats
    asked: Ints


_Row = tuple[int, int, int, float, float, int]
"""One side, in the order of the fields of `Sides`."""


class SideReader:
    """Reads sides out of a measure and keeps each distinct column once, for many sides share theirs."""

    def __init__(self, matrix: ScoreMatrix, measure: Measure, plan: AnalysisPlan) -> None:
        self._matrix, self._measure, self._plan = matrix, measure, plan
        self._member = dict(zip(matrix.slices, matrix.members, strict=True))
        self._columns: list[Ints] = []
        self._scores = lru_cache(maxsize=None)(self._read_scores)
        self._counts = lru_cache(maxsize=None)(self._read_counts)
        self._side = lru_cache(maxsize=None)(self._read_side)

    def read(self, groups: Iterable[Sequence[Side]]) -> list[Sides]:
        """The sides of each group, place by place: every group's first, then every group's second, and so on.

        A question counts in a group if every term of every side of it has a score. Raises `ValueError` for a system,
        language or slice that is not in the matrix, or an atemporal system in a slice of time.
        """
        rows = [self._group(group) for group in groups]
        return [_gather(place) for place in zip(*rows, strict=True)]

    @property
    def by_question(self) -> Ints:
        """All columns so far, columns x questions."""
        return np.array(self._columns)

    @property
    def by_dialogue(self) -> Ints:
        """All columns so far, added up over each dialogue's questions: columns x dialogues."""
        return self._matrix.by_dialogue(self.by_question)

    def _group(self, group: Sequence[Side]) -> list[_Row]:
        for side in group:
            if side.slice not in self._member:
                raise ValueError(f"{side.slice} is no slice of the matrix")
        scores = [self._scores(term.unit, term.language, side.slice.axis) for side in group for term in side.terms]
        known, asked = (
            np.logical_and.reduce(columns, axis=0).tobytes()
            for columns in ([one.known for one in scores], [one.asked for one in scores])
        )
        return [self._side(side, known, asked) for side in group]

    def _read_side(self, side: Side, known: bytes, asked: bytes) -> _Row:
        """`known` and `asked` are the bytes of booleans, one a question: which count, and which should."""
        scores = [(term.sign, self._scores(term.unit, term.language, side.slice.axis)) for term in side.terms]
        unit = lcm(*(one.unit for _, one in scores))
        points = np.add.reduce([one.points * (sign * unit // one.unit) for sign, one in scores], axis=0)
        counts = self._counts(side.slice, known)
        wanted = self._member[side.slice] & np.frombuffer(asked, dtype=np.bool_)
        bounds = [_bounds(one, sign, wanted) for sign, one in scores]
        return (
            self._keep(points * self._columns[counts]),
            counts,
            unit,
            sum(low for low, _ in bounds),
            sum(high for _, high in bounds),
            int(np.count_nonzero(wanted)),
        )

    def _read_counts(self, slice_: Slice, known: bytes) -> int:
        return self._keep((self._member[slice_] & np.frombuffer(known, dtype=np.bool_)).astype(np.int64))

    def _read_scores(self, unit: str, language: str, axis: str) -> "_Scores":
        systems = self._plan.systems_of(unit, Slice(axis=axis, value=""))
        for what, names, has in (
            ("system", systems, self._matrix.systems),
            ("language", (language,), self._matrix.languages),
        ):
            for name in set(names) - set(has):
                raise ValueError(f"{name!r} is no {what} of the matrix: {', '.join(has)}")
        if not systems:
            raise ValueError(f"{unit!r} has no system with times: leave it out of the contrasts on {axis}")
        where = self._matrix.languages.index(language)
        place = [self._matrix.systems.index(name) for name in systems], where
        points, known = self._measure.points[place], self._measure.known[place]
        return _Scores(
            points=np.add.reduce(points, axis=0),
            missing=np.add.reduce(~known, axis=0, dtype=np.int64) * self._measure.unit,
            known=np.logical_and.reduce(known, axis=0),
            asked=self._matrix.asked[where],
            unit=self._measure.unit * len(systems),
        )

    def _keep(self, column: Ints) -> int:
        self._columns.append(column)
        return len(self._columns) - 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Scores:
    """One unit in one language, by question: its points, what missing scores could still add, whether all are known,
    and whether it was asked.
    """

    points: Ints
    missing: Ints
    known: Bools
    asked: Bools
    unit: int


def _bounds(scores: _Scores, sign: int, wanted: Bools) -> tuple[float, float]:
    """The least and the greatest mean over some questions, if every missing score were 0, and if it were 1.

    In the manner of Manski 1990, "Nonparametric bounds on treatment effects".
    """
    whole = scores.unit * max(int(np.count_nonzero(wanted)), 1)
    known = int(scores.points @ wanted)
    ends = known / whole, (known + int(scores.missing @ wanted)) / whole
    return ends if sign > 0 else (-ends[1], -ends[0])


def _gather(rows: Sequence[_Row]) -> Sides:
    points, counts, units, lows, highs, asked = (np.array(column) for column in zip(*rows, strict=True))
    return Sides(points=points, counts=counts, units=units.astype(np.float64), lows=lows, highs=highs, asked=asked)
