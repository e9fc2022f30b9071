"""Accuracy corrected by people's labels: a worked case, and simulated judges with a known truth."""

import numpy as np
import pytest

from memdock_evaluator.statistics.agreement import NO_LABEL
from memdock_evaluator.statistics.arrays import Ints
from memdock_evaluator.statistics.labels import corrected_accuracy

DIALOGUES, EACH = 85, 18
DIALOGUE_OF = np.repeat(np.arange(DIALOGUES), EACH)


def judged_and_labelled(
    rng: np.random.Generator, *, too_kind: float, too_strict: float, labels: int, truth: float = 0.6
) -> tuple[Ints, Ints]:
    """A judge that errs at these rates on wrong and on right answers, and a random sample of true labels."""
    ease = rng.beta(truth * 19, (1 - truth) * 19, size=DIALOGUES)
    right = (rng.random(len(DIALOGUE_OF)) < ease[DIALOGUE_OF]).astype(np.int64)
    errs = rng.random(len(right)) < np.where(right == 1, too_strict, too_kind)
    human = np.full_like(right, NO_LABEL)
    sample = rng.choice(len(right), labels, replace=False)
    human[sample] = right[sample]
    return np.where(errs, 1 - right, right), human


def test_a_worked_case() -> None:
    # The judge has 5 of 8; of 4 labelled answers it was too kind to two, too strict to one: 1/4 too kind.
    judge = np.array([1, 1, 0, 1, 0, 1, 0, 1])
    human = np.array([0, 1, NO_LABEL, 0, 1, NO_LABEL, NO_LABEL, NO_LABEL])
    found = corrected_accuracy(judge, human, np.array([0, 0, 0, 1, 1, 1, 2, 2]))
    assert (found.judged, found.bias, found.accuracy) == (0.625, 0.25, 0.375)
    assert (found.labelled, found.too_kind, found.too_strict) == (4, 2, 1)
    assert (found.low, found.high) == (0, 1)  # two dialogues with labels: t(1) reaches anywhere


def test_an_estimate_beyond_what_accuracy_can_be_is_cut_and_says_so() -> None:
    # Judged 4 of 4; both labelled answers are wrong: the estimate is 0 and no more. Too strict to both: 0.5 + 1.
    dialogues = np.array([0, 0, 1, 1])
    kind = corrected_accuracy(np.array([1, 1, 1, 1]), np.array([0, NO_LABEL, 0, NO_LABEL]), dialogues)
    strict = corrected_accuracy(np.array([0, 1, 0, 1]), np.array([1, NO_LABEL, 1, NO_LABEL]), dialogues)
    assert (kind.accuracy, kind.cut) == (0.0, False)
    assert (strict.accuracy, strict.cut) == (1.0, True)


def test_labels_of_everything_are_the_truth_and_no_label_is_refused() -> None:
    judge, human = judged_and_labelled(np.random.default_rng(1), too_kind=0.2, too_strict=0.1, labels=len(DIALOGUE_OF))
    assert corrected_accuracy(judge, human, DIALOGUE_OF).accuracy == pytest.approx(human.mean())
    with pytest.raises(ValueError, match="import labels"):
        corrected_accuracy(judge, np.full_like(judge, NO_LABEL), DIALOGUE_OF)


def test_what_the_judge_left_unscored_stands_aside() -> None:
    judge, human = judged_and_labelled(np.random.default_rng(2), too_kind=0.2, too_strict=0.1, labels=300)
    unscored = np.arange(0, len(judge), 7)
    fewer = np.where(np.isin(np.arange(len(judge)), unscored), NO_LABEL, judge)
    kept = np.delete(np.arange(len(judge)), unscored)
    assert corrected_accuracy(fewer, human, DIALOGUE_OF) == corrected_accuracy(
        judge[kept], human[kept], DIALOGUE_OF[kept]
    )


def test_labels_in_one_dialogue_give_no_interval() -> None:
    judge, human = judged_and_labelled(np.random.default_rng(3), too_kind=0.2, too_strict=0.1, labels=300)
    human[DIALOGUE_OF > 0] = NO_LABEL
    human[0] = 1
    found = corrected_accuracy(judge, human, DIALOGUE_OF)
    assert found.low is found.high is None


@pytest.mark.parametrize(("too_kind", "too_strict"), [(0.20, 0.02), (0.02, 0.08), (0.01, 0.01)])
def test_the_interval_holds_the_truth_about_as_often_as_it_says(too_kind: float, too_strict: float) -> None:
    """100 labels of 1,530 answers; the judge's own figure is far off when it is kind."""
    rng = np.random.default_rng(4)
    runs = 600
    found = [
        corrected_accuracy(*judged_and_labelled(rng, too_kind=too_kind, too_strict=too_strict, labels=100), DIALOGUE_OF)
        for _ in range(runs)
    ]
    covered = sum(one.low <= 0.6 <= one.high for one in found if one.low is not None and one.high is not None)
    # It may hold more often, for errors of the judge that were not seen are counted in; not less, by chance alone.
    assert covered / runs >= 0.95 - 4 * (0.95 * 0.05 / runs) ** 0.5
    assert np.mean([one.accuracy for one in found]) == pytest.approx(0.6, abs=0.01)
    assert np.mean([one.bias for one in found]) == pytest.approx(0.4 * too_kind - 0.6 * too_strict, abs=0.01)
