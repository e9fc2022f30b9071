"""A run's rows put together: `summary.json` and the table in the terminal."""

from memdock_evaluator.summary.build import summarise, to_json, write_summary
from memdock_evaluator.summary.shape import Summary
from memdock_evaluator.summary.source import RunFilesError
from memdock_evaluator.summary.terminal import print_summary

__all__ = ["RunFilesError", "Summary", "print_summary", "summarise", "to_json", "write_summary"]
