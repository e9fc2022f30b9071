"""The report of a run: one HTML file that needs no network."""

from memdock_evaluator.report.writing import write_report

__all__ = ["write_report"]
