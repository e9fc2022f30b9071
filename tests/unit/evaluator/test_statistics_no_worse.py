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


def changes(
    rng: np.random.Generator, dialogues: int, worse: float, better: float, alike: float = 0.05
) -> tuple[Clusters, Clusters]:
    """Two systems of which the second loses `worse` of the questions and wins `better`: most answers stay as they were.

    `alike`: the correlation of what becomes of two questions of a dialogue.
    """
    one, other = {}, {}
    of = (1 - alike) / alike
    for number, size in enumerate(sizes(rng, dialogues)):
        lost, won = (rng.beta(of * share, of * (1 - share)) if share else 0.0 for share in (worse, better))
        drawn = rng.random(size)
        one[str(number)] = list(np.where(drawn < lost, 1.0, np.where(drawn > 1 - won, 0.0, 1.0)))
        other[str(number)] = list(np.where(drawn < lost, 0.0, 1.0))
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
    """At six dialogues still more rarely."""
    rng, runs = np.random.default_rng(dialogues), 600
    found = rate(runs, lambda: mean_is_no_worse(*answers(rng, dialogues, MARGIN)), MARGIN)
    assert found <= ALPHA + allowed(ALPHA, runs)
    assert found > 0.02 or dialogues == 6


@pytest.mark.slow
@pytest.mark.parametrize("dialogues", [6, 20, 85])
@pytest.mark.parametrize("margin", [0.01, 0.03])
@pytest.mark.parametrize(("alike", "promised"), [(0.001, 0.05), (0.05, 0.08)])
def test_it_passes_as_rarely_where_few_answers_change(
    dialogues: int, margin: float, alike: float, promised: float
) -> None:
    """Not so by the error that was found alone, which is smallest where the fewest losses were seen."""
    rng, runs = np.random.default_rng(dialogues), 800
    found = rate(runs, lambda: mean_is_no_worse(*changes(rng, dialogues, margin, 0.0, alike)), margin)
    assert found <= promised + allowed(promised, runs)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dialogues", "changed", "power"),
    [(20, 0.01, 0.89), (20, 0.04, 0.58), (85, 0.04, 0.99), (20, 0.1, 0.35), (85, 0.1, 0.85), (85, 0.2, 0.60)],
)
def test_what_is_as_good_passes_as_often_as_the_readme_says(dialogues: int, changed: float, power: float) -> None:
    rng, runs = np.random.default_rng(dialogues), 500
    found = rate(runs, lambda: mean_is_no_worse(*changes(rng, dialogues, changed / 2, changed / 2)), MARGIN)
    assert found == pytest.approx(power, abs=allowed(power, runs) + 0.01)


def test_no_change_proves_what_the_number_of_questions_can() -> None:
    """z^2 / (n + z^2), which is Wilson's bound of none of n, with n a little less than 360 for 20 dialogues only."""
    right = {str(number): [1.0] * 18 for number in range(20)}
    n = 360 * (1.6449 / 1.7291) ** 2  # t of 19 degrees of freedom (Abramowitz and Stegun, table 26.10)
    assert mean_is_no_worse(right, right).bound == pytest.approx(1.6449**2 / (n + 1.6449**2), rel=1e-4)


def test_tangos_bound_is_where_the_score_test_refuses() -> None:
    """With the likeliest shares under the bound found by trying them, not by his formula; each question a dialogue."""
    lost, won, n = 5, 2, 60
    one = {str(each): [float(each >= won)] for each in range(n)}
    other = {str(each): [float(each < n - lost)] for each in range(n)}
    found = mean_is_no_worse(one, other)
    assert found.by == pytest.approx((lost - won) / n)
    weight = (1.6449 / 1.6711) ** 2  # t of 59 degrees of freedom
    share = np.linspace(1e-9, 1 - found.bound - 1e-9, 400_001) / 2  # of what got better
    likelihood = won * np.log(share) + lost * np.log(share + found.bound)
    likelihood += (n - lost - won) * np.log(1 - 2 * share - found.bound)
    likeliest = share[np.argmax(likelihood)]
    error = sqrt((2 * likeliest + found.bound - found.bound**2) / (n * weight))
    assert (found.bound - found.by) / error == pytest.approx(1.6449, rel=1e-3)


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
    assert (same.by, same.clusters) == (0.0, 20)
    slow, _ = times(np.random.default_rng(0), 20, 1.0)
    assert mean_is_not_larger(slow, slow).bound == pytest.approx(0.0, abs=1e-5)
    assert quantile_is_not_larger(slow, slow, 0.95).by == 0.0


def test_times_that_are_quicker_pass_whatever_one_dialogue_did_before() -> None:
    """All of the first's longest times are one dialogue's, whose quantile is then known badly; the second has none."""
    slow = {str(number): [9.0 if number == 0 else 3.0] * 19 for number in range(6)}
    quick = {name: [1.0 + 0.01 * number for number in range(19)] for name in slow}
    found = quantile_is_not_larger(slow, quick, 0.95)
    assert found.bound < 0


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
