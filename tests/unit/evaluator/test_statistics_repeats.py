"""Variance components from simulated steps whose variances are known, and from a worked case."""

import numpy as np
import pytest

from memdock_evaluator.statistics.arrays import Floats
from memdock_evaluator.statistics.repeats import repeat_variance

DIALOGUES, EACH = 30, 10
DIALOGUE_OF = np.repeat(np.arange(DIALOGUES), EACH)


def simulated(rng: np.random.Generator, ingests: int, answers: int, judgements: int) -> Floats:
    """Questions differ by .3; an ingest moves its dialogue by .1, an answer its question by .2, a judgement by .15."""
    n = len(DIALOGUE_OF)
    moved: Floats = (
        rng.normal(0, 0.3, (n, 1, 1, 1))
        + rng.normal(0, 0.1, (DIALOGUES, ingests))[DIALOGUE_OF][:, :, None, None]
        + rng.normal(0, 0.2, (n, ingests, answers, 1))
        + rng.normal(0, 0.15, (n, ingests, answers, judgements))
    )
    return moved


def test_each_steps_variance_is_found() -> None:
    rng = np.random.default_rng(1)
    runs = [repeat_variance(simulated(rng, 4, 3, 3), DIALOGUE_OF) for _ in range(100)]
    truth = {"ingest": EACH * 0.1**2, "answer": 0.2**2, "judge": 0.15**2}
    for step, variance in truth.items():
        found = [getattr(run, step) for run in runs]
        assert np.mean([one.variance for one in found]) == pytest.approx(variance, rel=0.03)
        error = (variance / len(DIALOGUE_OF)) ** 0.5
        assert np.mean([one.standard_error**2 for one in found]) ** 0.5 == pytest.approx(error, rel=0.02)
    assert np.mean([run.questions.variance or 0 for run in runs]) == pytest.approx(0.3**2, rel=0.03)
    together = (sum(truth.values()) / len(DIALOGUE_OF)) ** 0.5
    assert np.mean([run.all_steps for run in runs]) == pytest.approx(together, rel=0.03)


def test_a_step_done_once_stands_in_the_step_above() -> None:
    rng = np.random.default_rng(2)
    runs = [repeat_variance(simulated(rng, 4, 1, 1), DIALOGUE_OF) for _ in range(100)]
    assert {(run.answer.variance, run.judge.standard_error) for run in runs} == {(None, None)}
    together = EACH * 0.1**2 + 0.2**2 + 0.15**2
    assert np.mean([run.ingest.variance or 0 for run in runs]) == pytest.approx(together, rel=0.05)


def test_judgements_alone_may_be_repeated() -> None:
    # Two judges of one answer each: they differ on the second question alone, variance (0 + 1/2) / 2.
    found = repeat_variance(np.array([[1.0, 1.0], [0.0, 1.0]])[:, None, None, :], np.array([0, 1]))
    assert found.judge.variance == 0.25
    assert found.judge.standard_error == pytest.approx(0.5**0.5 / 2, abs=1e-6)
    assert found.all_steps == found.judge.standard_error
    # Means 1 and 1/2: variance 1/8, of which the two verdicts put 0.25 / 2 = 1/8 there.
    assert found.questions.variance == 0
    assert found.ingest.variance is found.answer.variance is None


def test_no_variance_below_zero_and_questions_without_all_scores_are_left_out() -> None:
    scores = np.zeros((3, 2, 2, 2))
    scores[0, :, 0, :] = 1  # answers differ within every ingest, the ingests not at all
    scores[2, 0, 0, 0] = np.nan
    scores[2, 1] = 1
    found = repeat_variance(scores, np.array([0, 0, 1]))
    assert found == repeat_variance(scores[:2], np.array([0, 0]))
    assert found.ingest.variance == 0
    assert found.answer.variance == 0.25
    with pytest.raises(ValueError, match="all its repeats"):
        repeat_variance(scores[2:], np.array([0]))
