"""The judges of a run, as its rows hold them."""

from collections.abc import Mapping, Sequence

from memdock_evaluator.judging.agreement import Agreement, Labels, agreement
from memdock_evaluator.results.plan import Plan
from memdock_evaluator.results.rows import Row


def labels_of_judges(rows: Sequence[Row], plan: Plan, language: str) -> Mapping[str, Labels]:
    """The labels that each judge of a language gave, the primary's first, over the rows that were judged."""
    judged = [row for row in rows if row.language == language and row.answer is not None and row.verdicts]
    primary = next((name for name, each in plan.judges.items() if language in each.primary_for), "")
    names = dict.fromkeys(name for row in judged for name in row.verdicts)
    return {primary: [row.verdict for row in judged]} | {
        name: [row.verdicts[name].label if name in row.verdicts else None for row in judged] for name in names
    }


def agreement_by_language(rows: Sequence[Row], plan: Plan) -> dict[str, Agreement]:
    """Of the languages that have more than one judge, over the answers of all systems."""
    languages = sorted({row.language for row in rows if row.verdicts})
    return {language: agreement(labels_of_judges(rows, plan, language)) for language in languages}
