"""Accuracy as people would have judged it, from a judge on all questions and people on a random few."""

from dataclasses import dataclass, replace

import numpy as np

from memdock_evaluator.statistics.agreement import NO_LABEL
from memdock_evaluator.statistics.arrays import Bools, Ints
from memdock_evaluator.statistics.clustered import cr1, difference, means, reach


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedAccuracy:
    """All between 0 and 1. `bias` is what was taken off the judge's accuracy, above 0 for a kind judge. `low` and
    `high` are `None` where fewer than two dialogues have labels. `cut`: the estimate lay beyond 0 or 1, and `accuracy`
    is that end.
    """

    judged: float
    bias: float
    accuracy: float
    low: float | None
    high: float | None
    labelled: int
    too_kind: int
    too_strict: int
    cut: bool


def corrected_accuracy(judge: Ints, human: Ints, dialogue_of: Ints, *, level: float = 0.95) -> CorrectedAccuracy:
    """The judge's accuracy minus its mean error on the labelled questions, with an interval for both errors.

    Prediction-powered inference of a mean (Angelopoulos, Bates, Fannjiang, Jordan and Zrnic 2023, Science 382,
    algorithm 1; in surveys the difference estimator), right whatever the judge is like, as long as the labelled
    questions are a random sample of all. The usual correction by sensitivity and specificity (Rogan and Gladen 1978)
    would need the judge to err alike on every system. `judge` and `human` hold 1, 0 or `NO_LABEL`, one a question, of
    one system; `dialogue_of` an index a question. Questions that the judge left unscored stand aside. The error is CR1
    by dialogue, with t on the labelled dialogues - 1, and with half an error of the judge more in each direction than
    were seen (Agresti and Min 2005, "Simple improved confidence intervals for comparing matched proportions"): none
    seen in few labels is not none.

    Raises `ValueError` without a labelled question.
    """
    scored = judge != NO_LABEL
    labelled = scored & (human != NO_LABEL)
    n = int(labelled.sum())
    if not n:
        raise ValueError("no labelled question: import labels first")
    error = np.where(labelled, judge - human, 0)
    judged = means(*_by_dialogue(judge * scored, scored, dialogue_of), np.ones(1))
    biased = means(*_by_dialogue(error, labelled, dialogue_of), np.ones(1))
    found = replace(difference(judged, biased, np.zeros(1, dtype=np.bool_)), present=biased.present)
    errors = cr1(found)
    far = float(reach(replace(errors, standard=np.hypot(errors.standard, 1 / (n + 2))), level)[0])
    accuracy = float(np.clip(found.values[0], 0, 1))
    known = np.isfinite(far)
    return CorrectedAccuracy(
        judged=float(judged.values[0]),
        bias=float(biased.values[0]),
        accuracy=accuracy,
        low=max(0.0, accuracy - far) if known else None,
        high=min(1.0, accuracy + far) if known else None,
        labelled=n,
        too_kind=int((error > 0).sum()),
        too_strict=int((error < 0).sum()),
        cut=accuracy != float(found.values[0]),
    )


def _by_dialogue(points: Ints, counted: Bools, dialogue_of: Ints) -> tuple[Ints, Ints]:
    sums = np.zeros((2, dialogue_of.max() + 1), dtype=np.int64)
    np.add.at(sums[0], dialogue_of, points)
    np.add.at(sums[1], dialogue_of, counted)
    return sums[:1], sums[1:]
