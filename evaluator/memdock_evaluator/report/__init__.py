"""The report of a run: one HTML file in each language, that needs no network.

Every sentence stands in `t("...")` or `tn("...", "...", n)`, every name of data goes through `|word` (`language.py`);
then `python -m memdock_evaluator.words` brings `words/ru.po` up to date and lists what to translate there.
"""

from memdock_evaluator.report.writing import write_report

__all__ = ["write_report"]
