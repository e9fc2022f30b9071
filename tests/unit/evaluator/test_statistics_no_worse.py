"""Claims of "no worse by the margin" on simulated dialogues whose truth is known.

Dialogues of 14 to 22 questions, as RUMBA's; two answers of one are correlated. Bounds are four standard errors of the
simulation's own counts around what the method promises.
"""

from collections.abc import Callable
from math import inf, sqrt

import numpy as np
import pytest

from memdock_evaluator.statistics.arrays import Floats
from memdock_evaluator.statistics.no_worse import (
    Clusters,
    Worse,
    event_is_no_more_frequent,
    mean_is_no_worse,
    mean_is_not_larger,
    quantile_is_not_larger,
)

ALPHA, MARGIN = 0.05, 0.03


def allowed(rate: float, runs: int) -> float:
    return 4 * sqrt(rate * (1 - rate) / runs)


def sizes(rng: np.random.Generator, dialogues: int) -> list[int]:
    return list(rng.integers(14, 22, size=dialogues, endpoint=True))


def answers(rng: np.random.Generator, dialogues: int, worse: float) -> tuple[Clusters, Clusters]:
    """Two systems on the same questions. The second is worse by `worse` on the whole, in each dialogue by another
    amount; they agree on most questions.
    """
    one, other = {}, {}
    for number, size in enumerate(sizes(rng, dialogues)):
        ease = np.clip(rng.beta(8, 5) + rng.normal(0, 0.1, size=size), 0.1, 0.9)
        first = rng.random(size) < ease
        again = rng.random(size) < 0.2
        drop = worse + rng.normal(0, 0.05)
        # Mean `ease - drop` whatever was right before: answered anew with chance .2, else as it was.
        second = np.where(again, rng.random(size) < ease - drop / 0.2, first)
        one[str(number)], other[str(number)] = list(first.astype(float)), list(second.astype(float))
    return one, other


def times(rng: np.random.Generator, dialogues: int, ratio: float) -> tuple[Clusters, Clusters]:
    """Log-normal times; a dialogue is slow or quick in both runs, and each run has its own chance."""
    one, other = {}, {}
    for number, size in enumerate(sizes(rng, dialogues)):
        slow = rng.normal(0, 0.2)
        one[str(number)] = list(np.exp(rng.normal(slow, 0.5, size=size)))
        other[str(number)] = list(ratio * np.exp(rng.normal(slow, 0.5, size=size)))
    return one, other


def money(rng: np.random.Generator, dialogues: int, ratio: float) -> tuple[Clusters, Clusters]:
    """A dialogue's money in both runs, skewed over dialogues."""
    base: Floats = rng.lognormal(0, 0.6, size=dialogues)
    noise = rng.lognormal(-0.02, 0.2, size=(2, dialogues))
    return tuple(  # type: ignore[return-value]
        {str(number): [value] for number, value in enumerate(values)}
        for values in (base * noise[0], base * noise[1] * ratio)
    )


def rate(runs: int, one: Callable[[], Worse], margin: float) -> float:
    """How often the claim is made."""
    return float(np.mean([one().bound < margin for _ in range(runs)]))


@pytest.mark.parametrize("dialogues", [6, 20, 85])
def test_what_is_worse_by_the_margin_passes_as_rarely_as_promised(dialogues: int) -> None:
    rng, runs = np.random.default_rng(dialogues), 600
    found = rate(runs, lambda: mean_is_no_worse(*answers(rng, dialogues, MARGIN)), MARGIN)
    assert found == pytest.approx(ALPHA, abs=allowed(ALPHA, runs))


def test_what_is_as_good_passes_often_enough_to_be_of_use() -> None:
    """RUMBA's size; and more dialogues pass more often."""
    rng, runs = np.random.default_rng(1), 150
    small, large = (rate(runs, lambda n=n: mean_is_no_worse(*answers(rng, n, 0.0)), MARGIN) for n in (20, 85))  # type: ignore[misc]
    assert large > 0.9
    assert small < large
    assert rate(runs, lambda: mean_is_no_worse(*answers(rng, 85, 2 * MARGIN)), MARGIN) < 0.01


@pytest.mark.parametrize("dialogues", [20, 85])
def test_times_longer_by_the_margin_pass_about_as_rarely_as_promised(dialogues: int) -> None:
    """The quantile's own chance is covered by a formula for many values: at 20 dialogues it promises a little much."""
    rng, runs = np.random.default_rng(dialogues), 200
    found = rate(runs, lambda: quantile_is_not_larger(*times(rng, dialogues, 1.25), 0.95), 0.25)
    assert found <= 0.075 + allowed(0.075, runs)
    assert found >= 0.01


