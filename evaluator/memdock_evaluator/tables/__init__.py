"""The figures of a run as tables to cite: Markdown, CSV, JSON and LaTeX of the same cells."""

from memdock_evaluator.tables.writing import write_tables

__all__ = ["write_tables"]
