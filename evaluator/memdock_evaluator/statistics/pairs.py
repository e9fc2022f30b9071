"""Every system against every other, in every slice; and the ranks within a family."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from memdock_evaluator.statistics.arrays import Ints
from memdock_evaluator.statistics.clustered import Errors, Means, cr1, means, smallest_detectable
from memdock_evaluator.statistics.matrix import ScoreMatrix
from memdock_evaluator.statistics.multiple import max_t
from memdock_evaluator.statistics.plan import AnalysisPlan, Family
from memdock_evaluator.statistics.ranks import rank_intervals, simultaneous_t
from memdock_evaluator.statistics.resampling import LEAST_DIALOGUES, TOO_FEW_DIALOGUES
from memdock_evaluator.statistics.shape import Pair, PairFamily, Rank, Ranking, tidy
from memdock_evaluator.statistics.slices import OVERALL, Slice
from memdock_evaluator.words.sentence import said


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Pairs:
    """K pairs of systems in slices: each dialogue's points of the first minus the second's, K x G, and the means."""

    names: list[tuple[str, str, Slice]]
    points: Ints
    found: Means
    errors: Errors


def pair_families(
    matrix: ScoreMatrix, plan: AnalysisPlan, *, rng: np.random.Generator, resamples: int
) -> tuple[PairFamily, ...]:
    """Each language's pairs x slices, corrected together by max-T, of all systems that are in a family.

    Pairs in a slice of few dialogues are left out.
    """
    return tuple(_pair_family(matrix, plan, language, rng, resamples) for language in matrix.languages)


def _pair_family(
    matrix: ScoreMatrix, plan: AnalysisPlan, language: str, rng: np.random.Generator, resamples: int
) -> PairFamily:
    systems = list(dict.fromkeys(system for family in plan.families for system in family.systems))
    if len(systems) < 2:
        alone = said("fewer than two systems in families: nothing to compare")
        return PairFamily(language=language, refused=alone, left_out=0, pairs=())
    pairs = _pairs(matrix, plan, language, systems, matrix.slices)
    tested = np.flatnonzero(pairs.errors.clusters >= LEAST_DIALOGUES)
    left_out = len(pairs.names) - len(tested)
    refused: str = ""
    if not len(tested):
        refused = TOO_FEW_DIALOGUES
    elif resamples + 1 < 1 / plan.alpha:
        refused = said(
            "{resamples} resamples cannot take any test below {alpha:g}", resamples=resamples, alpha=plan.alpha
        )
    if refused:
        return PairFamily(language=language, refused=refused, left_out=left_out, pairs=())
    p = max_t(pairs.points[tested], rng=rng, resamples=resamples)
    return PairFamily(
        language=language,
        refused="",
        left_out=left_out,
        pairs=tuple(_pair(pairs, place, adjusted) for place, adjusted in zip(tested.tolist(), p, strict=True)),
    )


def _pair(pairs: _Pairs, place: int, p: float) -> Pair:
    first, second, slice_ = pairs.names[place]
    return Pair(
        first=first,
        second=second,
        axis=slice_.axis,
        value=slice_.value,
        n=int(pairs.found.questions[place]),
        n_dialogues=int(pairs.errors.clusters[place]),
        estimate=tidy(pairs.found.values[place]) or 0.0,
        clustered_error=tidy(pairs.errors.standard[place]),
        p=tidy(p) or 0.0,
    )


def rankings(
    matrix: ScoreMatrix, plan: AnalysisPlan, *, rng: np.random.Generator, resamples: int
) -> tuple[Ranking, ...]:
    """Each family's ranks in each language, over all questions."""
    return tuple(
        _ranking(matrix, plan, family, language, rng, resamples)
        for family in plan.families
        for language in matrix.languages
    )


def _ranking(
    matrix: ScoreMatrix,
    plan: AnalysisPlan,
    family: Family,
    language: str,
    rng: np.random.Generator,
    resamples: int,
) -> Ranking:
    accuracy = {system: _accuracy(matrix, system, language) for system in family.systems}
    systems = [system for system in family.systems if accuracy[system] is not None]
    if len(systems) < 2:
        return _unranked(family, language, "fewer than two systems with scores: nothing to rank")
    pairs = _pairs(matrix, plan, language, systems, (OVERALL,))
    if pairs.errors.clusters.min() < LEAST_DIALOGUES:
        return _unranked(family, language, TOO_FEW_DIALOGUES)
    critical = simultaneous_t(pairs.found, pairs.errors, rng=rng, resamples=resamples, level=plan.level)
    ranks = rank_intervals(len(systems), pairs.found.values, pairs.errors, critical)
    detectable = [
        smallest_detectable(error, clusters, alpha=plan.alpha, power=plan.power)
        for error, clusters in zip(pairs.errors.standard, pairs.errors.clusters.tolist(), strict=True)
        if np.isfinite(error)
    ]
    return Ranking(
        family=family.name,
        language=language,
        refused="",
        smallest_detectable=tidy(float(np.median(detectable))) if detectable else None,
        ranks=tuple(
            Rank(
                system=system,
                accuracy=accuracy[system],
                best=int(ranks.best[place]),
                worst=int(ranks.worst[place]),
            )
            for place, system in enumerate(systems)
        ),
    )


def _unranked(family: Family, language: str, refused: str) -> Ranking:
    return Ranking(family=family.name, language=language, refused=refused, smallest_detectable=None, ranks=())


def _accuracy(matrix: ScoreMatrix, system: str, language: str) -> float | None:
    place = matrix.systems.index(system), matrix.languages.index(language)
    known = int(matrix.accuracy.known[place].sum())
    return tidy(int(matrix.accuracy.points[place].sum()) / (known * matrix.accuracy.unit)) if known else None


def _pairs(
    matrix: ScoreMatrix, plan: AnalysisPlan, language: str, systems: Sequence[str], slices: Sequence[Slice]
) -> _Pairs:
    where = matrix.languages.index(language)
    names, points, counts = [], [], []
    for slice_ in slices:
        present = [system for system in systems if plan.systems_of(system, slice_)]
        couples = list(combinations(present, 2))
        one, other = ([matrix.systems.index(couple[side]) for couple in couples] for side in (0, 1))
        known = matrix.accuracy.known[one, where] & matrix.accuracy.known[other, where]
        counted = known & matrix.members[matrix.slices.index(slice_)]
        apart = matrix.accuracy.points[one, where] - matrix.accuracy.points[other, where]
        names += [(first, second, slice_) for first, second in couples]
        points.append(matrix.by_dialogue(apart * counted))
        counts.append(matrix.by_dialogue(counted.astype(np.int64)))
    all_points = np.concatenate(points)
    found = means(all_points, np.concatenate(counts), np.full(len(all_points), float(matrix.accuracy.unit)))
    return _Pairs(names=names, points=all_points, found=found, errors=cr1(found))
