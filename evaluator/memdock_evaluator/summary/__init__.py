"""A run's rows put together: `summary.json` and the table in the terminal."""

from memdock_evaluator.summary.build import summarise, to_json
from memdock_evaluator.summary.shape import Summary
from memdock_evaluator.summary.terminal import print_summary

__all__ = ["Summary", "print_summary", "summarise", "to_json"]
