"""Agreement of judges: printed examples, statsmodels, and what has no answer."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.inter_rater import cohens_kappa, fleiss_kappa

from memdock_evaluator.statistics.agreement import NO_LABEL, binary_kappa, nominal_alpha

KRIPPENDORFF_C = [
    # "Computing Krippendorff's alpha-reliability" (2011), part C: four observers, twelve units, gaps.
    [1, 2, 3, 3, 2, 1, 4, 1, 2, -1, -1, -1],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, -1, 3],
    [-1, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, -1],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, -1],
]
KRIPPENDORFF_A = [[0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]]


def test_alpha_is_what_krippendorff_prints() -> None:
    assert nominal_alpha(np.array(KRIPPENDORFF_C)) == pytest.approx(0.743, abs=5e-4)
    assert nominal_alpha(np.array(KRIPPENDORFF_A)) == pytest.approx(0.095, abs=5e-4)


def test_alpha_is_one_minus_observed_over_expected_disagreement_of_pairs() -> None:
    labels = np.random.default_rng(1).integers(-1, 4, size=(3, 40))
    pooled: list[int] = []
    observed = 0.0
    for thing in labels.T:
        given_ = [label for label in thing if label != NO_LABEL]
        if len(given_) > 1:
            pooled += given_
            observed += sum(a != b for a, b in permutations(given_, 2)) / (len(given_) - 1)
    n = len(pooled)
    expected = sum(a != b for a, b in permutations(pooled, 2)) / (n * (n - 1))
    assert nominal_alpha(labels) == pytest.approx(1 - observed / n / expected)


def test_alpha_nears_fleiss_kappa_as_things_grow_many() -> None:
    rng = np.random.default_rng(2)
    truth = rng.integers(0, 4, size=4000)
    labels = np.where(rng.random((3, 4000)) < 0.7, truth, rng.integers(0, 4, size=(3, 4000)))
    table = np.array([(labels == value).sum(axis=0) for value in range(4)]).T
    assert nominal_alpha(labels) == pytest.approx(fleiss_kappa(table), abs=1 / 4000)


@pytest.mark.parametrize("labels", [[[1, 1], [1, 1]], [[0, NO_LABEL], [NO_LABEL, 1]], [[], []]])
def test_no_alpha_without_two_labels_or_without_a_second_value(labels: list[list[int]]) -> None:
    assert nominal_alpha(np.array(labels, dtype=np.int64)) is None


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=2, max_size=60))
def test_kappa_is_statsmodels(pairs: list[tuple[int, int]]) -> None:
    first, second = np.array(pairs).T
    found = binary_kappa(first, second)
    if found is None:
        assert len(set(pairs)) == 1
        assert pairs[0][0] == pairs[0][1]
        return
    table = np.array([[pairs.count((a, b)) for b in (0, 1)] for a in (0, 1)])
    assert found == pytest.approx(cohens_kappa(table, return_results=False))


def test_kappa_leaves_out_what_only_one_judged() -> None:
    first = np.array([1, 1, 0, 0, NO_LABEL, 1])
    second = np.array([1, 0, 0, 0, 1, NO_LABEL])
    assert binary_kappa(first, second) == binary_kappa(first[:4], second[:4]) == pytest.approx(0.5)
    assert binary_kappa(first[4:], second[4:]) is None