def test_times_that_are_the_same_pass_and_much_longer_ones_do_not() -> None:
    rng, runs = np.random.default_rng(3), 50
    assert rate(runs, lambda: quantile_is_not_larger(*times(rng, 85, 1.0), 0.95), 0.25) > 0.9
    assert rate(runs, lambda: quantile_is_not_larger(*times(rng, 85, 1.5), 0.95), 0.25) < 0.02


@pytest.mark.parametrize("dialogues", [20, 85])
def test_money_more_by_the_margin_passes_about_as_rarely_as_promised(dialogues: int) -> None:
    rng, runs = np.random.default_rng(dialogues), 400
    found = rate(runs, lambda: mean_is_not_larger(*money(rng, dialogues, 1.1)), 0.1)
    assert found == pytest.approx(ALPHA, abs=allowed(ALPHA, runs) + 0.015)
    assert rate(100, lambda: mean_is_not_larger(*money(rng, 85, 1.0)), 0.1) > 0.6


def test_fiellers_bound_is_where_its_quadratic_says() -> None:
    """(second - r first)^2 = t^2 var(second - r first), solved for r."""
    rng = np.random.default_rng(9)
    first, second = money(rng, 30, 1.2)
    x, y = (np.array([values[str(n)][0] for n in range(30)]) for values in (first, second))
    t = 1.699127  # of 29 degrees of freedom at .95 (Abramowitz and Stegun, table 26.10)
    cov = np.cov(x, y) / 30
    a, b, c = (
        x.mean() ** 2 - t**2 * cov[0, 0],
        -2 * (x.mean() * y.mean() - t**2 * cov[0, 1]),
        y.mean() ** 2 - t**2 * cov[1, 1],
    )
    upper = (-b + sqrt(b * b - 4 * a * c)) / (2 * a)
    found = mean_is_not_larger(first, second)
    assert found.by == pytest.approx(y.mean() / x.mean() - 1)
    assert found.bound == pytest.approx(upper - 1, rel=1e-4)


def test_a_run_and_its_copy_are_alike_to_the_last_digit() -> None:
    first, _ = answers(np.random.default_rng(0), 20, 0.0)
    same = mean_is_no_worse(first, first)
    assert (same.by, same.bound, same.clusters) == (0.0, 0.0, 20)
    slow, _ = times(np.random.default_rng(0), 20, 1.0)
    assert mean_is_not_larger(slow, slow).bound == pytest.approx(0.0, abs=1e-5)
    assert quantile_is_not_larger(slow, slow, 0.95).by == 0.0


def test_one_dialogue_sets_no_bound() -> None:
    assert mean_is_no_worse({"0": [1.0, 0.0]}, {"0": [1.0, 1.0]}).bound == inf
    assert mean_is_not_larger({"0": [1.0]}, {"0": [1.0]}).bound == inf


def test_nothing_is_so_many_times_as_much_as_nothing() -> None:
    with pytest.raises(ValueError, match="the first mean is 0"):
        mean_is_not_larger({"0": [0.0]}, {"0": [1.0]})
    with pytest.raises(ValueError, match="the first quantile is 0"):
        quantile_is_not_larger({"0": [0.0]}, {"0": [1.0]}, 0.95)


def test_silence_proves_as_much_as_clopper_and_pearson_say() -> None:
    """None of n: 1 - .05^(1/n), the rule of three."""
    found = event_is_no_more_frequent((0, 20), (0, 20))
    assert found.bound == pytest.approx(1 - 0.05 ** (1 / 20))
    assert event_is_no_more_frequent((0, 60), (0, 60)).bound < 0.05
    assert event_is_no_more_frequent((0, 20), (1, 20)).by == pytest.approx(0.05)


@pytest.mark.parametrize("truth", [0.0, 0.1])
def test_an_event_more_frequent_by_the_margin_passes_no_more_often_than_promised(truth: float) -> None:
    rng, runs, margin = np.random.default_rng(5), 2000, 0.15
    made = [
        event_is_no_more_frequent((rng.binomial(40, truth), 40), (rng.binomial(40, truth + margin), 40)).bound < margin
        for _ in range(runs)
    ]
    assert np.mean(made) <= ALPHA + allowed(ALPHA, runs)
