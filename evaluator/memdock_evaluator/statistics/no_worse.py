"""Whether a run is no worse than another by a margin: one-sided, paired, by dialogue.

Every function tells how much worse the second is than the first, as a `Worse`. The claim "no worse than by the margin"
is made where the one-sided bound lies below the margin. Several claims at once need no correction where all of them are
to hold (an intersection-union test: Berger 1982, "Multiparameter hypothesis testing and acceptance sampling",
Technometrics 24): the chance that all hold though one of them is false is at most `alpha`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isnan, sqrt
from statistics import NormalDist

import numpy as np

from memdock_evaluator.intervals import percentile
from memdock_evaluator.statistics.arrays import Floats
from memdock_evaluator.statistics.clustered import Means, cr1, difference, means
from memdock_evaluator.statistics.distributions import exact_upper_bound, student_t

ALPHA = 0.05
_UNIT = 1_000_000_000
"""Of a value in whole numbers: sums of whole numbers are the same in any order."""
_LARGEST_RATIO = 1000.0

Clusters = Mapping[str, Sequence[float]]
"""Dialogue -> its values, at least one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worse:
    """`first` and `second` are the two figures, `by` how much worse the second is, below 0 where it is better.

    `bound`: `by` is at most that, with confidence 1 - alpha; infinite where the data sets no bound. `n` values of the
    second, in `clusters` dialogues (or whatever varies as one).
    """

    first: float
    second: float
    by: float
    bound: float
    n: int
    clusters: int


def mean_is_no_worse(first: Clusters, second: Clusters, *, alpha: float = ALPHA) -> Worse:
    """Means of scores from 0 to 1 of the same questions, more being better; `by` in the scores' own unit.

    The bound is Tango's score bound (1998, "Equivalence test and confidence interval for the difference in proportions
    for the paired-sample design", Statistics in Medicine 17), which takes the error that the margin itself would have:
    where few questions change, and all of them for the worse, the error that was found is too small. So it is for
    questions by themselves; those of one dialogue count as fewer, by the effective number of Korn and Graubard (1998,
    "Confidence intervals for proportions with small expected number of positive counts estimated from survey data",
    Survey Methodology 24): with CR1's error by dialogue, and Student's t on G - 1. Scores between 0 and 1 vary less
    than those of 0 and 1 with their mean. A run and its copy: with no change in n questions up to about 3 / n may be.
    """
    one, other = _summed(first), _summed(second)
    apart = difference(other, one, np.array([False]))
    errors = cr1(apart)
    value, error, clusters = float(apart.values[0]), float(errors.standard[0]), int(errors.clusters[0])
    return Worse(
        first=float(one.values[0]),
        second=float(other.values[0]),
        by=0.0 - value,
        bound=_score_bound(_changes(first, second), error, clusters, alpha) if clusters > 1 else inf,
        n=int(other.questions[0]),
        clusters=clusters,
    )


def mean_is_not_larger(first: Clusters, second: Clusters, *, alpha: float = ALPHA) -> Worse:
    """Means of amounts above 0, less being better; `by` is their ratio less 1.

    The bound is Fieller's (1954, "Some problems in interval estimation"): the ratio above which
    "second - ratio x first is 0 or more" is refused one-sided, with the error by dialogue; so for non-inferiority of a
    ratio Hauschke, Kieser, Diletti and Burke 1999, "Sample size determination for proving equivalence based on the
    ratio of two means", Statistics in Medicine 18. Raises `ValueError` where the first mean is 0.
    """
    one, other = _summed(first), _summed(second)
    if not one.values[0] > 0:
        raise ValueError("the first mean is 0: nothing can be so many times as much")

    def apart(ratio: float) -> Means:
        return difference(other, _times(one, ratio), np.array([False]))

    ratio = float(other.values[0] / one.values[0])
    return Worse(
        first=float(one.values[0]),
        second=float(other.values[0]),
        by=ratio - 1,
        bound=_largest(apart, ratio, alpha) - 1,
        n=int(other.questions[0]),
        clusters=int(cr1(apart(ratio)).clusters[0]),
    )


