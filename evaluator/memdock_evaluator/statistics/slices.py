"""Slices of the questions, as data: the axes, those that the paper makes out of others, and the pairs it compares."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from types import MappingProxyType

import numpy as np

from memdock_evaluator.dataset.taxonomy import ABSTENTION, EXTRACTION, GENERAL, TEMPORAL
from memdock_evaluator.statistics.arrays import Bools


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Slice:
    """The questions that have `value` on `axis`."""

    axis: str
    value: str


OVERALL = Slice(axis="overall", value="all")

TIME_AXES = frozenset({"temporality", "scope_temporality", "temporal_expression"})
"""A system without times leaves every slice of these, the atemporal ones too (Appendix F; Table 11's 60.55 is a mean of
five). It stays in General and in Temporal Reasoning."""

REASONING = "reasoning"
DERIVED: Mapping[str, Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "supergroup": {EXTRACTION: (EXTRACTION,), REASONING: (GENERAL, TEMPORAL), ABSTENTION: (ABSTENTION,)},
        REASONING: {GENERAL: (GENERAL,), TEMPORAL: (TEMPORAL,)},
    }
)
"""Axes made of `group` (Appendix F.7, F.8): axis -> value -> the groups that it unites."""

EDGE, MIDDLE = "edge", "middle"
POSITION, POSITION_SINGLE = "position", "position_single"
"""Where the evidence lies (Appendix F.10), of all questions and of single-session ones alone."""

PAIRS: Mapping[str, tuple[tuple[str, str], ...]] = MappingProxyType(
    {
        "scope": (("single", "multi"),),
        "temporality": (("atemporal", "temporal"),),
        "scope_temporality": (
            ("single+atemporal", "multi+atemporal"),
            ("single+temporal", "multi+temporal"),
            ("single+atemporal", "single+temporal"),
            ("multi+atemporal", "multi+temporal"),
        ),
        "temporal_expression": (("explicit", "implicit"), ("none", "explicit"), ("none", "implicit")),
        "supergroup": ((EXTRACTION, REASONING), (EXTRACTION, ABSTENTION), (REASONING, ABSTENTION)),
        REASONING: ((GENERAL, TEMPORAL),),
        POSITION: ((EDGE, MIDDLE),),
        POSITION_SINGLE: ((EDGE, MIDDLE),),
        "group": (),
        "semantic": (),
        "subcategory": (),
        "subsubcategory": (),
    }
)
"""Which slices of an axis are compared, first minus second: Tables 12, 13, 15, 17, 20, 21, 22 and 23. The semantic
types are shown and not tested (F.9)."""

PAIRED_AT_MOST = 4
"""On an axis of one's own every value is compared with every other, unless there are more than this."""


def pairs_of(axis: str, values: Sequence[str]) -> list[tuple[Slice, Slice]]:
    """The slices of an axis that are compared, of those that the questions have."""
    own = combinations(values, 2) if 1 < len(values) <= PAIRED_AT_MOST else ()
    return [
        (Slice(axis=axis, value=first), Slice(axis=axis, value=second))
        for first, second in PAIRS.get(axis, own)
        if first in values and second in values
    ]


def relative_position(evidence: Sequence[int], n_sessions: int) -> float | None:
    """Where in a dialogue a question's evidence lies, 0 the beginning and 1 the end; `None` without evidence.

    The mean over the evidence sessions (numbers from 1) of the middle of each, (number - 1/2) / sessions.
    """
    if not evidence:
        return None
    if min(evidence) < 1 or max(evidence) > n_sessions:
        raise ValueError(f"evidence sessions {list(evidence)} must lie between 1 and {n_sessions}")
    return float(Fraction(2 * sum(evidence) - len(evidence), 2 * n_sessions * len(evidence)))


def position_of(relative: float) -> str:
    """The outer thirds are the edge, the middle third with its ends is the middle (our reading of F.10)."""
    return MIDDLE if float(Fraction(1, 3)) <= relative <= float(Fraction(2, 3)) else EDGE


def slices_of(axes: Sequence[Mapping[str, str]], positions: Sequence[float | None]) -> tuple[tuple[Slice, ...], Bools]:
    """All slices of some questions, and slices x questions: who is in which.

    `axes` holds each question's own, `positions` where its evidence lies. First all questions, then axis by axis.
    """
    tagged = [dict(_all_axes(own, position)) for own, position in zip(axes, positions, strict=True)]
    names = sorted({Slice(axis=axis, value=value) for own in tagged for axis, value in own.items()})
    slices = (OVERALL, *names)
    members = np.array(
        [[one == OVERALL or own.get(one.axis) == one.value for own in tagged] for one in slices], dtype=np.bool_
    )
    return slices, members


def _all_axes(own: Mapping[str, str], position: float | None) -> dict[str, str]:
    derived = {
        axis: value
        for axis, values in DERIVED.items()
        for value, groups in values.items()
        if own.get("group") in groups
    }
    if position is not None:
        derived[POSITION] = position_of(position)
        if own.get("scope") == "single":
            derived[POSITION_SINGLE] = derived[POSITION]
    return {**own, **derived}
