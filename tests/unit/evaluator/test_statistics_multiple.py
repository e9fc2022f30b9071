"""Holm beside statsmodels; max-T beside every change of signs there is."""

from itertools import product

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

from memdock_evaluator.statistics.arrays import Floats, Ints
from memdock_evaluator.statistics.multiple import holm, max_t, smallest_adjusted, too_few_resamples


@pytest.mark.parametrize("tests", [1, 2, 5, 40])
def test_holm_is_statsmodels(tests: int) -> None:
    rng = np.random.default_rng(tests)
    p_values = np.round(rng.random(tests) ** 4, 2).tolist()  # some small, some equal
    assert holm(p_values) == pytest.approx(multipletests(p_values, method="holm")[1].tolist())


def test_holm_counts_only_tests_that_were_made() -> None:
    nan = float("nan")
    assert holm([nan, 0.01, nan, 0.04]) == pytest.approx([nan, 0.02, nan, 0.04], nan_ok=True)
    assert holm([]) == []


@pytest.mark.parametrize(
    ("tests", "resamples", "refused"), [(4, 99, False), (5, 99, False), (6, 99, True), (1, 10, True)]
)
def test_a_block_that_can_reject_nothing_is_refused_with_a_way_out(tests: int, resamples: int, refused: bool) -> None:
    sentence = too_few_resamples(tests, resamples, 0.05)
    assert bool(sentence) == refused == (smallest_adjusted(tests, resamples) > 0.05)
    if sentence:
        enough = int(sentence.split()[-1])
        assert not too_few_resamples(tests, enough, 0.05)
        assert too_few_resamples(tests, enough - 1, 0.05)


def step_down_over_all_signs(differences: Ints) -> Floats:
    """Romano and Wolf's step-down in words: test all, drop the largest, test what is left."""
    scale = np.sqrt((differences**2).sum(axis=1))
    observed = np.abs(differences.sum(axis=1)) / scale
    flips = np.array(list(product((-1, 1), repeat=differences.shape[1])))
    drawn = np.abs(flips @ differences.T) / scale
    adjusted = np.empty(len(scale))
    left, reached = list(range(len(scale))), 0.0
    while left:
        top = max(left, key=lambda place: observed[place])
        reached = max(reached, float((drawn[:, left].max(axis=1) >= observed[top] - 1e-9).mean()))
        adjusted[top] = reached
        left.remove(top)
    return adjusted


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_max_t_is_the_step_down_over_all_signs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    differences = rng.integers(-3, 4, size=(6, 12)) + np.array([[2], [1], [0], [0], [0], [-1]])
    resamples = 20_000
    found = max_t(differences, rng=rng, resamples=resamples)
    truth = step_down_over_all_signs(differences)
    assert (np.abs(found - truth) <= 4 * np.sqrt(truth * (1 - truth) / resamples) + 1 / resamples).all()


def test_systems_that_never_differ_are_not_told_apart() -> None:
    differences = np.array([[0, 0, 0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1, 1, 1]])
    found = max_t(differences, rng=np.random.default_rng(4), resamples=999)
    assert found[0] == 1
    assert found[1] == pytest.approx(2 / 2**8, abs=0.02)
    assert max_t(differences[:1], rng=np.random.default_rng(4), resamples=99).tolist() == [1.0]


def test_one_more_hypothesis_raises_p_and_a_copy_of_one_does_not() -> None:
    rng = np.random.default_rng(5)
    one = rng.integers(-2, 4, size=(1, 40))
    others = rng.integers(-3, 4, size=(20, 40))
    alone, twice, among = (
        max_t(rows, rng=np.random.default_rng(6), resamples=4999)[0]
        for rows in (one, np.concatenate([one, one]), np.concatenate([one, others]))
    )
    assert alone == twice < among
