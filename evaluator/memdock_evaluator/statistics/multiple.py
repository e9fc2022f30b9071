"""Many tests at once: Holm inside a block, max-T step-down over pairs and slices."""

from collections.abc import Sequence

import numpy as np

from memdock_evaluator.statistics.arrays import Floats, Ints
from memdock_evaluator.statistics.resampling import bootstrap_p, exact, signs
from memdock_evaluator.words.sentence import said


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values (Holm 1979, "A simple sequentially rejective multiple test procedure"), NaN staying NaN.

    The smallest is multiplied by the number of tests m, the next by m - 1, and so on; none falls below the one before.
    A test without a p-value is none and does not count.
    """
    order = sorted((index for index, p in enumerate(p_values) if p == p), key=lambda index: p_values[index])
    adjusted = [float("nan")] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted


def smallest_adjusted(tests: int, resamples: int) -> float:
    """The least that Holm can make of a resampled p-value among `tests`: tests / (B + 1)."""
    return min(1.0, tests / (resamples + 1))


def too_few_resamples(tests: int, resamples: int, alpha: float) -> str:
    """Why a block cannot reject anything, whatever its data: a sentence, or "" where it can."""
    least = smallest_adjusted(tests, resamples)
    if least <= alpha:
        return ""
    needed = int(np.ceil(tests / alpha)) - 1
    return said(
        "{resamples} resamples cannot take {tests} tests below {least:.2g}: take at least {needed}",
        resamples=resamples,
        tests=tests,
        least=least,
        needed=needed,
    )


def max_t(differences: Ints, *, rng: np.random.Generator, resamples: int) -> Floats:
    """Adjusted p-values of K paired differences, step-down, jointly; `differences` K x G are each dialogue's sums.

    Under "these two systems are alike" a dialogue's difference is as likely to have either sign, so all differences of
    a dialogue change sign together, dialogues independently: a randomisation test (Canay, Romano and Shaikh 2017,
    "Randomization tests under an approximate symmetry assumption", Econometrica 85), exact where the signs are even and
    the wild cluster bootstrap with the null imposed (Cameron, Gelbach and Miller 2008) where they nearly are. T is
    |sum| / sqrt(sum of squares), of which a change of signs alters the sum alone. The maximum over the hypotheses not
    yet rejected keeps the family-wise error (Westfall and Young 1993, algorithm 2.8; Romano and Wolf 2005, JASA 100).
    A pair without any difference has p = 1.
    """
    adjusted = np.ones(len(differences))
    squares = (differences**2).sum(axis=1)
    differ = np.flatnonzero(squares)
    if not len(differ):
        return adjusted
    sums = exact(differences[differ], differences.shape[1])
    inverse = 1 / np.sqrt(squares[differ]).astype(sums.dtype)
    observed = np.abs(sums.sum(axis=1)) * inverse
    order = np.argsort(observed, kind="stable")
    sums, inverse, observed = sums[order], inverse[order, None], observed[order, None]
    threshold = observed - 8 * np.finfo(sums.dtype).eps * observed
    beyond = np.zeros(len(order), dtype=np.int64)
    for flips in signs(rng, differences.shape[1], resamples):
        t = sums @ flips.astype(sums.dtype)
        np.abs(t, out=t)
        t *= inverse
        np.maximum.accumulate(t, axis=0, out=t)
        beyond += np.count_nonzero(t >= threshold, axis=1)
    adjusted[differ[order]] = np.maximum.accumulate(bootstrap_p(beyond, resamples)[::-1])[::-1]
    return adjusted
