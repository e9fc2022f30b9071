"""Accuracy by method and semantic type, as the paper's Figures 15 and 16 draw it."""

from memdock_evaluator.summary.comparisons import Comparisons
from memdock_evaluator.summary.heat import heat_maps
from memdock_evaluator.summary.shape import Summary
from memdock_evaluator.tables.shape import Table, percent


def semantic_table(summary: Summary, comparisons: Comparisons) -> Table:
    """A row a family, language, type and method."""
    return Table(
        name="semantic",
        title="Accuracy by method and semantic type",
        columns=("family", "language", "method", "group", "type", "questions", "few", "accuracy"),
        rows=tuple(
            (
                *(heat.family, heat.language, row.system, column.group),
                *(column.value, cell.n, cell.few, percent(cell.share)),
            )
            for heat in heat_maps(summary, comparisons.families)
            for row in heat.rows
            for column, cell in zip(heat.columns, row.cells, strict=True)
        ),
        notes=tuple(caveat["text"] for caveat in summary["caveats"] if caveat["about"] in ("answers", "slices")),
    )
