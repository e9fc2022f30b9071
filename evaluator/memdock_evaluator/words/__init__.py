"""Numbers and sentences for people: the terminal's in English, the report's in its reader's language."""

from memdock_evaluator.words.counting import counted, cut

__all__ = ["counted", "cut"]
