"""How much of a figure is chance of the ingest, of the answer, of the judge and of the questions: from repeats."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from memdock_evaluator.statistics.arrays import Floats, Ints
from memdock_evaluator.statistics.matrix import ScoredRow
from memdock_evaluator.statistics.shape import tidy

METHOD = "moments of the balanced nested analysis of variance"
SOURCE = "Searle, Casella and McCulloch 1992, Variance Components, section 3.3"


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """What one step's chance does. `variance` is that of a question's score; `standard_error` that of the accuracy over
    all the questions if only this step were done anew. Both `None` where the step was done once.
    """

    variance: float | None
    standard_error: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatVariance:
    """The three steps, and the questions: how their expected scores differ, as if they were drawn one by one.

    `all_steps` is the standard error of accuracy under doing anew whatever was repeated, on the same questions.
    """

    ingest: Component
    answer: Component
    judge: Component
    questions: Component
    all_steps: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemRepeats:
    """One system in one language, over the `n` of its `asked` questions that have all their scores.

    `components` is `None` where there is no such question, or nothing was repeated.
    """

    system: str
    language: str
    ingests: int
    answers: int
    judgements: int
    asked: int
    n: int
    components: RepeatVariance | None


def repeats_of(rows: Iterable[ScoredRow]) -> tuple[SystemRepeats, ...]:
    """The components of each system and language of some rows that have repeats of any kind, by name."""
    found: defaultdict[tuple[str, str], list[ScoredRow]] = defaultdict(list)
    for row in rows:
        found[row.system, row.language].append(row)
    of_systems = (_of_system(*place, mine) for place, mine in sorted(found.items()))
    return tuple(each for each in of_systems if each.ingests * each.answers * each.judgements > 1)


def _of_system(system: str, language: str, rows: list[ScoredRow]) -> SystemRepeats:
    questions = sorted({(row.dialogue_id, row.question_id) for row in rows})
    dialogues = sorted({dialogue for dialogue, _ in questions})
    answers_of: defaultdict[int, set[int]] = defaultdict(set)
    for row in rows:
        answers_of[row.ingest].add(row.answer)
    nth = {answer: n for found in answers_of.values() for n, answer in enumerate(sorted(found))}
    ingests, answers, judgements = len(answers_of), max(nth.values()) + 1, max(row.judging for row in rows) + 1
    scores = np.full((len(questions), ingests, answers, judgements), np.nan)
    place = {question: index for index, question in enumerate(questions)}
    for row in rows:
        if row.correct is not None:
            question = place[row.dialogue_id, row.question_id]
            scores[question, row.ingest, nth[row.answer], row.judging] = row.correct
    whole = int((~np.isnan(scores).any(axis=(1, 2, 3))).sum())
    dialogue_of = np.array([dialogues.index(dialogue) for dialogue, _ in questions])
    repeated = ingests * answers * judgements > 1
    return SystemRepeats(
        system=system,
        language=language,
        ingests=ingests,
        answers=answers,
        judgements=judgements,
        asked=len(questions),
        n=whole,
        components=repeat_variance(scores, dialogue_of) if whole and repeated else None,
    )


def repeat_variance(scores: Floats, dialogue_of: Ints) -> RepeatVariance:
    """Variance components of nested repeats: `scores` is questions x ingests x answers of each x judgements of each.

    Moments of the balanced nested analysis of variance (Searle, Casella and McCulloch 1992, "Variance Components",
    section 3.3): the spread at a step minus what the steps below put into it, never below 0. Answers and judgements are
    independent between questions; one ingest serves all questions of a dialogue (`dialogue_of`), so its spread is that
    of the dialogue's sum. The variance of a step that was done once stands in the step above it. That of the questions
    is the spread of their means minus what the repeats leave in those; where nothing was repeated, chance stands in it.
    Questions without all their scores (NaN) are left out; raises `ValueError` if none remains.
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
    chance = next(
        (
            _variance(values, axis=1).mean() / values.shape[1]
            for values in (answered.mean(axis=2), answered[:, 0], scores[:, 0, 0])
            if values.shape[1] > 1
        ),
        0.0,
    )
    spread = scores.mean(axis=(1, 2, 3)).var(ddof=1) - chance if n > 1 else np.nan
    steps = (
        _component(float(ingest), n, ingests),
        _component(float(answer.sum()), n, answers),
        _component(float(judge.sum()), n, judgements),
    )
    return RepeatVariance(
        ingest=steps[0],
        answer=steps[1],
        judge=steps[2],
        questions=_sampled(float(spread), n),
        all_steps=tidy(float(np.sqrt(sum((step.standard_error or 0.0) ** 2 for step in steps)))) or 0.0,
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
    return Component(variance=tidy(total / questions), standard_error=tidy(float(np.sqrt(total)) / questions))


def _sampled(variance: float, questions: int) -> Component:
    """Of questions drawn one by one; nothing is known of the spread of one alone."""
    if np.isnan(variance):
        return Component(variance=None, standard_error=None)
    variance = max(variance, 0.0)
    return Component(variance=tidy(variance), standard_error=tidy(float(np.sqrt(variance / questions))))
