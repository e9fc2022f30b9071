"""A table before it is written in any form."""

from dataclasses import dataclass
from math import floor, log10
from typing import TypeAlias

from memdock_evaluator.words.counting import half_up

Cell: TypeAlias = str | int | float | bool | None

DIGITS = 2
"""Behind the point of a figure, in every form: what one form shows the others show, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Cells in rows under `columns`, whose names differ; `None` is "cannot be said".

    Shares and differences are in per cent and points, times in milliseconds. `notes` must stand beside it.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError(f"table {self.name}: every row must have {len(self.columns)} cells")
        if len(set(self.columns)) < len(self.columns):
            raise ValueError(f"table {self.name}: two columns have one name, of which JSON would keep one")


def percent(share: float | None) -> float | None:
    """A share of 0 to 1 (or a difference of two) in per cent."""
    return None if share is None else rounded(100 * share)


def rounded(value: float) -> float:
    """A figure as it is written; never a zero with a sign."""
    return float(half_up(value, f".{DIGITS}f")) + 0.0


def amount(money: float | None) -> str | None:
    """Money to three digits that count and at least to the hundredth: "12.40", "0.000413"."""
    if money is None:
        return None
    digits = max(2, 2 - floor(log10(abs(money)))) if money else 2
    return f"{money:.{digits}f}"


def coefficient(value: float | None) -> str | None:
    """An agreement of at most 1, to three digits."""
    return None if value is None else f"{value:.3f}"
