"""What the page's tables show, cell by cell, so that the templates only place it."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from memdock_evaluator.report.explorer import RESULTS, result
from memdock_evaluator.results.rows import Row, Stage
from memdock_evaluator.summary import recall
from memdock_evaluator.summary.axes import in_order, title, values_in_order
from memdock_evaluator.summary.caveats import FEW_QUESTIONS
from memdock_evaluator.summary.ranking import each, languages_of, systems_in_order
from memdock_evaluator.summary.shape import Figures, Summary

RETRIEVAL_MEASURES = ("mrr", "recall_at_k")
"""The measures of the slices' table that need evidence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A system in a language; `baseline` columns are marked."""

    system: str
    language: str
    baseline: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceRow:
    """A slice; `cells` are in the order of the columns, `None` where the system was not asked any of it.

    `n_questions` are asked; `n_retrieval` of them have evidence to be found, which retrieval figures are means over.
    """

    value: str
    n_questions: int
    n_retrieval: int
    cells: tuple[Figures | None, ...]

    def n(self, measure: str) -> int:
        """How many questions the figures of `measure` are over."""
        return self.n_retrieval if measure in RETRIEVAL_MEASURES else self.n_questions

    def few(self, measure: str) -> bool:
        """Whether those are too few to read anything from."""
        return self.n(measure) < FEW_QUESTIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisRows:
    """The slices of one axis under its heading."""

    axis: str
    title: str
    rows: tuple[SliceRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceTable:
    """Slices down, systems across, a system's languages side by side."""

    columns: tuple[Column, ...]
    axes: tuple[AxisRows, ...]

    @property
    def systems(self) -> list[tuple[Column, int]]:
        """The first column of each system, and how many it has."""
        groups = [list(group) for _, group in groupby(self.columns, key=lambda column: column.system)]
        return [(group[0], len(group)) for group in groups]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultBar:
    """What became of a system's questions in a language: (result, count) in the order of `RESULTS`, zeros left out."""

    system: str
    language: str
    parts: tuple[tuple[str, int], ...]

    @property
    def n(self) -> int:
        """All questions asked."""
        return sum(count for _, count in self.parts)


def slice_table(summary: Summary) -> SliceTable:
    """The table of all slices of all systems."""
    columns = _columns(summary)
    slices = [summary["systems"][column.system]["languages"][column.language]["slices"] for column in columns]
    axes = in_order({axis for found in slices for axis in found})
    return SliceTable(
        columns=columns, axes=tuple(_axis_rows(axis, [found.get(axis, {}) for found in slices]) for axis in axes)
    )


def _columns(summary: Summary) -> tuple[Column, ...]:
    names = {
        name: None for language in languages_of(summary["systems"]) for name, _ in systems_in_order(summary, language)
    }
    return tuple(
        Column(system=name, language=language, baseline=summary["systems"][name]["baseline"])
        for name in names
        for language in sorted(summary["systems"][name]["languages"])
    )


def _axis_rows(axis: str, columns: Sequence[dict[str, Figures]]) -> AxisRows:
    values = values_in_order(axis, {value for column in columns for value in column})
    return AxisRows(axis=axis, title=title(axis), rows=tuple(_slice_row(value, columns) for value in values))


def _slice_row(value: str, columns: Sequence[dict[str, Figures]]) -> SliceRow:
    cells = tuple(column.get(value) for column in columns)
    asked = [cell for cell in cells if cell]
    return SliceRow(
        value=value,
        n_questions=max(cell["n_questions"] for cell in asked),
        n_retrieval=max(cell["n_retrieval"] for cell in asked),
        cells=cells,
    )


def billed(summary: Summary) -> list[str]:
    """The names on the bill in the order of `slice_table`; what all k of a system share comes first."""
    names: dict[str, None] = {}
    for column in _columns(summary):
        names |= {summary["systems"][column.system]["system"]: None, column.system: None}
    cost = summary["cost"]
    return [name for name in names if cost and name in cost["systems"]]


def result_bars(summary: Summary, rows: Iterable[Row]) -> list[ResultBar]:
    """One bar for each column of `slice_table`, counted from the rows themselves."""
    counts = Counter((row.system, row.language, result(row)) for row in rows)
    return [
        ResultBar(
            system=column.system,
            language=column.language,
            parts=tuple((name, count) for name in RESULTS if (count := counts[column.system, column.language, name])),
        )
        for column in _columns(summary)
    ]


def cutoffs(summary: Summary) -> list[str]:
    """The numbers of memories at which recall is told, as keys of `recall_at`."""
    return recall.cutoffs(found for _, _, found in each(summary["systems"]))


def stages(summary: Summary) -> list[str]:
    """The stages that were timed anywhere, in the order of a run; a stage's inner steps follow it."""
    found = {
        stage
        for system in summary["systems"].values()
        for language in system["languages"].values()
        for stage in language["latency_ms"]
    }
    order = [stage.value for stage in Stage]
    return sorted(found, key=lambda stage: (order.index(stage.split("/")[0]), stage))
