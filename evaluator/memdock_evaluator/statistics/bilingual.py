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

    A question asked several times is right where more than half of its repeats are. `difference` is the first
    language's accuracy minus the second's, with its error and interval by dialogue and its two-sided p; `None` is
    "cannot be said".
    """

    system: str
    first: str
    second: str
    asked: int
    n: int
    n_dialogues: int
    both: int
    only_first: int
    only_second: int
    neither: int
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
    right, also = (2 * points > measure.unit for points in (one, other))
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
        both=int((known & right & also).sum()),
        only_first=int((known & right & ~also).sum()),
        only_second=int((known & ~right & also).sum()),
        neither=int((known & ~right & ~also).sum()),
        difference=tidy(value),
        clustered_error=tidy(float(errors.standard[0])),
        low=tidy(value - far),
        high=tidy(value + far),
        p=tidy(float(p_values(apart.values, errors)[0])),
    )
