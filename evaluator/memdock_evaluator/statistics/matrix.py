"""What the statistics are made of: every system's score on every question in every language, and each question's place.

Scores are whole numbers of points, so that every sum of them is exact and the same seed gives the same bytes on any
number of threads: accuracy in ones (or parts of one, where questions were repeated), F1 in millionths.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import lcm

import numpy as np

from memdock_evaluator.statistics.arrays import Bools, Floats, Ints
from memdock_evaluator.statistics.slices import OVERALL, Slice, slices_of

F1_UNIT = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredRow:
    """One system x language x dialogue x question x repeat, as far as the statistics care.

    `axes` is the question's, the same in every row of it. `correct` is `None` where there is no score, `f1` where there
    is no answer. `ingest`, `answer` and `judging` number what is repeated: an answer has its own
    number over all ingests, a verdict one over those on its answer. `position`
    is where in the dialogue the question's evidence lies (`slices.relative_position`).
    """

    system: str
    language: str
    dialogue_id: str
    question_id: str
    axes: Mapping[str, str] = field(default_factory=dict)
    correct: bool | None
    f1: float | None = None
    position: float | None = None
    ingest: int = 0
    answer: int = 0
    judging: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measure:
    """One kind of score. `points` and `known` have the shape systems x languages x questions.

    A score is `points / unit`, 0 to 1. Where `known` is false there is none, and `points` are 0.
    """

    points: Ints
    unit: int
    known: Bools

    def __post_init__(self) -> None:
        if self.points.shape != self.known.shape or self.points.ndim != 3:
            raise ValueError(f"points {self.points.shape} and known {self.known.shape} must be of one shape, of 3 axes")
        if self.unit < 1 or self.points.min(initial=0) < 0 or self.points.max(initial=0) > self.unit:
            raise ValueError(f"points must lie between 0 and the unit, {self.unit}")
        if self.points[~self.known].any():
            raise ValueError("points must be 0 where a score is not known")

    @classmethod
    def right_or_wrong(cls, correct: Ints, scored: Bools) -> "Measure":
        """Accuracy from zeros and ones; what stands where `scored` is false does not matter."""
        return cls(points=np.where(scored, correct, 0).astype(np.int64), unit=1, known=scored)

    @classmethod
    def shares(cls, values: Floats) -> "Measure":
        """Scores between 0 and 1 rounded to millionths, NaN where there is none."""
        known = ~np.isnan(values)
        points = np.rint(np.where(known, values, 0.0) * F1_UNIT).astype(np.int64)
        return cls(points=points, unit=F1_UNIT, known=known)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoreMatrix:
    """All scores of a run.

    Questions stand dialogue by dialogue: `dialogue_of`, one index into `dialogues` a question, never falls. A question
    and its translation are one question in two languages, so the two languages of a dialogue are one cluster. `asked`,
    languages x questions, says which questions there are in a language; `members`, slices x questions, which a slice
    holds. A question that was asked and has no score is missing; one that was not asked is not.
    """

    systems: tuple[str, ...]
    languages: tuple[str, ...]
    dialogues: tuple[str, ...]
    dialogue_of: Ints
    asked: Bools
    slices: tuple[Slice, ...]
    members: Bools
    accuracy: Measure
    f1: Measure | None = None

    def __post_init__(self) -> None:
        n = len(self.dialogue_of)
        if not n:
            raise ValueError("no questions: there is nothing to analyse")
        if not np.array_equal(np.unique(self.dialogue_of), np.arange(len(self.dialogues))):
            raise ValueError("dialogue_of must name every dialogue, and none besides")
        if (np.diff(self.dialogue_of) < 0).any():
            raise ValueError("dialogue_of must rise: the questions of a dialogue stand together")
        if self.members.shape != (len(self.slices), n):
            raise ValueError(f"members {self.members.shape} must be slices x questions, {(len(self.slices), n)}")
        if OVERALL not in self.slices:
            raise ValueError(f"the slices must hold {OVERALL}, of all questions")
        shape = (len(self.systems), len(self.languages), n)
        if self.asked.shape != shape[1:]:
            raise ValueError(f"asked {self.asked.shape} must be languages x questions, {shape[1:]}")
        for measure in filter(None, (self.accuracy, self.f1)):
            if measure.points.shape != shape:
                raise ValueError(f"scores {measure.points.shape} must be systems x languages x questions, {shape}")
            if (measure.known & ~self.asked).any():
                raise ValueError("a question that was not asked in a language has a score in it")

    @property
    def n_questions(self) -> int:
        """Questions, each counted once whatever the number of its languages."""
        return len(self.dialogue_of)

    def by_dialogue(self, values: Ints) -> Ints:
        """Sums over each dialogue's questions: anything x questions becomes anything x dialogues."""
        starts = np.searchsorted(self.dialogue_of, np.arange(len(self.dialogues)))
        return np.add.reduceat(values, starts, axis=-1)


