"""Accuracy beside the context that it was reached with."""

from memdock_evaluator.summary.context import context_points
from memdock_evaluator.summary.shape import Summary
from memdock_evaluator.tables.shape import Table, percent, rounded


def context_table(summary: Summary) -> Table:
    """A row a system, k and language."""
    return Table(
        name="context",
        title="Accuracy against context tokens",
        columns=("system", "k", "language", "context tokens, mean", "accuracy", "95% low", "95% high"),
        rows=tuple(
            (
                *(point.series, point.k),
                *(point.language, rounded(point.tokens)),
                *(percent(point.accuracy), percent(point.low), percent(point.high)),
            )
            for point in context_points(summary)
        ),
        notes=("Tokens are a quarter of the bytes of UTF-8; intervals are by dialogue.",),
    )
