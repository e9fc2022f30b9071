"""Intervals and tests against simulated dialogues whose truth is known.

Dialogues of 14 to 22 questions, as RUMBA's; how easy a dialogue is varies so that two answers of one are correlated by
.05. Bounds are four standard errors of the simulation's own counts around what the method promises.
"""

from itertools import combinations
from math import sqrt

import numpy as np
import pytest

from memdock_evaluator.statistics.analysis import analyse
from memdock_evaluator.statistics.arrays import Bools, Floats, Ints
from memdock_evaluator.statistics.clustered import cr1, means, p_values, reach
from memdock_evaluator.statistics.matrix import Measure, ScoreMatrix
from memdock_evaluator.statistics.multiple import holm, max_t
from memdock_evaluator.statistics.plan import Family, Kind, paper_plan
from memdock_evaluator.statistics.ranks import simultaneous_t
from memdock_evaluator.statistics.resampling import Findings, bootstrap
from memdock_evaluator.statistics.slices import slices_of
from memdock_evaluator.statistics.sums import Sides

TRUTH, CORRELATION, LEVEL, ALPHA = 0.6, 0.05, 0.95, 0.05
SMALLEST, LARGEST = 14, 22


def allowed(rate: float, runs: int) -> float:
    """Four standard errors of a rate that is counted in `runs`."""
    return 4 * sqrt(rate * (1 - rate) / runs)


def dialogues_of(rng: np.random.Generator, dialogues: int) -> Ints:
    """The dialogue of each question."""
    return np.repeat(np.arange(dialogues), rng.integers(SMALLEST, LARGEST, size=dialogues, endpoint=True))


def ease_of(rng: np.random.Generator, sets: int, dialogues: int) -> Floats:
    """Each dialogue's chance of a right answer, beta with mean TRUTH: two answers correlate by 1 / (a + b + 1)."""
    spread = 1 / CORRELATION - 1
    return rng.beta(TRUTH * spread, (1 - TRUTH) * spread, size=(sets, dialogues))


def answers(rng: np.random.Generator, sets: int, dialogue_of: Ints) -> Ints:
    """Right or wrong, sets x questions."""
    ease = ease_of(rng, sets, int(dialogue_of[-1]) + 1)
    return (rng.random((sets, len(dialogue_of))) < ease[:, dialogue_of]).astype(np.int64)


def added_up(values: Ints, dialogue_of: Ints) -> Ints:
    starts = np.searchsorted(dialogue_of, np.arange(dialogue_of[-1] + 1))
    return np.add.reduceat(values, starts, axis=-1)


def bootstrapped(points: Ints, counts: Ints, rng: np.random.Generator, resamples: int) -> Findings:
    """The bootstrap of each row of points over counts (K x things), against nothing."""
    k = len(points)
    columns = np.concatenate([points, counts, np.zeros((1, points.shape[1]), dtype=np.int64)])
    nothing = np.zeros(k)
    first, second = (
        Sides(
            points=where,
            counts=k + np.arange(k),
            units=np.ones(k),
            lows=nothing,
            highs=nothing,
            asked=np.zeros(k, dtype=np.int64),
        )
        for where in (np.arange(k), np.full(k, 2 * k))
    )
    return bootstrap(columns, first, second, rng=rng, resamples=resamples, level=LEVEL)


@pytest.mark.parametrize("dialogues", [6, 20, 85])
def test_the_headline_interval_holds_the_truth_as_often_as_it_says(dialogues: int) -> None:
    rng, sets = np.random.default_rng(dialogues), 4000
    dialogue_of = dialogues_of(rng, dialogues)
    points = added_up(answers(rng, sets, dialogue_of), dialogue_of)
    found = means(points, np.tile(np.bincount(dialogue_of), (sets, 1)), np.ones(sets))
    covered = np.mean(np.abs(found.values - TRUTH) <= reach(cr1(found), LEVEL))
    assert covered == pytest.approx(LEVEL, abs=allowed(LEVEL, sets))


