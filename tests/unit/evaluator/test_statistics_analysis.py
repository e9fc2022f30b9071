"""The one entry: the same bytes, what is refused, what missing scores do, and few dialogues."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np
import orjson
import pytest

from memdock_evaluator.statistics.analysis import analyse
from memdock_evaluator.statistics.matrix import Measure, ScoredRow, ScoreMatrix, matrix_of
from memdock_evaluator.statistics.plan import AnalysisPlan, Family, Kind, Margin, paper_plan
from memdock_evaluator.statistics.shape import Analysis, BlockResult, Difference
from memdock_evaluator.statistics.slices import slices_of
from support.rumba_paper import AGENT_RAG, FAMILIES, FULL_CONTEXT, paper_matrix, plan_of_the_paper


def first_dialogues(matrix: ScoreMatrix, dialogues: int) -> ScoreMatrix:
    inside = matrix.dialogue_of < dialogues
    return replace(
        matrix,
        dialogues=matrix.dialogues[:dialogues],
        dialogue_of=matrix.dialogue_of[inside],
        asked=matrix.asked[:, inside],
        members=matrix.members[:, inside],
        accuracy=Measure.right_or_wrong(matrix.accuracy.points[..., inside], matrix.accuracy.known[..., inside]),
        f1=None,
    )


def without(matrix: ScoreMatrix, lost: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> ScoreMatrix:
    """The matrix with some scores not known."""
    return replace(matrix, accuracy=Measure.right_or_wrong(matrix.accuracy.points, ~lost), f1=None)


@cache
def few() -> Analysis:
    """Six dialogues."""
    matrix = first_dialogues(paper_matrix(), 6)
    return analyse(matrix, plan_of_the_paper(matrix), resamples=999)


def differences(analysis: Analysis, kind: Kind) -> Iterator[tuple[BlockResult, Difference]]:
    return ((block, one) for block in analysis.blocks if block.kind is kind for one in block.differences)


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others() -> None:
    matrix = first_dialogues(paper_matrix(), 30)
    plan = plan_of_the_paper(matrix)
    one, same, other = (orjson.dumps(analyse(matrix, plan, seed=seed, resamples=300)) for seed in (7, 7, 8))
    assert one == same != other


def test_a_block_more_moves_no_other_figure() -> None:
    matrix = first_dialogues(paper_matrix(), 30)
    plan = plan_of_the_paper(matrix, profiles=())
    more = plan_of_the_paper(matrix, profiles=("mem0",))
    found, with_more = (analyse(matrix, one, seed=1, resamples=300) for one in (plan, more))
    assert with_more.blocks[: len(found.blocks)] == found.blocks
    assert len(with_more.blocks) > len(found.blocks)
    assert with_more.pairs == found.pairs


def test_it_is_json_with_nothing_but_numbers_words_and_null() -> None:
    read = orjson.loads(orjson.dumps(few()))
    assert read["blocks"][0]["kind"] == "gap"
    side = read["blocks"][0]["differences"][0]["contrast"]["first"]
    assert side == {
        "terms": [{"unit": FULL_CONTEXT, "language": "en", "sign": 1}],
        "slice": {"axis": "overall", "value": "all"},
    }


def test_without_missing_scores_the_bounds_are_the_estimate() -> None:
    for block in few().blocks:
        for one in block.differences:
            assert one.least == pytest.approx(one.estimate, abs=2e-6)
            assert one.most == pytest.approx(one.estimate, abs=2e-6)
            assert one.n == one.asked


def test_below_20_dialogues_there_is_an_interval_and_no_bootstrap_p_and_nothing_is_ranked() -> None:
    some = [one for block in few().blocks for one in block.differences]
    assert any(one.clustered.p_holm is not None for one in some)
    assert {one.n_dialogues <= 6 for one in some} == {True}
    for one in some:
        assert one.dialogue_bootstrap.p is one.question_bootstrap.p is None
        assert one.dialogue_bootstrap.p_holm is one.question_bootstrap.p_holm is None
    assert all("fewer than 20 dialogues" in block.refused for block in few().blocks)
    for family in few().pairs:
        assert (family.pairs, "fewer than 20" in family.refused) == ((), True)
    for ranking in few().rankings:
        assert (ranking.ranks, "fewer than 20" in ranking.refused) == ((), True)


def test_too_few_resamples_for_a_block_are_refused_with_a_word() -> None:
    matrix = first_dialogues(paper_matrix(), 30)
    analysis = analyse(matrix, plan_of_the_paper(matrix), resamples=50)
    for block in analysis.blocks:
        tested = sum(one.n_dialogues >= 20 for one in block.differences)
        if tested > 2:  # 3 / 51 > .05
            assert "cannot take" in block.refused
        for one in block.differences:
            assert (one.dialogue_bootstrap.p_holm is None) == (bool(block.refused) or one.n_dialogues < 20)
            assert (one.dialogue_bootstrap.p is None) == (one.n_dialogues < 20)
    assert any(block.refused for block in analysis.blocks)
    assert any(not block.refused for block in analysis.blocks)
    (refusal,) = {family.refused for family in analyse(matrix, plan_of_the_paper(matrix), resamples=18).pairs}
    assert "18 resamples" in refusal
    with pytest.raises(ValueError, match="at least 1"):
        analyse(matrix, plan_of_the_paper(matrix), resamples=0)


def test_a_contrast_counts_questions_that_every_term_has_scores_on() -> None:
    matrix = first_dialogues(paper_matrix(), 25)
    lost = np.zeros(matrix.accuracy.known.shape, dtype=np.bool_)
    mem0, minimax = matrix.systems.index("mem0"), matrix.systems.index("minimax-01")
    lost[mem0, 1, :40] = True  # Russian
    lost[minimax, 1, 30:50] = True
    lost[minimax, 0, :10] = True  # English
    analysis = analyse(without(matrix, lost), plan_of_the_paper(matrix), resamples=99)
    overall = [one for _, one in differences(analysis, Kind.GAP) if one.contrast.first.slice.axis == "overall"]
    n = {one.contrast.first.terms[0].language: one.n for one in overall}
    assert n == {"ru": matrix.n_questions - 50, "en": matrix.n_questions - 10}
    (both,) = [
        one for _, one in differences(analysis, Kind.GAP_LANGUAGES) if one.contrast.first.slice.axis == "overall"
    ]
    assert (both.n, both.asked) == (matrix.n_questions - 50, matrix.n_questions)
    (russian,) = [one for one in overall if one.contrast.first.terms[0].language == "ru"]
    kept = np.arange(50, matrix.n_questions)
    means = [
        matrix.accuracy.points[[matrix.systems.index(name) for name in family.systems], 1][:, kept].mean()
        for family in FAMILIES
    ]
    assert russian.estimate == pytest.approx(means[0] - means[1], abs=1e-6)


def test_bounds_hold_whatever_the_missing_scores_were() -> None:
    matrix = first_dialogues(paper_matrix(), 25)
    rng = np.random.default_rng(3)
    lost = rng.random(matrix.accuracy.known.shape) < 0.03
    plan = plan_of_the_paper(matrix)
    truth = analyse(matrix, plan, resamples=19)
    found = analyse(without(matrix, lost), plan, resamples=19)
    some = 0
    for true_block, block in zip(truth.blocks, found.blocks, strict=True):
        for true, one in zip(true_block.differences, block.differences, strict=True):
            assert true.estimate is not None
            assert one.least is not None
            assert one.most is not None
            assert one.least - 2e-6 <= true.estimate <= one.most + 2e-6
            assert (one.least < one.most) == (one.n < one.asked)
            some += one.n < one.asked
    assert some > 100
    for true_score, score in zip((one for one in truth.scores if one.measure == "accuracy"), found.scores, strict=True):
        assert (score.least or 0) - 2e-6 <= (true_score.score or 0) <= (score.most or 0) + 2e-6
        assert score.n <= score.asked == true_score.n


def test_a_question_of_one_language_is_not_missing_in_the_other() -> None:
    """Ten dialogues in English alone, ten in Russian alone, ten in both; each with one answer that has no score."""
    rows = [
        ScoredRow(
            system=system,
            language=language,
            dialogue_id=f"{dialogue:02}",
            question_id=str(question),
            correct=None if question == 0 else (dialogue + question) % 3 > 0,
        )
        for system in ("a", "b")
        for language, dialogues in (("en", range(20)), ("ru", range(10, 30)))
        for dialogue in dialogues
        for question in range(5)
    ]
    matrix = matrix_of(rows)
    families = [Family(name="of a", systems=("a",)), Family(name="of b", systems=("b",))]
    analysis = analyse(matrix, paper_plan(matrix, families), resamples=99)
    assert analysis.n_questions == 150
    assert {(one.asked, one.n, one.n_dialogues) for one in analysis.scores} == {(100, 80, 20)}
    for score in analysis.scores:
        assert score.least == pytest.approx(0.8 * (score.score or 0), abs=1e-6)
        assert score.most == pytest.approx(0.8 * (score.score or 0) + 0.2, abs=1e-6)
    for _, one in differences(analysis, Kind.LANGUAGES):
        assert (one.asked, one.n, one.n_dialogues) == (50, 40, 10)


def test_a_system_without_any_score_in_a_language_says_nothing_there() -> None:
    matrix = first_dialogues(paper_matrix(), 25)
    lost = np.zeros(matrix.accuracy.known.shape, dtype=np.bool_)
    lost[matrix.systems.index("mem0"), 0] = True
    analysis = analyse(without(matrix, lost), plan_of_the_paper(matrix), resamples=199)
    nothing = [one for one in analysis.scores if (one.unit, one.language) == ("mem0", "en")]
    assert {(one.n, one.score, one.low, one.least, one.most) for one in nothing} == {(0, None, None, 0.0, 1.0)}
    (overall,) = [
        one
        for _, one in differences(analysis, Kind.GAP)
        if one.contrast.first.slice.axis == "overall" and one.contrast.first.terms[0].language == "en"
    ]
    assert (overall.n, overall.estimate, overall.clustered.p, overall.question_bootstrap.low) == (0, None, None, None)
    english, russian = analysis.pairs
    assert english.left_out > russian.left_out
    assert not [pair for pair in english.pairs if "mem0" in (pair.first, pair.second)]
    ranks = {(one.family, one.language): [rank.system for rank in one.ranks] for one in analysis.rankings}
    assert "mem0" in ranks[AGENT_RAG, "ru"]
    assert len(ranks[AGENT_RAG, "en"]) == 5


def test_intervals_end_where_no_difference_can_lie() -> None:
    matrix = first_dialogues(paper_matrix(), 2)
    analysis = analyse(matrix, plan_of_the_paper(matrix), resamples=99)
    ends: dict[Kind, set[float]] = {Kind.GAP: set(), Kind.GAP_LANGUAGES: set()}
    for kind, found in ends.items():
        for _, one in differences(analysis, kind):
            assert one.contrast.reach == (2 if kind is Kind.GAP_LANGUAGES else 1)
            for end in (one.clustered.low, one.clustered.high):
                if end is not None:
                    assert abs(end) <= one.contrast.reach
                    found.add(end)
    assert {-1.0, 1.0} <= ends[Kind.GAP]
    assert max(map(abs, ends[Kind.GAP_LANGUAGES]), default=0) > 1


def test_a_margin_is_judged_by_its_paired_bound() -> None:
    matrix = paper_matrix()
    claims = (
        Margin(unit="gpt-5.4", reference="claude-sonnet-4.6", language="ru", margin=0.02),
        Margin(unit="mem0", reference="cortex", language="ru", margin=0.02),
        Margin(unit="mem0", reference="mem0", language="ru", margin=0.02),
    )
    better, worse, itself = analyse(matrix, AnalysisPlan(families=(), margins=claims), resamples=99).margins
    assert better.not_inferior
    assert better.difference == pytest.approx(0.0499, abs=1e-3)
    assert worse.not_inferior is False
    assert worse.lower is not None
    assert worse.lower < (worse.difference or 0) < -0.02
    assert itself.not_inferior is None  # no spread at all to test with
    assert (itself.difference, itself.p) == (0, None)


def test_pairs_name_the_better_first_by_their_sign_and_ranks_agree() -> None:
    matrix = first_dialogues(paper_matrix(), 40)
    analysis = analyse(matrix, plan_of_the_paper(matrix), resamples=999)
    (overall,) = [
        pair
        for pair in analysis.pairs[0].pairs
        if (pair.first, pair.second, pair.axis) == ("mem0g", "memOS", "overall")
    ]
    assert overall.estimate < 0
    assert overall.p == pytest.approx(1 / 1000)
    (ranking,) = [one for one in analysis.rankings if (one.family, one.language) == (AGENT_RAG, "en")]
    ranks = {rank.system: rank for rank in ranking.ranks}
    assert (ranks["mem0g"].best, ranks["mem0g"].worst) == (6, 6)
    assert ranks["memOS"].best == 1
    assert all(rank.best <= rank.worst for rank in ranking.ranks)
    assert ranking.smallest_detectable is not None
    assert 0.02 < ranking.smallest_detectable < 0.15


def test_pairs_are_of_systems_in_families_and_in_time_of_those_with_times() -> None:
    matrix = first_dialogues(paper_matrix(), 25)
    two = Family(name="two", systems=("mem0g", "mem0"))
    english, _ = analyse(matrix, AnalysisPlan(families=(two,), atemporal=frozenset(["mem0g"])), resamples=99).pairs
    assert {(pair.first, pair.second) for pair in english.pairs} == {("mem0g", "mem0")}
    assert {pair.axis for pair in english.pairs} == {
        "overall",
        "scope",
        "group",
        "supergroup",
        "reasoning",
        "position",
        "position_single",
    }
    alone = AnalysisPlan(families=(Family(name="one", systems=("mem0",)),))
    refused = analyse(matrix, alone, resamples=99)
    assert {family.refused for family in refused.pairs} == {"fewer than two systems in families: nothing to compare"}
    assert {ranking.refused for ranking in refused.rankings} == {"fewer than two systems with scores: nothing to rank"}


def test_repeats_in_parts_of_a_score_give_what_their_means_give() -> None:
    """Every question asked twice: the accuracy is the mean, and so is every contrast."""
    rng = np.random.default_rng(5)
    rows = [
        ScoredRow(
            system=system,
            language="en",
            dialogue_id=f"{dialogue:02}",
            question_id=f"{question}",
            axes={"tier": "ab"[question % 2]},
            correct=bool(rng.random() < 0.5 + 0.1 * (system == "a")),
        )
        for system in ("a", "b")
        for dialogue in range(24)
        for question in range(8)
        for _ in range(2)
    ]
    matrix = matrix_of(rows)
    families = [Family(name="of a", systems=("a",)), Family(name="of b", systems=("b",))]
    analysis = analyse(matrix, paper_plan(matrix, families), resamples=99)
    (overall,) = [one for _, one in differences(analysis, Kind.GAP) if one.contrast.first.slice.axis == "overall"]
    means = [sum(bool(row.correct) for row in rows if row.system == system) / (len(rows) / 2) for system in ("a", "b")]
    assert overall.estimate == pytest.approx(means[0] - means[1], abs=1e-6)
    assert {block.kind for block in analysis.blocks} == {Kind.GAP, Kind.SLICES, Kind.GAP_SLICES}
    assert analysis.best[0].systems == ("a",)


def test_a_slice_of_one_question_has_a_score_and_no_error() -> None:
    matrix = first_dialogues(paper_matrix(), 25)
    slices, members = slices_of(
        [{"tier": "rare" if q == 3 else "usual"} for q in range(matrix.n_questions)], [None] * matrix.n_questions
    )
    matrix = replace(matrix, slices=slices, members=members)
    analysis = analyse(matrix, paper_plan(matrix, FAMILIES), resamples=99)
    rare = [one for one in analysis.scores if one.value == "rare"]
    assert {one.n for one in rare} == {1}
    assert {(one.standard_error, one.clustered_error, one.low) for one in rare} == {(None, None, None)}
    (one, *_) = [one for _, one in differences(analysis, Kind.GAP) if one.contrast.first.slice.value == "rare"]
    assert one.estimate is not None
    assert (one.clustered.low, one.dialogue_bootstrap.low, one.smallest_detectable) == (None, None, None)
