"""What one question's retrieval and answer are worth: pure functions of what came back and what is right."""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from math import log2
from typing import TypeAlias

Source: TypeAlias = tuple[str, str]
"""Where a memory comes from: (session id, turn id), either "" where the system does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalScores:
    """How well the first k memories cover a question's evidence, 0 to 1, by session and by turn.

    `None` is "cannot be said" (evidence unknown, or memories that do not say where they come from) and never a zero.
    """

    recall_sessions: float | None
    recall_turns: float | None
    mrr_sessions: float | None
    mrr_turns: float | None
    ndcg_sessions: float | None
    ndcg_turns: float | None


def retrieval_scores(
    memories: Sequence[Sequence[Source]], evidence_sessions: Sequence[str], evidence_turns: Sequence[str], k: int
) -> RetrievalScores:
    """Score `memories`, best first, each the sources of one memory; those past the first `k` do not count.

    No memories at all is a score of 0. Memories of which not one names a session (a turn) give `None` by session (by
    turn). In a mixed answer a memory without sources takes its rank and covers nothing. Raises `ValueError` for k < 1.
    """
    if k < 1:
        raise ValueError(f"k is {k}: at least one memory must count")
    by_session = [{session for session, _ in sources if session} for sources in memories]
    by_turn = [{turn for _, turn in sources if turn} for sources in memories]
    recall_sessions, mrr_sessions, ndcg_sessions = _score(by_session, set(evidence_sessions), k)
    recall_turns, mrr_turns, ndcg_turns = _score(by_turn, set(evidence_turns), k)
    return RetrievalScores(
        recall_sessions=recall_sessions,
        recall_turns=recall_turns,
        mrr_sessions=mrr_sessions,
        mrr_turns=mrr_turns,
        ndcg_sessions=ndcg_sessions,
        ndcg_turns=ndcg_turns,
    )


def _score(
    memories: Sequence[Set[str]], evidence: Set[str], k: int
) -> tuple[float, float, float] | tuple[None, None, None]:
    if not evidence or (memories and not any(memories)):
        return None, None, None
    gains = _gains(memories[:k], evidence)
    return sum(gains) / len(evidence), _reciprocal_rank(gains), _ndcg(gains, len(evidence), k)


def _gains(memories: Sequence[Set[str]], evidence: Set[str]) -> list[int]:
    """How many pieces of evidence each memory is the first to cover: a piece counts once, however often it returns."""
    gains = []
    missing = set(evidence)
    for covered in memories:
        gains.append(len(missing & covered))
        missing -= covered
    return gains


def _reciprocal_rank(gains: Sequence[int]) -> float:
    """1 / rank of the first memory with evidence, 0 where there is none."""
    return next((1 / rank for rank, gain in enumerate(gains, start=1) if gain), 0.0)


def _ndcg(gains: Sequence[int], n_evidence: int, k: int) -> float:
    """nDCG@k (Järvelin and Kekäläinen 2002): the sum of gain / log2(rank + 1), over that of the best order.

    The best order has the same gains, greatest first, then every missed piece as a memory of its own, k in all: for
    memories of one piece each that is the ideal of binary gains over min(k, evidence); a memory of two pieces cannot
    push the score above 1.
    """
    missed = n_evidence - sum(gains)
    best = sorted([*gains, *[1] * missed], reverse=True)
    return _discounted(gains) / _discounted(best[:k])


def _discounted(gains: Sequence[int]) -> float:
    return sum(gain / log2(rank + 1) for rank, gain in enumerate(gains, start=1))


def token_f1(answer: str, references: Sequence[str]) -> float:
    """F1 of the sets of words, best over `references`, 0 to 1: Lighteval's `F1_score` with no normalisation.

    Words are what white space parts: case and punctuation count ("Oslo." is not "Oslo"), a repeated word does not. No
    references, or nothing in common, is 0. For a test set, the mean over its questions.
    """
    return max((_set_f1(set(answer.split()), set(reference.split())) for reference in references), default=0.0)


def _set_f1(answer: Set[str], reference: Set[str]) -> float:
    """2 P R / (P + R), which is twice the common words over the sum of both sizes."""
    common = len(answer & reference)
    return 2 * common / (len(answer) + len(reference)) if common else 0.0