@pytest.mark.parametrize(("dialogues", "low", "high"), [(6, 0.83, 0.90), (20, 0.90, 0.95), (85, 0.93, 0.97)])
def test_the_bootstrap_over_dialogues_needs_many_of_them(dialogues: int, low: float, high: float) -> None:
    rng, sets = np.random.default_rng(dialogues), 1500
    dialogue_of = dialogues_of(rng, dialogues)
    points = added_up(answers(rng, sets, dialogue_of), dialogue_of)
    found = bootstrapped(points, np.tile(np.bincount(dialogue_of), (sets, 1)), rng, resamples=2000)
    covered = np.mean((found.low <= TRUTH) & (found.high >= TRUTH))
    assert low <= covered <= high


@pytest.mark.parametrize("dialogues", [6, 85])
def test_the_papers_bootstrap_over_questions_claims_too_much(dialogues: int) -> None:
    rng, sets = np.random.default_rng(dialogues), 1000
    scores = answers(rng, sets, dialogues_of(rng, dialogues))
    found = bootstrapped(scores, np.ones_like(scores), rng, resamples=1000)
    covered = np.mean((found.low <= TRUTH) & (found.high >= TRUTH))
    assert covered == pytest.approx(0.855, abs=allowed(0.855, sets))


def alike(rng: np.random.Generator, systems: int, dialogue_of: Ints) -> Ints:
    """Systems that are equally good on every question, questions being unequally hard: systems x questions."""
    ease = ease_of(rng, 1, int(dialogue_of[-1]) + 1)[0, dialogue_of]
    hard = np.clip(ease + rng.normal(0, 0.15, size=len(dialogue_of)), 0.02, 0.98)
    right: Ints = (rng.random((systems, len(dialogue_of))) < hard).astype(np.int64)
    return right


def in_slices(values: Ints, members: Bools, dialogue_of: Ints) -> tuple[Ints, Ints]:
    """Each dialogue's points and questions in each slice: slices x dialogues."""
    return added_up(values * members, dialogue_of), added_up(members.astype(np.int64), dialogue_of)


@pytest.mark.slow
@pytest.mark.parametrize("dialogues", [25, 85])
def test_a_block_without_differences_finds_one_as_rarely_as_it_says(dialogues: int) -> None:
    """Two systems alike, eight slices: Holm's p falls below .05 anywhere in one block of twenty."""
    rng, runs, slices = np.random.default_rng(dialogues), 1000, 8
    headline = resampled = 0
    for _ in range(runs):
        dialogue_of = dialogues_of(rng, dialogues)
        one, other = alike(rng, 2, dialogue_of)
        members = np.arange(slices)[:, None] == rng.integers(0, slices, size=len(dialogue_of))
        points, counts = in_slices(one - other, members, dialogue_of)
        found = means(points, counts, np.ones(slices))
        headline += np.nanmin(holm(p_values(found.values, cr1(found)).tolist())) <= ALPHA
        resampled += np.nanmin(holm(bootstrapped(points, counts, rng, resamples=999).p.tolist())) <= ALPHA
    assert headline / runs == pytest.approx(ALPHA, abs=allowed(ALPHA, runs))
    # The percentile bootstrap's p is a little too small, the more so the fewer the dialogues: it is not the headline.
    assert resampled / runs <= (0.09 if dialogues == 85 else 0.13)


