"""Intervals against printed tables, against the paper's errors, and against a simulation with a known truth."""

import csv
from pathlib import Path
from random import Random

import pytest

from memdock_evaluator.intervals import accuracy_interval, mean_se, percentile, proportion_se, student_t

TABLE_5 = Path(__file__).parents[4] / "shared/paper/table5.csv"
RUMBA_QUESTIONS = 1543


@pytest.mark.parametrize(
    ("level", "freedom", "printed"),
    [
        (0.95, 1, 12.706),
        (0.95, 2, 4.303),
        (0.95, 3, 3.182),
        (0.95, 5, 2.571),
        (0.95, 10, 2.228),
        (0.95, 19, 2.093),
        (0.95, 30, 2.042),
        (0.95, 120, 1.980),
        (0.99, 4, 4.604),
        (0.99, 9, 3.250),
        (0.90, 7, 1.895),
        (0.50, 6, 0.718),
    ],
)
def test_student_t_is_what_the_tables_print(level: float, freedom: int, printed: float) -> None:
    assert student_t(level, freedom) == pytest.approx(printed, abs=5e-4)


def test_student_t_nears_the_normal_from_above() -> None:
    assert 1.959964 < student_t(0.95, 5000) < student_t(0.95, 500) < 1.965


@pytest.mark.parametrize(("level", "freedom"), [(1.0, 5), (0.0, 5), (0.95, 0)])
def test_student_t_refuses_what_has_no_answer(level: float, freedom: int) -> None:
    with pytest.raises(ValueError, match="degrees of freedom"):
        student_t(level, freedom)


@pytest.mark.skipif(not TABLE_5.exists(), reason="needs the paper's Table 5, which cannot be shipped with the project")
def test_all_26_accuracy_errors_of_the_paper_follow() -> None:
    with TABLE_5.open(encoding="utf-8", newline="") as file:
        printed = [
            (float(row[f"{language}_judge"]) / 100, float(row[f"{language}_judge_se"]))
            for row in csv.DictReader(file)
            for language in ("ru", "en")
        ]
    assert len(printed) == 26
    for accuracy, error in printed:
        assert 100 * (proportion_se(accuracy, RUMBA_QUESTIONS) or 0) == pytest.approx(error, abs=0.0051), accuracy


def test_errors_of_fewer_than_two_are_unknown() -> None:
    assert proportion_se(1.0, 1) is None
    assert mean_se([0.5]) is None
    assert mean_se([0.0, 1.0]) == pytest.approx(0.5)


def test_a_worked_cluster_interval() -> None:
    # mean 0.5; residual sums 1, -1, 0; V = 3/2 * 2 / 36 = 1/12
    interval = accuracy_interval([[1, 1], [0, 0], [1, 0]])
    assert interval is not None
    assert interval.standard_error == pytest.approx((1 / 12) ** 0.5)
    assert (interval.low, interval.high) == (0, 1)  # 0.5 +- 4.303 * 0.289, cut
    assert interval.n_clusters == 3


def test_clusters_of_one_question_give_the_ordinary_error() -> None:
    scores = [1, 0, 0, 1, 1, 1, 0, 1]
    interval = accuracy_interval([score] for score in scores)
    assert interval is not None
    assert interval.standard_error == pytest.approx(mean_se(scores))


@pytest.mark.parametrize(
    "clusters",
    [[], [[1, 0, 1]], [[1, 0], []], [[1, 1], [1]], [[1, 0], [0, 1]]],
    ids=["nothing", "one cluster", "one with scores", "all right", "clusters alike"],
)
def test_no_interval_where_clusters_say_nothing_of_spread(clusters: list[list[float]]) -> None:
    assert accuracy_interval(clusters) is None


def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    """Dialogues differ (accuracy 0.6 +- 0.25 each): the question-wise error is far too small, the clustered is not."""
    random = Random(20240317)
    clustered = naive = 0
    runs = 600
    for _ in range(runs):
        chances = [0.6 + random.choice((-0.25, 0.25)) for _ in range(12)]
        scores = [[float(random.random() < chance) for _ in range(15)] for chance in chances]
        interval = accuracy_interval(scores)
        assert interval is not None
        clustered += interval.low <= 0.6 <= interval.high
        accuracy = sum(map(sum, scores)) / 180
        naive += abs(accuracy - 0.6) <= 1.96 * (proportion_se(accuracy, 180) or 0)
    assert 0.92 <= clustered / runs <= 0.98
    assert naive / runs < 0.80


def test_percentiles_interpolate_between_neighbours() -> None:
    assert percentile([4, 1, 3, 2], 0.5) == 2.5
    assert percentile([10, 20], 0.95) == pytest.approx(19.5)
    assert percentile([7], 0.95) == 7
