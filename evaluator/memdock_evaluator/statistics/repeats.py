"""How much of a figure is chance of the ingest, of the answer and of the judge: from repeats of each."""

from dataclasses import dataclass

import numpy as np

from memdock_evaluator.statistics.arrays import Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """What one step's chance does. `variance` is that of a question's score; `standard_error` that of the accuracy over
    all the questions if only this step were done anew. Both `None` where the step was done once.
    """

    variance: float | None
    standard_error: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatVariance:
    """The three steps. `all_steps` is the standard error of accuracy under doing anew whatever was repeated."""

    ingest: Component
    answer: Component
    judge: Component
    all_steps: float


def repeat_variance(scores: Floats, dialogue_of: Ints) -> RepeatVariance:
    """Variance components of nested repeats: `scores` is questions x ingests x answers of each x judgements of each.

    Moments of the balanced nested analysis of variance (Searle, Casella and McCulloch 1992, "Variance Components",
    section 3.3): the spread at a step minus what the steps below put into it, never below 0. Answers and judgements are
    independent between questions; one ingest serves all questions of a dialogue (`dialogue_of`), so its spread is that
    of the dialogue's sum. The variance of a step that was done once stands in the step above it. Questions without all
    their scores (NaN) are left out; raises `ValueError` if none remains.
    """
    whole = ~np.isnan(scores).any(axis=(1, 2, 3))
    scores, dialogue_of = scores[whole], dialogue_of[whole]
    n, ingests, answers, judgements = scores.shape
    if not n:
        raise ValueError("no question has all its repeats scored")
    judge = _variance(scores, axis=3).mean(axis=(1, 2))
    answered = scores.mean(axis=3)
    answer_spread = _variance(answered, axis=2).mean(axis=1)
    answer = answer_spread - judge / judgements
    ingested = np.zeros((dialogue_of.max() + 1, ingests))
    np.add.at(ingested, dialogue_of, answered.mean(axis=2))
    below = answer_spread / answers if answers > 1 else judge / judgements
    ingest = _variance(ingested, axis=1).sum() - below.sum()
    steps = (
        _component(float(ingest), n, ingests),
        _component(float(answer.sum()), n, answers),
        _component(float(judge.sum()), n, judgements),
    )
    return RepeatVariance(
        ingest=steps[0],
        answer=steps[1],
        judge=steps[2],
        all_steps=float(np.sqrt(sum((step.standard_error or 0.0) ** 2 for step in steps))),
    )


def _variance(values: Floats, *, axis: int) -> Floats:
    """Over the repeats, with n - 1; 0 where there is one."""
    if values.shape[axis] == 1:
        return np.zeros_like(values.take(0, axis=axis))
    spread: Floats = values.var(axis=axis, ddof=1)
    return spread


def _component(total: float, questions: int, repeats: int) -> Component:
    """`total` is the variance that the step gives to the sum of all scores."""
    if repeats == 1:
        return Component(variance=None, standard_error=None)
    total = max(total, 0.0)
    return Component(variance=total / questions, standard_error=float(np.sqrt(total)) / questions)
