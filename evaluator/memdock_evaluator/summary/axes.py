"""The order in which axes and their slices are shown: the paper's where the axis is RUMBA's, else by name."""

from collections.abc import Iterable, Mapping

from memdock_evaluator.dataset import taxonomy
from memdock_evaluator.words.names import AXES, SLICES

VALUES: Mapping[str, tuple[str, ...]] = {
    "group": tuple(taxonomy.GROUPS),
    "semantic": taxonomy.TYPES,
    "scope": taxonomy.SCOPES,
    "temporality": taxonomy.TEMPORALITIES,
    "scope_temporality": tuple(f"{scope}+{time}" for time in taxonomy.TEMPORALITIES for scope in taxonomy.SCOPES),
    "temporal_expression": taxonomy.EXPRESSIONS,
}
"""The axes of RUMBA that every file of its kind should fill, and their values in the paper's order."""


def title(axis: str) -> str:
    """An axis as a heading; a tag of one's own "user_tier" becomes "User tier"."""
    return AXES.get(axis) or axis.replace("_", " ").capitalize()


def slice_name(axis: str, value: str) -> str:
    """A slice of an axis as a page shows it, itself where it has no name of ours."""
    return SLICES.get(axis, {}).get(value, value)


def in_order(axes: Iterable[str]) -> list[str]:
    """The axes of RUMBA first, as in `taxonomy.AXES`, then the others by name."""
    return _ordered(axes, taxonomy.AXES)


def values_in_order(axis: str, values: Iterable[str]) -> list[str]:
    """The slices of an axis, those of RUMBA first."""
    return _ordered(values, VALUES.get(axis, ()))


def _ordered(words: Iterable[str], known: tuple[str, ...]) -> list[str]:
    return sorted(words, key=lambda word: (known.index(word) if word in known else len(known), word))