def quantile_is_not_larger(first: Clusters, second: Clusters, share: float, *, alpha: float = ALPHA) -> Worse:
    """The `share` quantiles of times, less being better; `by` is their ratio less 1.

    The control quantile test (Kimball, Burnett and Doherty 1957, "Chemical protection against ionizing radiation",
    Radiation Research 7; Gastwirth 1968, "The first-median test", JASA 63), with the second as the control: of the
    first's times, times `ratio`, more lie above the second's quantile than of the second's own. The difference of the
    two shares has its error by dialogue; under "the second's times are the first's, times `ratio`" that also covers the
    chance of the second's quantile (Bahadur 1966). The bound is the smallest ratio that is refused: one there always
    is, for a large one lifts all of the first's times above it. Raises `ValueError` where the first quantile is 0.
    """
    before = [value for values in first.values() for value in values]
    after = [value for values in second.values() for value in values]
    low, high = percentile(before, share), percentile(after, share)
    if not low > 0:
        raise ValueError("the first quantile is 0: nothing can be so many times as much")

    def above(clusters: Clusters, limit: float) -> Means:
        return _summed({name: [float(value > limit) for value in values] for name, values in clusters.items()})

    own = above(second, high)

    def apart(ratio: float) -> Means:
        return difference(own, above(first, high / ratio), np.array([False]))

    return Worse(
        first=low,
        second=high,
        by=high / low - 1,
        bound=_largest(apart, high / low, alpha) - 1,
        n=len(after),
        clusters=len(first.keys() | second.keys()),
    )


def event_is_no_more_frequent(first: tuple[int, int], second: tuple[int, int], *, alpha: float = ALPHA) -> Worse:
    """Shares of (events, of), of things that vary by themselves, fewer being better; `by` is their difference.

    Exact (Clopper and Pearson 1934): the bound is the second's upper bound less the first's lower one. Where the first
    has no event its lower bound is 0 whatever the chance, and the second's gets all of `alpha`, else each gets half
    (Bonferroni).
    """
    level = 1 - alpha if not first[0] else 1 - alpha / 2
    least = 1 - exact_upper_bound(first[1] - first[0], first[1], level=level) if first[0] else 0.0
    shares = first[0] / first[1], second[0] / second[1]
    return Worse(
        first=shares[0],
        second=shares[1],
        by=shares[1] - shares[0],
        bound=exact_upper_bound(*second, level=level) - least,
        n=second[1],
        clusters=second[1],
    )


def _changes(first: Clusters, second: Clusters) -> Floats:
    """What each question lost, in the order of dialogues and questions."""
    return np.array([old - new for name in sorted(first) for old, new in zip(first[name], second[name], strict=True)])


def _score_bound(lost: Floats, error: float, clusters: int, alpha: float) -> float:
    """The smallest mean loss that is refused, from the loss of each question and its error by dialogue."""
    alone = float(lost.var(ddof=1) / len(lost))  # the variance, were no two questions of a dialogue alike
    alike = max(1.0, error**2 / alone) if error > 0 and alone > 0 else 1.0
    z = NormalDist().inv_cdf(1 - alpha)
    weight = (z / student_t(1 - 2 * alpha, clusters - 1)) ** 2 / alike
    n, worse, better = (weight * float(part) for part in (len(lost), lost.clip(min=0).sum(), -lost.clip(max=0).sum()))

    def refused(loss: float) -> bool:
        # The share of what got better, at its likeliest under that loss (Tango's equation 5).
        b, c = -worse - better + (2 * n - worse + better) * loss, -better * loss * (1 - loss)
        share = (sqrt(max(0.0, b * b - 8 * n * c)) - b) / (4 * n)
        return n * loss - (worse - better) >= z * sqrt(max(0.0, n * (2 * share + loss * (1 - loss))))

    low, high = (worse - better) / n, 1.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (low, middle) if refused(middle) else (middle, high)
    return high


def _summed(clusters: Clusters) -> Means:
    """The mean of all values; the dialogues in their order by name, so that two of them pair."""
    names = sorted(clusters)
    points = np.array([[sum(round(value * _UNIT) for value in clusters[name]) for name in names]], dtype=np.float64)
    counts = np.array([[len(clusters[name]) for name in names]])
    return means(points.astype(np.int64), counts, np.array([float(_UNIT)]))


def _times(found: Means, factor: float) -> Means:
    return Means(
        values=found.values * factor,
        influence=found.influence * factor,
        present=found.present,
        questions=found.questions,
        slices=found.slices,
    )


def _largest(apart: Callable[[float], Means], ratio: float, alpha: float) -> float:
    """The smallest ratio from `ratio` up at which `apart` lies below 0 one-sided, by bisection; infinite where none."""

    def refused(at: float) -> bool:
        found = apart(at)
        errors = cr1(found)
        value, error, clusters = float(found.values[0]), float(errors.standard[0]), int(errors.clusters[0])
        if isnan(error):
            return clusters > 1 and value < 0
        return value + student_t(1 - 2 * alpha, clusters - 1) * error < 0

    low, high = ratio, max(ratio, 1.0) * _LARGEST_RATIO
    if not refused(high):
        return inf
    while high / max(low, 1e-9) > 1 + 1e-6:
        middle = sqrt(max(low, 1e-9) * high)
        low, high = (low, middle) if refused(middle) else (middle, high)
    return high
