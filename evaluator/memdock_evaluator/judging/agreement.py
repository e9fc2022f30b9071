"""How far judges, or people, agree: one alpha over all of them, one kappa for each two."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

import numpy as np

from memdock_evaluator.answer.judge import is_right
from memdock_evaluator.statistics.agreement import NO_LABEL, binary_kappa, nominal_alpha

Labels: TypeAlias = Sequence[int | None]
"""One judge's labels, `None` where it gave none; those of several judges are of the same things in the same order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two judges on the `both` things that both labelled: Cohen's kappa of right and wrong, `None` where undefined.

    `same` counts the things of one and the same label.
    """

    first: str
    second: str
    both: int
    same: int
    kappa: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Krippendorff's nominal alpha over the labels of all, `None` where undefined, and the pairs."""

    alpha: float | None
    pairs: tuple[Pair, ...]


def agreement(labels: Mapping[str, Labels]) -> Agreement:
    """Of two judges or more, by name; with fewer there is nothing to compare."""
    alpha = None
    if len(labels) > 1:
        alpha = nominal_alpha(
            np.array([[NO_LABEL if one is None else one for one in each] for each in labels.values()])
        )
    return Agreement(alpha=_rounded(alpha), pairs=tuple(_pair(labels, *two) for two in combinations(labels, 2)))


def binary(labels: Labels) -> list[int]:
    """1 right, 0 wrong, `NO_LABEL`."""
    right = map(is_right, labels)
    return [NO_LABEL if one is None else int(one) for one in right]


def _pair(labels: Mapping[str, Labels], first: str, second: str) -> Pair:
    both = [(one, other) for one, other in zip(labels[first], labels[second], strict=True) if None not in (one, other)]
    kappa = binary_kappa(np.array(binary(labels[first])), np.array(binary(labels[second])))
    return Pair(
        first=first,
        second=second,
        both=len(both),
        same=sum(one == other for one, other in both),
        kappa=_rounded(kappa),
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
