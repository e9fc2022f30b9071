"""How often something happened, and how often it may: shares whose trials share a dialogue or a pair of users."""

from collections import Counter
from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
from typing_extensions import TypedDict

from memdock_evaluator.statistics.clustered import cr1, means, reach
from memdock_evaluator.statistics.distributions import exact_upper_bound

LEVEL = 0.95

Tally: TypeAlias = tuple[str, int, int]
"""A cluster's name, what happened in it, and of how many."""


class Share(TypedDict):
    """`events` of `of`. All figures lie between 0 and 1; `None`: nothing can be said.

    `low`, `high`: the 95 % interval by cluster (CR1, t on clusters - 1); `None` where the clusters do not differ.
    `bound`: the exact one-sided 95 % upper bound as if all trials were independent. `cluster_bound`: the same of the
    share of clusters in which anything happened, which holds where the trials of a cluster are alike.
    """

    events: int
    of: int
    share: float | None
    low: float | None
    high: float | None
    bound: float | None
    clusters: int
    clusters_with_events: int
    cluster_bound: float | None


def share_of(tallies: Iterable[Tally]) -> Share:
    """The share over all tallies; those of one cluster are added up, clusters without trials do not count."""
    events, trials = Counter[str](), Counter[str]()
    for cluster, happened, of in tallies:
        events[cluster] += happened
        trials[cluster] += of
    clusters = sorted(cluster for cluster, of in trials.items() if of)
    happened, of = sum(events[each] for each in clusters), sum(trials[each] for each in clusters)
    touched = sum(events[each] > 0 for each in clusters)
    low, high = _interval([events[each] for each in clusters], [trials[each] for each in clusters])
    return Share(
        events=happened,
        of=of,
        share=happened / of if of else None,
        low=low,
        high=high,
        bound=exact_upper_bound(happened, of, level=LEVEL) if of else None,
        clusters=len(clusters),
        clusters_with_events=touched,
        cluster_bound=exact_upper_bound(touched, len(clusters), level=LEVEL) if clusters else None,
    )


def _interval(events: list[int], trials: list[int]) -> tuple[float, float] | tuple[None, None]:
    if len(trials) < 2:
        return None, None
    found = means(np.array([events]), np.array([trials]), np.ones(1))
    (value,), (half,) = found.values, reach(cr1(found), LEVEL)
    if np.isnan(half):
        return None, None
    return max(0.0, float(value - half)), min(1.0, float(value + half))
