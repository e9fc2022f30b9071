"""Shares by cluster: the figures beside the library's own, and what cannot be said."""

import pytest
from statsmodels.stats.proportion import proportion_confint

from memdock_evaluator.intervals import accuracy_interval
from memdock_evaluator.suites.shares import share_of


def test_a_share_by_dialogue_is_the_one_of_the_statistics() -> None:
    clusters = {"0": [1, 0, 0, 1], "1": [0, 0, 0], "2": [1, 1, 1, 0, 1]}
    found = share_of((name, value, 1) for name, values in clusters.items() for value in values)
    assert (found["events"], found["of"], found["share"]) == (6, 12, 0.5)
    expected = accuracy_interval(clusters.values())
    assert expected is not None
    assert (found["low"], found["high"]) == pytest.approx((expected.low, expected.high))
    assert (found["clusters"], found["clusters_with_events"]) == (3, 2)


def test_bounds_are_clopper_and_pearsons() -> None:
    found = share_of((str(pair), 0, 30) for pair in range(10))
    _, by_trial = proportion_confint(0, 300, alpha=0.1, method="beta")
    _, by_pair = proportion_confint(0, 10, alpha=0.1, method="beta")
    assert found["bound"] == pytest.approx(by_trial)
    assert found["bound"] == pytest.approx(0.01, abs=1e-4), "none in 300 leaves up to 1 %"
    assert found["cluster_bound"] == pytest.approx(by_pair)
    assert found["low"] is None, "dialogues that do not differ say nothing of others"


def test_tallies_of_a_cluster_add_up_and_empty_ones_do_not_count() -> None:
    found = share_of([("0", 1, 2), ("1", 0, 0), ("0", 0, 3)])
    assert (found["events"], found["of"], found["clusters"], found["clusters_with_events"]) == (1, 5, 1, 1)
    assert (found["low"], found["cluster_bound"]) == (None, 1.0)


def test_without_trials_nothing_is_said() -> None:
    found = share_of([("0", 0, 0)])
    assert [found[key] for key in ("share", "low", "high", "bound", "cluster_bound")] == [None] * 5
