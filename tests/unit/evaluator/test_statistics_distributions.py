"""The special functions beside scipy's and statsmodels'."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats
from statsmodels.stats.proportion import proportion_confint

from memdock_evaluator.statistics.distributions import (
    beta_share,
    exact_interval,
    exact_upper_bound,
    student_p,
    student_t,
)

PARAMETERS = st.floats(0.05, 3000)


@given(x=st.floats(0, 1), a=PARAMETERS, b=PARAMETERS)
def test_the_incomplete_beta_is_scipys(x: float, a: float, b: float) -> None:
    assert beta_share(x, a, b) == pytest.approx(special.betainc(a, b, x), rel=1e-8, abs=1e-11)


@given(spread=st.floats(-4, 4), a=PARAMETERS, b=PARAMETERS)
def test_it_is_scipys_where_it_rises(spread: float, a: float, b: float) -> None:
    middle = a / (a + b)
    x = min(1.0, max(0.0, middle + spread * (middle * (1 - middle) / (a + b + 1)) ** 0.5))
    assert beta_share(x, a, b) == pytest.approx(special.betainc(a, b, x), rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("freedom", [1, 2, 5, 19, 84, 1542])
def test_student_is_scipys_on_both_sides(freedom: int) -> None:
    for t in (-30.0, -2.0, 0.0, 0.3, 1.0, 2.5, 8.0):
        assert student_p(t, freedom) == pytest.approx(2 * stats.t.sf(abs(t), freedom), rel=1e-9)
    for level in (0.05, 0.5, 0.6, 0.9, 0.95, 0.999):
        assert student_t(level, freedom) == pytest.approx(stats.t.ppf((1 + level) / 2, freedom), rel=1e-9)


@pytest.mark.parametrize("arguments", [(-0.1, 1, 1), (1.1, 1, 1), (0.5, 0, 1), (0.5, 1, -1)])
def test_the_incomplete_beta_refuses_what_has_no_answer(arguments: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="must lie between 0 and 1"):
        beta_share(*arguments)


@pytest.mark.parametrize("events", [0, 1, 7, 150, 299, 300])
def test_exact_bounds_are_scipys_and_statsmodels(events: int) -> None:
    trials = 300
    scipys = stats.binomtest(events, trials).proportion_ci(0.95, method="exact")
    low, high = exact_interval(events, trials)
    assert (low, high) == pytest.approx((scipys.low, scipys.high), abs=1e-10)
    assert (low, high) == pytest.approx(proportion_confint(events, trials, 0.05, method="beta"), abs=1e-10)
    one_sided = stats.binomtest(events, trials, alternative="less").proportion_ci(0.95, method="exact")
    assert exact_upper_bound(events, trials) == pytest.approx(one_sided.high, abs=1e-10)


def test_none_in_300_leaves_up_to_one_percent_and_no_less() -> None:
    bound = exact_upper_bound(0, 300)
    assert bound == pytest.approx(1 - 0.05 ** (1 / 300), abs=1e-12)
    assert (1 - bound) ** 300 == pytest.approx(0.05)


@pytest.mark.parametrize("truth", [0.002, 0.01, 0.3])
def test_the_bound_is_broken_by_no_more_than_it_says(truth: float) -> None:
    """All outcomes of 200 trials, by their chances: exact, nothing drawn."""
    chances = stats.binom.pmf(np.arange(201), 200, truth)
    broken = sum(chance for events, chance in enumerate(chances) if exact_upper_bound(events, 200) < truth)
    assert broken <= 0.05


@pytest.mark.parametrize(("events", "trials"), [(-1, 5), (6, 5), (0, 0)])
def test_impossible_counts_are_refused(events: int, trials: int) -> None:
    with pytest.raises(ValueError, match="impossible"):
        exact_upper_bound(events, trials)
