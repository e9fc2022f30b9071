"""Rank intervals from comparisons that hold all at once."""

from itertools import combinations

import numpy as np
import pytest

from memdock_evaluator.statistics.clustered import Errors, cr1, means
from memdock_evaluator.statistics.distributions import student_t
from memdock_evaluator.statistics.ranks import rank_intervals, simultaneous_t


def test_ranks_are_those_surely_better_and_all_but_those_surely_worse() -> None:
    # a surely above c and d, b surely above d; a and b, b and c, c and d are open.
    values = {"ab": 1.0, "ac": 2.5, "ad": 3.5, "bc": 1.5, "bd": 2.5, "cd": 1.0}
    errors = Errors(standard=np.ones(6), clusters=np.full(6, 50))
    ranks = rank_intervals(4, np.array([values["".join(pair)] for pair in combinations("abcd", 2)]), errors, 2.0)
    assert ranks.best.tolist() == [1, 1, 2, 3]
    assert ranks.worst.tolist() == [2, 3, 4, 4]


def test_systems_without_any_difference_share_all_ranks() -> None:
    ranks = rank_intervals(3, np.zeros(3), Errors(standard=np.full(3, np.nan), clusters=np.full(3, 50)), float("nan"))
    assert (ranks.best.tolist(), ranks.worst.tolist()) == ([1, 1, 1], [3, 3, 3])


@pytest.mark.parametrize("dialogues", [25, 85])
def test_one_comparison_needs_students_t_and_many_need_more_but_less_than_bonferroni(dialogues: int) -> None:
    rng = np.random.default_rng(dialogues)
    systems = rng.integers(0, 19, size=(7, dialogues))
    pairs = np.array([systems[one] - systems[other] for one, other in combinations(range(7), 2)])
    found = means(pairs, np.full_like(pairs, 18), np.ones(len(pairs)))
    single = means(pairs[:1], np.full_like(pairs[:1], 18), np.ones(1))
    one, all_ = (
        simultaneous_t(some, cr1(some), rng=np.random.default_rng(1), resamples=10_000, level=0.95)
        for some in (single, found)
    )
    assert one == pytest.approx(student_t(0.95, dialogues - 1), rel=0.03)
    assert one < all_ < student_t(1 - 0.05 / len(pairs), dialogues - 1)


def test_nothing_to_compare_has_no_reach() -> None:
    found = means(np.zeros((2, 30), dtype=np.int64), np.ones((2, 30), dtype=np.int64), np.ones(2))
    assert np.isnan(simultaneous_t(found, cr1(found), rng=np.random.default_rng(1), resamples=99, level=0.95))
