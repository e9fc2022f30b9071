"""Ranks with intervals. "Not significantly different" is no tie, for it does not carry from A to B and from B to C."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from memdock_evaluator.statistics.arrays import Bools, Floats, Ints
from memdock_evaluator.statistics.clustered import Errors, Means
from memdock_evaluator.statistics.resampling import signs


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ranks:
    """Of S systems: the best and the worst rank, from 1, that the simultaneous comparisons leave open."""

    best: Ints
    worst: Ints


def simultaneous_t(found: Means, errors: Errors, *, rng: np.random.Generator, resamples: int, level: float) -> float:
    """How many standard errors all K differences stay within at once, with probability `level`.

    The quantile of the greatest |t| when each dialogue's influence changes sign at random (the multiplier bootstrap of
    Chernozhukov, Chetverikov and Kato 2013, Annals of Statistics 41, with signs as multipliers), studentised anew:
    where z = |sum| / sqrt(sum of squares) and G dialogues, the error of the signed sample makes
    t = z * sqrt((G - 1) / (G - z^2)).
    """
    usable = np.isfinite(errors.standard)
    if not usable.any():
        return float("nan")
    # Scaled to whole numbers, so that sums do not depend on their order; a billionth of the largest is no loss.
    influence = found.influence[usable]
    whole = np.rint(influence / np.abs(influence).max(axis=1, keepdims=True) * 2.0**30)
    clusters = errors.clusters[usable][:, None]
    squares = np.add.reduce(np.ascontiguousarray(whole.T) ** 2, axis=0)[:, None]
    greatest = []
    for flips in signs(rng, whole.shape[1], resamples):
        z2 = (whole @ flips.astype(np.float64)) ** 2 / squares
        with np.errstate(divide="ignore"):
            greatest.append(np.sqrt(np.max(z2 * (clusters - 1) / np.maximum(clusters - z2, 0), axis=0)))
    ordered = np.sort(np.concatenate(greatest))
    return float(ordered[min(len(ordered), int(np.ceil(level * (len(ordered) + 1)))) - 1])


def rank_intervals(systems: int, values: Floats, errors: Errors, critical: float) -> Ranks:
    """Rank intervals of all systems at once (Mogstad, Romano, Shaikh and Wilhelm 2024, "Inference for ranks", Review of
    Economic Studies 91): 1 + those surely better, and all but those surely worse.

    `values` and `errors` are of the pairs in the order of `combinations(range(systems), 2)`, first minus second.
    """
    better = _surely_better(systems, values, errors, critical)
    return Ranks(best=1 + better.sum(axis=0), worst=systems - better.sum(axis=1))


def _surely_better(systems: int, values: Floats, errors: Errors, critical: float) -> Bools:
    better = np.zeros((systems, systems), dtype=np.bool_)
    for (one, other), value, error in zip(combinations(range(systems), 2), values, errors.standard, strict=True):
        better[one, other] = value > critical * error
        better[other, one] = -value > critical * error
    return better
