"""The one entry: everything that the plan asks of a matrix."""

import numpy as np

from memdock_evaluator.statistics.differences import block_results, margin_results
from memdock_evaluator.statistics.matrix import ScoreMatrix
from memdock_evaluator.statistics.pairs import pair_families, rankings
from memdock_evaluator.statistics.plan import AnalysisPlan
from memdock_evaluator.statistics.scoring import best_observed, scores
from memdock_evaluator.statistics.shape import Analysis

RESAMPLES = 10_000


def analyse(matrix: ScoreMatrix, plan: AnalysisPlan, *, seed: int = 0, resamples: int = RESAMPLES) -> Analysis:
    """Scores, contrasts, pairs, ranks, the best observed and the margins; the same bytes for the same seed.

    Each kind of resample draws from a stream of its own, so a block more or less moves no other figure.
    Raises `ValueError` for a plan that names a system, slice or language that the matrix does not have, or for fewer
    than one resample.
    """
    if resamples < 1:
        raise ValueError(f"resamples is {resamples}: take at least 1, better 10,000")
    found = scores(matrix, plan)
    return Analysis(
        seed=seed,
        resamples=resamples,
        level=plan.level,
        alpha=plan.alpha,
        power=plan.power,
        n_questions=matrix.n_questions,
        n_dialogues=len(matrix.dialogues),
        scores=found,
        blocks=block_results(
            matrix,
            plan,
            dialogues_rng=np.random.default_rng([seed, 0]),
            questions_rng=np.random.default_rng([seed, 1]),
            resamples=resamples,
        ),
        pairs=pair_families(matrix, plan, rng=np.random.default_rng([seed, 2]), resamples=resamples),
        rankings=rankings(matrix, plan, rng=np.random.default_rng([seed, 3]), resamples=resamples),
        best=best_observed(found, plan),
        margins=margin_results(matrix, plan),
    )
