"""The plan's blocks and margins, worked out: each contrast by all three methods."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np

from memdock_evaluator.statistics.arrays import Floats, Ints
from memdock_evaluator.statistics.clustered import (
    Errors,
    Means,
    cr1,
    difference,
    means,
    non_inferiority,
    p_values,
    reach,
    smallest_detectable,
)
from memdock_evaluator.statistics.matrix import ScoreMatrix
from memdock_evaluator.statistics.multiple import holm, too_few_resamples
from memdock_evaluator.statistics.plan import AnalysisPlan, Contrast, Margin, Side, Term
from memdock_evaluator.statistics.resampling import LEAST_DIALOGUES, TOO_FEW_DIALOGUES, Findings, bootstrap
from memdock_evaluator.statistics.shape import BlockResult, Difference, Finding, MarginResult, tidy
from memdock_evaluator.statistics.slices import OVERALL
from memdock_evaluator.statistics.sums import SideReader, Sides


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Worked:
    """K contrasts with their headline errors, and the columns that a bootstrap resamples.

    `reach`: the largest that each can be.
    """

    first: Sides
    second: Sides
    first_means: Means
    second_means: Means
    found: Means
    errors: Errors
    reach: Floats
    asked: Ints
    by_question: Ints
    by_dialogue: Ints


def work_out(matrix: ScoreMatrix, plan: AnalysisPlan, contrasts: Sequence[Contrast]) -> Worked:
    """The contrasts, at least one, in accuracy."""
    reader = SideReader(matrix, matrix.accuracy, plan)
    first, second = reader.read([(contrast.first, contrast.second) for contrast in contrasts])
    by_dialogue = reader.by_dialogue
    first_means, second_means = (
        means(by_dialogue[side.points], by_dialogue[side.counts], side.units) for side in (first, second)
    )
    two_slices = np.array([contrast.first.slice != contrast.second.slice for contrast in contrasts])
    found = difference(first_means, second_means, two_slices)
    return Worked(
        first=first,
        second=second,
        first_means=first_means,
        second_means=second_means,
        found=found,
        errors=cr1(found),
        reach=np.array([contrast.reach for contrast in contrasts]),
        asked=first.asked + np.where(two_slices, second.asked, 0),
        by_question=reader.by_question,
        by_dialogue=by_dialogue,
    )


def block_results(
    matrix: ScoreMatrix,
    plan: AnalysisPlan,
    *,
    dialogues_rng: np.random.Generator,
    questions_rng: np.random.Generator,
    resamples: int,
) -> tuple[BlockResult, ...]:
    """Every block of the plan, all contrasts on the same resamples."""
    contrasts = [contrast for block in plan.blocks for contrast in block.contrasts]
    if not contrasts:
        return ()
    worked = work_out(matrix, plan, contrasts)
    by_method = {
        "clustered": _clustered(worked, plan),
        "dialogue_bootstrap": _resampled(worked, plan, worked.by_dialogue, dialogues_rng, resamples),
        "question_bootstrap": _resampled(worked, plan, worked.by_question, questions_rng, resamples),
    }
    results = []
    start = 0
    for block in plan.blocks:
        places = range(start, start + len(block.contrasts))
        start += len(block.contrasts)
        refused = _refusal(worked, places, resamples, plan.alpha)
        findings = {
            method: _findings(found, places, correct=method == "clustered" or not refused)
            for method, found in by_method.items()
        }
        results.append(
            BlockResult(
                kind=block.kind,
                name=block.name,
                caveat=block.caveat,
                refused=refused,
                differences=tuple(
                    _difference(worked, plan, contrasts[place], place, {m: f[index] for m, f in findings.items()})
                    for index, place in enumerate(places)
                ),
            )
        )
    return tuple(results)


def _clustered(worked: Worked, plan: AnalysisPlan) -> Findings:
    """The headline's intervals and p-values, in the shape of a bootstrap's."""
    far = reach(worked.errors, plan.level)
    values = worked.found.values
    # Where a difference can be at all: an interval that is cut to it covers as often.
    return Findings(
        low=np.maximum(values - far, -worked.reach),
        high=np.minimum(values + far, worked.reach),
        p=p_values(values, worked.errors),
    )


def _resampled(worked: Worked, plan: AnalysisPlan, columns: Ints, rng: np.random.Generator, resamples: int) -> Findings:
    """A bootstrap's, without the p-values of contrasts over too few dialogues."""
    found = bootstrap(columns, worked.first, worked.second, rng=rng, resamples=resamples, level=plan.level)
    enough = worked.errors.clusters >= LEAST_DIALOGUES
    return Findings(low=found.low, high=found.high, p=np.where(enough, found.p, np.nan))


