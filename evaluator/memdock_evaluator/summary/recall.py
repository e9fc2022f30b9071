"""Recall over k, of systems that need not have been asked for the same k."""

from collections.abc import Iterable
from typing import Literal

from memdock_evaluator.summary.shape import LanguageSummary


def cutoffs(systems: Iterable[LanguageSummary]) -> list[str]:
    """The numbers of memories at which any of them has its recall told, ascending, as keys of `recall_at`."""
    return sorted({cutoff for found in systems for cutoff in found["recall_at"]}, key=int)


def recall(found: LanguageSummary, cutoff: str, by: Literal["sessions", "turns"]) -> float | None:
    """The recall of a system among so many memories; `None` also where it was asked for fewer."""
    at = found["recall_at"].get(cutoff)
    return None if at is None else at[by]
