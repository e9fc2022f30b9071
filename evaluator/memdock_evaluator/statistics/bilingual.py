"""The same question in two languages: right in both, in one, in neither; and the difference, paired by dialogue."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from memdock_evaluator.statistics.clustered import cr1, means, p_values, reach
from memdock_evaluator.statistics.matrix import ScoreMatrix
from memdock_evaluator.statistics.shape import tidy

METHOD = "McNemar's comparison with dialogues as clusters: CR1, Student's t on dialogues - 1"
SOURCE = "Durkalski, Palesch, Lipsitz and Rust 2003, Statistics in Medicine 22; Cameron and Miller 2015"


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguagePair:
    """One system in two languages, over the `n` of the questions `asked` in both that have a score in both.

    Of a question asked several times the mean over every repeat in the one language with every one in the other, so
    that `both` and `only_first` are together the first language's accuracy (times `n`). `difference` is that accuracy
    minus the second language's, with its error and interval by dialogue and its two-sided p; `None` is "cannot be
    said".
    """

    system: str
    first: str
    second: str
    asked: int
    n: int
    n_dialogues: int
    both: float
    only_first: float
    only_second: float
    neither: float
    difference: float | None
    clustered_error: float | None
    low: float | None
    high: float | None
    p: float | None


def language_pairs(matrix: ScoreMatrix, *, level: float = 0.95) -> tuple[LanguagePair, ...]:
    """Every system in every two languages that it was asked the same questions in."""
    found = (
        _pair(matrix, system, first, second, level)
        for system in range(len(matrix.systems))
        for first, second in combinations(range(len(matrix.languages)), 2)
    )
    return tuple(pair for pair in found if pair.n)


def _pair(matrix: ScoreMatrix, system: int, first: int, second: int, level: float) -> LanguagePair:
    measure = matrix.accuracy
    known = measure.known[system, first] & measure.known[system, second]
    one, other = (measure.points[system, language] * known for language in (first, second))
    both, first_all, second_all = (
        float((points / measure.unit).sum()) for points in (one * other / measure.unit, one, other)
    )
    apart = means(
        matrix.by_dialogue((one - other)[None]),
        matrix.by_dialogue(known[None].astype(np.int64)),
        np.array([float(measure.unit)]),
    )
    errors = cr1(apart)
    value, far = float(apart.values[0]), float(reach(errors, level)[0])
    return LanguagePair(
        system=matrix.systems[system],
        first=matrix.languages[first],
        second=matrix.languages[second],
        asked=int((matrix.asked[first] & matrix.asked[second]).sum()),
        n=int(known.sum()),
        n_dialogues=int(errors.clusters[0]),
        both=_count(both),
        only_first=_count(first_all - both),
        only_second=_count(second_all - both),
        neither=_count(int(known.sum()) - first_all - second_all + both),
        difference=tidy(value),
        clustered_error=tidy(float(errors.standard[0])),
        low=tidy(max(-1.0, value - far)),
        high=tidy(min(1.0, value + far)),
        p=tidy(float(p_values(apart.values, errors)[0])),
    )


def _count(questions: float) -> float:
    """To six digits, never a zero with a sign."""
    return round(questions, 6) + 0.0
