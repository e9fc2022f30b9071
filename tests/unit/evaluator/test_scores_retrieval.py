"""Recall, MRR and nDCG by hand-worked cases and by their laws; F1 as the paper's tool computes it."""

from itertools import permutations
from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memdock_evaluator.scores import RetrievalScores, retrieval_scores, token_f1

UNKNOWN = RetrievalScores(
    recall_sessions=None, recall_turns=None, mrr_sessions=None, mrr_turns=None, ndcg_sessions=None, ndcg_turns=None
)


def test_one_memory_a_turn_gives_the_textbook_values() -> None:
    memories = [[("s9", "a")], [("s1", "b")], [("s9", "c")], [("s2", "d")]]
    scores = retrieval_scores(memories, ["s1", "s2", "s3"], ["b", "d"], k=10)
    assert scores.recall_sessions == pytest.approx(2 / 3)
    assert scores.recall_turns == 1
    assert scores.mrr_sessions == scores.mrr_turns == pytest.approx(1 / 2)
    found = 1 / log2(3) + 1 / log2(5)
    assert scores.ndcg_sessions == pytest.approx(found / (1 + 1 / log2(3) + 1 / log2(4)))
    assert scores.ndcg_turns == pytest.approx(found / (1 + 1 / log2(3)))


def test_evidence_counts_once_however_often_it_comes_back() -> None:
    memories = [[("s1", "a")], [("s1", "a")], [("s1", "b")], [("s2", "c")]]
    scores = retrieval_scores(memories, ["s1", "s2"], ["a"], k=10)
    assert scores.recall_sessions == 1
    assert scores.ndcg_sessions == pytest.approx((1 + 1 / log2(5)) / (1 + 1 / log2(3)))
    assert scores.recall_turns == scores.ndcg_turns == 1


def test_a_memory_of_two_pieces_of_evidence_covers_both_and_stays_within_one() -> None:
    pair = [("s1", "a"), ("s1", "b")]
    first = retrieval_scores([pair, [("s2", "c")]], ["s1"], ["a", "b"], k=10)
    second = retrieval_scores([[("s2", "c")], pair], ["s1"], ["a", "b"], k=10)
    assert (first.recall_turns, first.ndcg_turns, first.mrr_turns) == (1, 1, 1)
    assert (second.recall_turns, second.mrr_turns) == (1, 1 / 2)
    assert second.ndcg_turns == pytest.approx(1 / log2(3))


def test_memories_past_k_do_not_count() -> None:
    memories = [[("s9", "x")]] * 2 + [[("s1", "a")]]
    assert retrieval_scores(memories, ["s1"], ["a"], k=2).recall_turns == 0
    assert retrieval_scores(memories, ["s1"], ["a"], k=3).recall_turns == 1


def test_with_more_evidence_than_k_the_ideal_is_k_long() -> None:
    scores = retrieval_scores([[("s1", "a")], [("s2", "b")]], ["s1", "s2", "s3"], ["a", "b", "c"], k=2)
    assert scores.recall_turns == pytest.approx(2 / 3)
    assert scores.ndcg_turns == 1


def test_nothing_found_is_zero_and_nothing_known_is_none() -> None:
    assert retrieval_scores([], ["s1"], ["a"], k=10).recall_sessions == 0
    assert retrieval_scores([[("s1", "a")]], [], [], k=10) == UNKNOWN
    assert retrieval_scores([[], []], ["s1"], ["a"], k=10) == UNKNOWN
    assert retrieval_scores([[("", "")]], ["s1"], ["a"], k=10) == UNKNOWN


def test_sources_that_name_sessions_alone_are_scored_by_session_alone() -> None:
    scores = retrieval_scores([[("s1", "")]], ["s1"], ["a"], k=10)
    assert scores.recall_sessions == 1
    assert scores.recall_turns is None


def test_a_memory_without_sources_takes_its_rank() -> None:
    assert retrieval_scores([[], [("s1", "a")]], ["s1"], ["a"], k=10).mrr_sessions == 1 / 2


def test_k_must_let_a_memory_in() -> None:
    with pytest.raises(ValueError, match="k is 0"):
        retrieval_scores([], ["s1"], ["a"], k=0)


TURNS = st.sampled_from("abcdefgh")


@given(
    memories=st.lists(st.frozensets(TURNS, min_size=1, max_size=3), max_size=6),
    evidence=st.frozensets(TURNS, min_size=1),
    k=st.integers(1, 7),
)
def test_every_score_lies_between_nothing_and_all(
    memories: list[frozenset[str]], evidence: frozenset[str], k: int
) -> None:
    sources = [[("s1", turn) for turn in sorted(memory)] for memory in memories]
    scores = retrieval_scores(sources, ["s1"], sorted(evidence), k)
    found = {turn for memory in memories[:k] for turn in memory} & evidence
    assert scores.recall_turns == pytest.approx(len(found) / len(evidence))
    assert scores.ndcg_turns is not None
    assert 0 <= scores.ndcg_turns <= 1 + 1e-12
    assert (scores.ndcg_turns > 0) == (scores.recall_turns > 0) == (scores.mrr_turns > 0)  # type: ignore[operator]


def test_the_best_order_of_the_same_memories_has_the_highest_ndcg() -> None:
    memories = [[("s1", "a")], [("s1", "x")], [("s1", "b")], [("s1", "y")]]
    ranked = {
        order: retrieval_scores([memories[i] for i in order], ["s1"], ["a", "b"], k=4).ndcg_turns or 0.0
        for order in permutations(range(4))
    }
    assert max(ranked.values()) == ranked[0, 2, 1, 3] == 1
    assert min(ranked.values()) == ranked[1, 3, 0, 2]


@pytest.mark.parametrize(
    ("answer", "references", "f1"),
    [
        ("the red boat", ["the red boat"], 1.0),
        ("the red boat", ["red boat"], 2 * 2 / 5),
        ("a a a b", ["a b"], 1.0),  # sets: a repeated word counts once
        ("Oslo.", ["Oslo"], 0.0),  # punctuation stays
        ("oslo", ["Oslo"], 0.0),  # case stays
        ("two\n\tlines", ["two lines"], 1.0),
        ("blue", ["red", "blue", "blue green"], 1.0),
        ("", ["red"], 0.0),
        ("red", [""], 0.0),
        ("", [""], 0.0),
        ("red", [], 0.0),
        ("в марте 2024", ["В марте 2024"], 2 * 2 / 6),
    ],
)
def test_f1_is_over_sets_of_words_as_written(answer: str, references: list[str], f1: float) -> None:
    assert token_f1(answer, references) == pytest.approx(f1)
