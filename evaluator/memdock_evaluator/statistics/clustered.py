"""The headline errors: questions of one dialogue are alike, so the dialogue is the unit that varies.

CR1 with Student's t on G - 1 (Cameron and Miller 2015, "A Practitioner's Guide to Cluster-Robust Inference", section
II.C and VI.D). Everything here takes K figures at once: arrays of K x G, G the dialogues.
"""

from dataclasses import dataclass

import numpy as np

from memdock_evaluator.statistics.arrays import Bools, Floats, Ints
from memdock_evaluator.statistics.distributions import student_p, student_t

LEAST_ERROR = 1e-12
"""Below this an error is none at all: dialogues that do not differ say nothing of how much others would."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Means:
    """K means of a slice, or differences of two, each with its dialogues' shares in its error.

    `values` K; NaN without questions. `influence` K x G: how far each dialogue moves the figure, which for a mean is
    (its points - mean * its questions) / all questions; adds up to 0 over the dialogues. `present` K x G: the dialogues
    with questions. `questions` K, and `slices` K, how many means were estimated: 1 or 2.
    """

    values: Floats
    influence: Floats
    present: Bools
    questions: Ints
    slices: Ints


def means(points: Ints, counts: Ints, units: Floats) -> Means:
    """Means of scores from each dialogue's points and questions, K x G; `units` K, the points of a score of 1."""
    n, total = counts.sum(axis=1), points.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        values = total / (n * units)
        influence = (points * n[:, None] - counts * total[:, None]) / (n * n * units)[:, None]
    return Means(values=values, influence=influence, present=counts > 0, questions=n, slices=np.ones_like(n))


def difference(first: Means, second: Means, two_slices: Bools) -> Means:
    """First minus second: two slices that share no question where `two_slices`, else paired scores of one slice."""
    return Means(
        values=first.values - second.values,
        influence=first.influence - second.influence,
        present=first.present | second.present,
        questions=first.questions + np.where(two_slices, second.questions, 0),
        slices=1 + two_slices,
    )


def over_dialogues(values: Floats) -> Floats:
    """Sums of K x G over G, added one dialogue after another: the order of additions is the same on any processor."""
    total: Floats = np.add.reduce(np.ascontiguousarray(values.T), axis=0)
    return total


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Errors:
    """Standard errors of K figures and the dialogues behind each; NaN where nothing can be said."""

    standard: Floats
    clusters: Ints


def cr1(found: Means) -> Errors:
    """CR1: V = G / (G - 1) * (N - 1) / (N - P) * sum of influence^2, G the dialogues that have questions.

    P is 1 for a mean and for a paired difference, 2 for a difference of two slices: a regression on the dummies of one
    or two slices, as statsmodels' `cov_type="cluster"` has it. NaN for fewer than two dialogues, and where the
    dialogues do not differ at all, from which the formula would claim certainty.
    """
    clusters = found.present.sum(axis=1)
    n = found.questions
    with np.errstate(invalid="ignore", divide="ignore"):
        factor = clusters / (clusters - 1) * ((n - 1) / (n - found.slices))
        standard = np.sqrt(factor * over_dialogues(found.influence**2))
    standard[~(standard > LEAST_ERROR) | ~np.isfinite(standard) | (clusters < 2)] = np.nan
    return Errors(standard=standard, clusters=clusters)


def reach(errors: Errors, level: float) -> Floats:
    """How far the interval of `level` reaches on both sides: t(G - 1) standard errors."""
    t = [student_t(level, int(clusters) - 1) if clusters > 1 else np.nan for clusters in errors.clusters]
    return np.array(t) * errors.standard


def p_values(values: Floats, errors: Errors) -> Floats:
    """Two-sided p of "the true difference is 0", t(G - 1); NaN where there is no error."""
    return np.array(
        [
            student_p(value / error, int(clusters) - 1) if np.isfinite(error) else np.nan
            for value, error, clusters in zip(values, errors.standard, errors.clusters, strict=True)
        ]
    )


def smallest_detectable(error: float, clusters: int, *, alpha: float = 0.05, power: float = 0.8) -> float:
    """The true difference that a two-sided test at `alpha` finds with chance `power`, given its standard error.

    (t(1 - alpha / 2) + t(power)) * error, t on G - 1 (Bloom 1995, "Minimum detectable effects", Evaluation Review 19).
    For two systems `error` is that of their paired difference, by dialogue.
    """
    freedom = clusters - 1
    return (student_t(1 - alpha, freedom) + student_t(2 * power - 1, freedom)) * error


@dataclass(frozen=True, slots=True, kw_only=True)
class NonInferiority:
    """`difference` is the unit's score minus the reference's. `lower` is the one-sided bound at 1 - alpha; the unit is
    `not_inferior` when it lies above -margin, which is p < alpha.
    """

    difference: float
    margin: float
    lower: float
    p: float
    not_inferior: bool


def non_inferiority(
    difference: float, error: float, clusters: int, *, margin: float, alpha: float = 0.05
) -> NonInferiority:
    """One-sided test of "worse by `margin` or more".

    Blackwelder 1982, "Proving the null hypothesis in clinical trials". t = (difference + margin) / error on G - 1, the
    error paired and by dialogue. A difference that was not found is no proof of equality: this is. Raises `ValueError`
    for a margin that is not above 0.
    """
    if margin <= 0:
        raise ValueError(f"margin {margin} must be above 0: how much worse would still do")
    t = (difference + margin) / error
    tail = student_p(t, clusters - 1) / 2
    lower = difference - student_t(1 - 2 * alpha, clusters - 1) * error
    return NonInferiority(
        difference=difference,
        margin=margin,
        lower=lower,
        p=tail if t > 0 else 1 - tail,
        not_inferior=lower > -margin,
    )
