"""The bootstrap as a product of whole numbers, beside a loop and beside scipy."""

import numpy as np
import pytest
from scipy import stats

from memdock_evaluator.statistics.arrays import Ints
from memdock_evaluator.statistics.resampling import CHUNK, bootstrap, bootstrap_p, draws, exact, signs
from memdock_evaluator.statistics.sums import Sides

RESAMPLES = CHUNK + 30  # more than one chunk, the last of them short


def a_side(points: int, counts: int, unit: float = 1) -> Sides:
    nothing = np.zeros(1)
    return Sides(
        points=np.array([points]),
        counts=np.array([counts]),
        units=np.array([unit]),
        lows=nothing,
        highs=nothing,
        asked=np.zeros(1, dtype=np.int64),
    )


def some_columns(things: int = 40) -> Ints:
    """Points and counts of two slices: points up to 6, about half of the things in each."""
    rng = np.random.default_rng(11)
    slices = rng.integers(0, 2, size=(2, things))
    points = rng.integers(0, 7, size=(2, things)) * slices
    return np.concatenate([points, slices])


def test_a_resample_draws_as_many_things_as_there_are() -> None:
    counts = np.concatenate(list(draws(np.random.default_rng(1), 30, RESAMPLES)), axis=1)
    assert counts.shape == (30, RESAMPLES)
    assert (counts.sum(axis=0) == 30).all()
    # Each thing's count is binomial(30, 1/30): mean 1, variance 29/30.
    assert counts.mean() == 1
    assert counts.var() == pytest.approx(29 / 30, abs=4 * np.sqrt(2 / counts.size) * 1.5)


def test_signs_are_even() -> None:
    flips = np.concatenate(list(signs(np.random.default_rng(2), 30, RESAMPLES)), axis=1)
    assert set(np.unique(flips)) == {-1, 1}
    assert abs(flips.mean()) < 4 / np.sqrt(flips.size)


def test_it_is_a_plain_loop_over_the_same_draws() -> None:
    columns = some_columns()
    found = bootstrap(
        columns, a_side(0, 2, 6), a_side(1, 3, 6), rng=np.random.default_rng(3), resamples=RESAMPLES, level=0.9
    )
    drawn = np.concatenate(list(draws(np.random.default_rng(3), 40, RESAMPLES)), axis=1)
    values = []
    for resample in drawn.T.tolist():
        first, second, n_first, n_second = (
            sum(value * times for value, times in zip(column, resample, strict=True)) for column in columns.tolist()
        )
        values.append(first / (n_first * 6) - second / (n_second * 6))
    whole = columns.sum(axis=1).tolist()
    observed = whole[0] / (whole[2] * 6) - whole[1] / (whole[3] * 6)
    beyond = sum(abs(value - observed) >= abs(observed) - 1e-12 for value in values)
    assert found.p[0] == (1 + beyond) / (RESAMPLES + 1)
    assert (found.low[0], found.high[0]) == pytest.approx(tuple(np.percentile(values, [5, 95])))


def test_its_interval_is_scipys() -> None:
    rng = np.random.default_rng(4)
    scores = rng.integers(0, 2, size=300)
    columns = np.array([scores, np.ones(300, dtype=np.int64), np.zeros(300, dtype=np.int64)])
    found = bootstrap(columns, a_side(0, 1), a_side(2, 1), rng=rng, resamples=10_000, level=0.95)
    scipys = stats.bootstrap((scores,), np.mean, n_resamples=10_000, method="percentile", rng=rng)
    # An end's own error: sqrt(.025 * .975 / B) over the density there, about .027 standard errors of the mean.
    near = 4 * 2**0.5 * 0.027 * scores.std() / 300**0.5
    assert found.low[0] == pytest.approx(scipys.confidence_interval.low, abs=near)
    assert found.high[0] == pytest.approx(scipys.confidence_interval.high, abs=near)


def test_nothing_is_said_where_a_resample_left_a_slice_empty() -> None:
    columns = np.array([[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [0, 1, 1, 0, 1], [0, 0, 1, 1, 1]])
    found = bootstrap(columns, a_side(0, 1), a_side(2, 3), rng=np.random.default_rng(5), resamples=500, level=0.95)
    assert np.isnan([found.low[0], found.high[0], found.p[0]]).all()


def test_p_is_never_0_and_at_most_1() -> None:
    assert bootstrap_p(np.array([0, 4, 999]), 999).tolist() == [0.001, 0.005, 1.0]


@pytest.mark.parametrize(("largest", "kind"), [(7, np.float32), (2**22, np.float64), (10**9, np.float64)])
def test_products_are_exact_in_the_floats_chosen(largest: int, kind: type) -> None:
    rng = np.random.default_rng(6)
    values = rng.integers(-largest, largest, size=(5, 60), endpoint=True)
    values[0, 0] = largest
    counts = next(draws(rng, 60, 50))
    whole = exact(values, 60)
    assert whole.dtype == kind
    assert (whole @ counts.astype(kind)).astype(np.int64).tolist() == (values @ counts).tolist()


def test_points_too_fine_for_any_float_are_refused() -> None:
    with pytest.raises(OverflowError, match="coarser"):
        exact(np.array([2**50]), 1000)
