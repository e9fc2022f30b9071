"""The report of a run: one HTML file in each language, that needs no network.

Every sentence of a template stands in `t("...")` or `tn("...", "...", n)`, one of the code in `said("...")` or
`said_n(...)`; a name of data, and what was `said`, goes through `|word` (`language.py`, `words/sentence.py`);
then `python -m memdock_evaluator.words` brings `words/ru.po` up to date and lists what to translate there.
"""

from memdock_evaluator.report.writing import write_report

__all__ = ["write_report"]