@pytest.mark.slow
@pytest.mark.parametrize("dialogues", [25, 85])
def test_pairs_and_slices_without_differences_find_one_as_rarely_as_they_say(dialogues: int) -> None:
    """Six systems alike, all pairs over everything and in five slices; and the simultaneous intervals behind ranks."""
    rng, runs, systems, slices = np.random.default_rng(dialogues), 400, 6, 5
    found_one = ranked = 0
    for _ in range(runs):
        dialogue_of = dialogues_of(rng, dialogues)
        scores = alike(rng, systems, dialogue_of)
        members = np.arange(-1, slices)[:, None] == rng.integers(0, slices, size=len(dialogue_of))
        members[0] = True
        pairs = [in_slices(scores[a] - scores[b], members, dialogue_of) for a, b in combinations(range(systems), 2)]
        points = np.concatenate([points for points, _ in pairs])
        found_one += max_t(points, rng=rng, resamples=499).min() <= ALPHA
        overall = means(
            np.array([points[0] for points, _ in pairs]),
            np.array([counts[0] for _, counts in pairs]),
            np.ones(len(pairs)),
        )
        errors = cr1(overall)
        critical = simultaneous_t(overall, errors, rng=rng, resamples=499, level=LEVEL)
        ranked += bool((np.abs(overall.values) > critical * errors.standard).any())
    assert found_one / runs == pytest.approx(ALPHA, abs=allowed(ALPHA, runs))
    assert ranked / runs == pytest.approx(ALPHA, abs=allowed(ALPHA, runs))


def test_a_true_difference_beside_them_does_not_make_false_ones_likelier() -> None:
    """One system of four is better: it is found, and the pairs of the others stay within the promise."""
    rng, runs = np.random.default_rng(4), 400
    false = true = 0
    for _ in range(runs):
        dialogue_of = dialogues_of(rng, 85)
        scores = alike(rng, 4, dialogue_of)
        scores[0] |= rng.random(len(dialogue_of)) < 0.25
        pairs = list(combinations(range(4), 2))
        p = max_t(np.array([added_up(scores[a] - scores[b], dialogue_of) for a, b in pairs]), rng=rng, resamples=499)
        true += max(value for value, pair in zip(p, pairs, strict=True) if 0 in pair) <= ALPHA
        false += min(value for value, pair in zip(p, pairs, strict=True) if 0 not in pair) <= ALPHA
    assert false / runs == pytest.approx(ALPHA, abs=allowed(ALPHA, runs))
    assert true / runs > 0.9


@pytest.mark.slow
def test_a_whole_analysis_of_families_alike_keeps_its_promise() -> None:
    """Through the one entry: the blocks of a gap and of slices, and their intervals, where nothing differs."""
    rng, runs = np.random.default_rng(5), 250
    families = (Family(name="one", systems=("a", "b")), Family(name="other", systems=("c", "d", "e")))
    gaps = slices_apart = covered = intervals = 0
    for _ in range(runs):
        dialogue_of = dialogues_of(rng, 40)
        scores = alike(rng, 5, dialogue_of)[:, None, :]
        slices, members = slices_of(
            [{"tier": "abc"[tier]} for tier in rng.integers(0, 3, size=len(dialogue_of))], [None] * len(dialogue_of)
        )
        matrix = ScoreMatrix(
            systems=tuple("abcde"),
            languages=("ru",),
            dialogues=tuple(map(str, range(40))),
            dialogue_of=dialogue_of,
            asked=np.ones((1, len(dialogue_of)), dtype=np.bool_),
            slices=slices,
            members=members,
            accuracy=Measure.right_or_wrong(scores, np.ones(scores.shape, dtype=np.bool_)),
        )
        analysis = analyse(matrix, paper_plan(matrix, families), resamples=99)
        blocks = {block.name: block for block in analysis.blocks}
        of_tiers = blocks["one minus other: tier, ru"].differences
        gaps += min(one.clustered.p_holm or 1 for one in of_tiers) <= ALPHA
        slices_apart += min(one.clustered.p_holm or 1 for one in blocks["a minus b: tier"].differences) <= ALPHA
        for one in (*of_tiers, *(d for b in analysis.blocks if b.kind is Kind.GAP_SLICES for d in b.differences)):
            intervals += 1
            covered += (one.clustered.low or 0) <= 0 <= (one.clustered.high or 0)
    assert gaps / runs == pytest.approx(ALPHA, abs=allowed(ALPHA, runs))
    assert slices_apart / runs <= ALPHA + allowed(ALPHA, runs)
    assert covered / intervals == pytest.approx(LEVEL, abs=allowed(LEVEL, runs))
