"""Cluster-robust errors beside statsmodels' regression, and what stands on them."""

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats

from memdock_evaluator.intervals import accuracy_interval
from memdock_evaluator.statistics.arrays import Floats, Ints
from memdock_evaluator.statistics.clustered import (
    Errors,
    Means,
    cr1,
    difference,
    means,
    non_inferiority,
    p_values,
    reach,
    smallest_detectable,
)

DIALOGUES = 17


def uneven_questions(seed: int) -> tuple[Ints, Ints]:
    """One score (0 to 6) and one dialogue a question: 3 to 14 questions a dialogue."""
    rng = np.random.default_rng(seed)
    dialogue_of = np.repeat(np.arange(DIALOGUES), rng.integers(3, 15, size=DIALOGUES))
    return rng.integers(0, 7, size=len(dialogue_of)) * (1 + dialogue_of % 2) // 2, dialogue_of


def mean_of(scores: Ints, dialogue_of: Ints, counted: Ints, unit: float) -> Means:
    points = np.bincount(dialogue_of, scores * counted, DIALOGUES).astype(np.int64)
    counts = np.bincount(dialogue_of, counted, DIALOGUES).astype(np.int64)
    return means(points[None], counts[None], np.array([unit]))


def regression(scores: Floats, design: Floats, dialogue_of: Ints) -> sm.regression.linear_model.RegressionResults:
    return sm.OLS(scores, design).fit(cov_type="cluster", cov_kwds={"groups": dialogue_of}, use_t=True)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_mean_is_a_regression_on_a_constant(seed: int) -> None:
    scores, dialogue_of = uneven_questions(seed)
    found = mean_of(scores, dialogue_of, np.ones_like(scores), 6)
    errors = cr1(found)
    fitted = regression(scores / 6, np.ones((len(scores), 1)), dialogue_of)
    assert found.values[0] == pytest.approx(fitted.params[0])
    assert errors.standard[0] == pytest.approx(fitted.bse[0], rel=1e-12)
    assert p_values(found.values, errors)[0] == pytest.approx(fitted.pvalues[0], rel=1e-7)
    low, high = fitted.conf_int(0.05)[0]
    assert found.values[0] + np.array([-1, 1]) * reach(errors, 0.95)[0] == pytest.approx([low, high])


@pytest.mark.parametrize("seed", [4, 5, 6])
def test_a_difference_of_slices_is_a_regression_on_their_dummy(seed: int) -> None:
    scores, dialogue_of = uneven_questions(seed)
    rng = np.random.default_rng(seed)
    slice_ = rng.integers(0, 3, size=len(scores))  # 0 and 1 are compared, 2 is neither
    slice_[dialogue_of == 3] = 2
    first, second = (mean_of(scores, dialogue_of, (slice_ == value).astype(np.int64), 1) for value in (0, 1))
    found = difference(first, second, np.array([True]))
    errors = cr1(found)
    inside = slice_ < 2
    fitted = regression(
        scores[inside].astype(float),
        np.column_stack([np.ones(inside.sum()), slice_[inside] == 0]).astype(float),
        dialogue_of[inside],
    )
    assert found.values[0] == pytest.approx(fitted.params[1])
    assert errors.standard[0] == pytest.approx(fitted.bse[1], rel=1e-12)
    assert errors.clusters[0] == DIALOGUES - 1
    assert p_values(found.values, errors)[0] == pytest.approx(fitted.pvalues[1], rel=1e-7)


def test_a_paired_difference_is_a_regression_of_the_differences() -> None:
    scores, dialogue_of = uneven_questions(7)
    others = np.random.default_rng(7).permutation(scores)
    everything = np.ones_like(scores)
    found = difference(
        mean_of(scores, dialogue_of, everything, 6), mean_of(others, dialogue_of, everything, 6), np.array([False])
    )
    fitted = regression((scores - others) / 6, np.ones((len(scores), 1)), dialogue_of)
    assert cr1(found).standard[0] == pytest.approx(fitted.bse[0], rel=1e-12)


def test_many_figures_at_once_are_each_alone_and_the_summary_has_the_same_interval() -> None:
    rng = np.random.default_rng(8)
    points = rng.integers(0, 6, size=(5, DIALOGUES))
    counts = np.full_like(points, 5)
    errors = cr1(means(points, counts, np.ones(5)))
    for place in range(5):
        interval = accuracy_interval([[1] * right + [0] * (5 - right) for right in points[place].tolist()])
        assert interval is not None
        assert errors.standard[place] == pytest.approx(interval.standard_error)


@pytest.mark.parametrize(
    ("points", "counts"),
    [([[3, 0]], [[4, 0]]), ([[0, 0]], [[0, 0]]), ([[2, 4]], [[2, 4]]), ([[1, 2]], [[2, 4]])],
    ids=["one dialogue", "no question", "all right", "dialogues alike"],
)
def test_no_error_where_dialogues_say_nothing_of_spread(points: list[list[int]], counts: list[list[int]]) -> None:
    found = means(np.array(points), np.array(counts), np.ones(1))
    errors = cr1(found)
    assert np.isnan(errors.standard[0])
    assert np.isnan(reach(errors, 0.95)[0])
    assert np.isnan(p_values(found.values, errors)[0])


def test_the_smallest_detectable_difference_is_found_as_often_as_it_says() -> None:
    """The power of a t test at that difference, from scipy's noncentral t: near 80 %, by a formula that adds two t."""
    error, clusters = 0.013, 85
    shift = smallest_detectable(error, clusters) / error
    beyond = stats.t.ppf(0.975, clusters - 1)
    power = stats.nct.sf(beyond, clusters - 1, shift) + stats.nct.cdf(-beyond, clusters - 1, shift)
    assert power == pytest.approx(0.8, abs=0.005)
    assert smallest_detectable(error, clusters, alpha=0.01) > smallest_detectable(error, clusters)
    assert smallest_detectable(error, clusters, power=0.9) > smallest_detectable(error, clusters)


@pytest.mark.parametrize("mean", [-0.05, -0.02, 0.0, 0.03])
def test_non_inferiority_is_a_one_sided_t_test_against_the_margin(mean: float) -> None:
    rng = np.random.default_rng(9)
    gaps = rng.normal(mean, 0.05, size=30)
    gaps += mean - gaps.mean()
    error = gaps.std(ddof=1) / 30**0.5
    found = non_inferiority(gaps.mean(), error, 30, margin=0.03)
    scipys = stats.ttest_1samp(gaps, -0.03, alternative="greater")
    assert found.p == pytest.approx(scipys.pvalue, rel=1e-8)
    assert found.lower == pytest.approx(scipys.confidence_interval(0.95).low)
    assert found.not_inferior == (scipys.pvalue < 0.05) == (mean >= -0.0001)


@pytest.mark.parametrize("margin", [0.0, -0.02])
def test_a_margin_of_nothing_is_refused(margin: float) -> None:
    with pytest.raises(ValueError, match="must be above 0"):
        non_inferiority(0.0, 0.01, 30, margin=margin)


def test_errors_are_of_the_dialogues_that_have_questions() -> None:
    found = means(np.array([[1, 2, 0, 0]]), np.array([[2, 2, 0, 3]]), np.ones(1))
    errors: Errors = cr1(found)
    assert errors.clusters.tolist() == [3]
