"""The report of a run: one HTML file that needs no network."""

from memdock_evaluator.report.report import write_report

__all__ = ["write_report"]