def _refusal(worked: Worked, places: range, resamples: int, alpha: float) -> str:
    tested = [place for place in places if worked.errors.clusters[place] >= LEAST_DIALOGUES]
    if not tested:
        return TOO_FEW_DIALOGUES
    return too_few_resamples(len(tested), resamples, alpha)


def _findings(found: Findings, places: range, *, correct: bool) -> list[Finding]:
    p = [float(found.p[place]) for place in places]
    adjusted = holm(p) if correct else [float("nan")] * len(p)
    return [
        Finding(low=tidy(found.low[place]), high=tidy(found.high[place]), p=tidy(raw), p_holm=tidy(corrected))
        for place, raw, corrected in zip(places, p, adjusted, strict=True)
    ]


def _difference(
    worked: Worked, plan: AnalysisPlan, contrast: Contrast, place: int, findings: dict[str, Finding]
) -> Difference:
    error, clusters = float(worked.errors.standard[place]), int(worked.errors.clusters[place])
    return Difference(
        contrast=contrast,
        first=tidy(worked.first_means.values[place]),
        second=tidy(worked.second_means.values[place]),
        estimate=tidy(worked.found.values[place]),
        asked=int(worked.asked[place]),
        n=int(worked.found.questions[place]),
        n_dialogues=clusters,
        clustered_error=tidy(error),
        least=tidy(worked.first.lows[place] - worked.second.highs[place]),
        most=tidy(worked.first.highs[place] - worked.second.lows[place]),
        smallest_detectable=tidy(smallest_detectable(error, clusters, alpha=plan.alpha, power=plan.power))
        if isfinite(error)
        else None,
        **findings,
    )


def margin_results(matrix: ScoreMatrix, plan: AnalysisPlan) -> tuple[MarginResult, ...]:
    """Every claim of the plan, tested by dialogue."""
    if not plan.margins:
        return ()
    worked = work_out(matrix, plan, [_claim(margin) for margin in plan.margins])
    return tuple(_margin(worked, plan, margin, place) for place, margin in enumerate(plan.margins))


def _claim(margin: Margin) -> Contrast:
    first, second = (
        Side(terms=(Term(unit=unit, language=margin.language),), slice=OVERALL)
        for unit in (margin.unit, margin.reference)
    )
    return Contrast(first=first, second=second)


def _margin(worked: Worked, plan: AnalysisPlan, margin: Margin, place: int) -> MarginResult:
    value, error = float(worked.found.values[place]), float(worked.errors.standard[place])
    clusters = int(worked.errors.clusters[place])
    tested = (
        non_inferiority(value, error, clusters, margin=margin.margin, alpha=plan.alpha) if isfinite(error) else None
    )
    return MarginResult(
        unit=margin.unit,
        reference=margin.reference,
        language=margin.language,
        margin=margin.margin,
        n=int(worked.found.questions[place]),
        n_dialogues=clusters,
        difference=tidy(value),
        lower=tidy(max(-1.0, tested.lower)) if tested else None,
        p=tidy(tested.p) if tested else None,
        not_inferior=tested.not_inferior if tested else None,
    )