def matrix_of(rows: Iterable[ScoredRow]) -> ScoreMatrix:
    """The rows of a run, in any order, as a matrix: systems, languages, dialogues and questions by name.

    A question asked several times gets the mean over the repeats that have a score. Its axes and its position are those
    of its first row, by language and system. Raises `ValueError` for no rows at all.
    """
    ordered = sorted(rows, key=lambda row: (row.dialogue_id, row.question_id, row.language, row.system))
    first: dict[tuple[str, str], ScoredRow] = {}
    for row in ordered:
        first.setdefault((row.dialogue_id, row.question_id), row)
    systems, languages = sorted({row.system for row in ordered}), sorted({row.language for row in ordered})
    dialogues = sorted({dialogue for dialogue, _ in first})
    slices, members = slices_of([row.axes for row in first.values()], [row.position for row in first.values()])
    places = _Places(systems, languages, list(first))
    return ScoreMatrix(
        systems=tuple(systems),
        languages=tuple(languages),
        dialogues=tuple(dialogues),
        dialogue_of=np.searchsorted(np.array(dialogues), np.array([dialogue for dialogue, _ in first])),
        asked=places.asked(ordered),
        slices=slices,
        members=members,
        accuracy=places.accuracy(ordered),
        f1=places.f1(ordered) if any(row.f1 is not None for row in ordered) else None,
    )


class _Places:
    """Where a row's scores go in a matrix."""

    def __init__(self, systems: Sequence[str], languages: Sequence[str], questions: Sequence[tuple[str, str]]) -> None:
        self._systems = {name: index for index, name in enumerate(systems)}
        self._languages = {name: index for index, name in enumerate(languages)}
        self._questions = {name: index for index, name in enumerate(questions)}
        self._shape = (len(systems), len(languages), len(questions))

    def asked(self, rows: Iterable[ScoredRow]) -> Bools:
        asked = np.zeros(self._shape[1:], dtype=np.bool_)
        for row in rows:
            asked[self._place(row)[1:]] = True
        return asked

    def accuracy(self, rows: Iterable[ScoredRow]) -> Measure:
        """Points in parts of one that every number of repeats divides."""
        repeats = self._gather((row, None if row.correct is None else int(row.correct)) for row in rows)
        unit = lcm(*map(len, repeats.values()))
        points = np.zeros(self._shape, dtype=np.int64)
        known = np.zeros(self._shape, dtype=np.bool_)
        for place, values in repeats.items():
            points[place] = sum(values) * (unit // len(values))
            known[place] = True
        return Measure(points=points, unit=unit, known=known)

    def f1(self, rows: Iterable[ScoredRow]) -> Measure:
        values = np.full(self._shape, np.nan)
        for place, found in self._gather((row, row.f1) for row in rows).items():
            values[place] = sum(found) / len(found)
        return Measure.shares(values)

    def _gather(self, values: Iterable[tuple[ScoredRow, float | None]]) -> Mapping[tuple[int, int, int], list[float]]:
        repeats: defaultdict[tuple[int, int, int], list[float]] = defaultdict(list)
        for row, value in values:
            if value is not None:
                repeats[self._place(row)].append(value)
        return repeats

    def _place(self, row: ScoredRow) -> tuple[int, int, int]:
        question = self._questions[row.dialogue_id, row.question_id]
        return self._systems[row.system], self._languages[row.language], question
