"""How sure a figure is: the paper's standard errors, intervals that know of dialogues, and percentiles."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import stdev

from memdock_evaluator.statistics.distributions import student_t as student_t


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A confidence interval of a mean of scores between 0 and 1, cut to that range."""

    low: float
    high: float
    level: float
    standard_error: float
    n_clusters: int


def proportion_se(proportion: float, n: int) -> float | None:
    """sqrt(p (1 - p) / n): the paper's standard error of accuracy, as if all n questions were independent.

    `None` for fewer than two questions, which say nothing about spread.
    """
    return sqrt(proportion * (1 - proportion) / n) if n > 1 else None


def mean_se(values: Sequence[float]) -> float | None:
    """sd / sqrt(n), sd with n - 1: the paper's standard error of F1. `None` for fewer than two values."""
    return stdev(values) / sqrt(len(values)) if len(values) > 1 else None


def accuracy_interval(clusters: Iterable[Sequence[float]], *, level: float = 0.95) -> Interval | None:
    """The interval of the mean over all scores, given as one sequence a cluster (a dialogue's questions).

    Cluster-robust variance CR1 with Student's t on G - 1 (Cameron and Miller 2015, "A Practitioner's Guide to
    Cluster-Robust Inference", eqs. 11-12, for a regression on a constant alone):
    V = G / (G - 1) * sum over clusters of (sum of the cluster's residuals)^2 / n^2.
    `None` where it says nothing: fewer than two clusters with scores, or no difference at all between the clusters
    (every dialogue all right, say), from which the formula would claim certainty.
    """
    clusters = [scores for scores in clusters if scores]
    if len(clusters) < 2:
        return None
    n = sum(map(len, clusters))
    mean = sum(map(sum, clusters)) / n
    squares = sum(sum(score - mean for score in scores) ** 2 for scores in clusters)
    standard_error = sqrt(len(clusters) / (len(clusters) - 1) * squares) / n
    if standard_error < 1e-12:
        return None
    reach = student_t(level, len(clusters) - 1) * standard_error
    return Interval(
        low=max(0.0, mean - reach),
        high=min(1.0, mean + reach),
        level=level,
        standard_error=standard_error,
        n_clusters=len(clusters),
    )


def percentile(values: Sequence[float], share: float) -> float:
    """The value that `share` (0 to 1) of `values`, at least one, lie below, linear between neighbours.

    Hyndman and Fan's type 7, which NumPy and spreadsheets use.
    """
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)
