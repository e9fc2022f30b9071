"""The bill of rows that no run has made: each row's tokens once, by the models of the plan."""

from collections.abc import Iterable, Iterator, Mapping

from memdock.types import ModelUsage
from memdock_evaluator.cost.bill import ANSWER, JUDGE, MEMORY, Use, added
from memdock_evaluator.cost.prices import Prices
from memdock_evaluator.results.manifest import Cost, SystemTotals
from memdock_evaluator.results.plan import Plan
from memdock_evaluator.results.rows import Row


def bill_of_rows(plan: Plan, totals: Mapping[str, SystemTotals], rows: Iterable[Row], prices: Prices) -> Cost:
    """As `bill` of the parts that would have led to these rows."""
    return added((*_of_systems(totals), *(use for row in rows for use in _of_row(plan, row))), prices)


def _of_systems(totals: Mapping[str, SystemTotals]) -> Iterator[Use]:
    return ((system, f"{MEMORY}: {each.purpose}", each) for system, total in totals.items() for each in total.usage)


def _of_row(plan: Plan, row: Row) -> Iterator[Use]:
    primaries = {code: each.model.model for each in plan.judges.values() for code in each.primary_for}
    yield _use(row, ANSWER, plan.answerer.model, row.answer_input_tokens, row.answer_output_tokens)
    primary = primaries.get(row.language, plan.judge.model)
    yield _use(row, JUDGE, primary, row.judge_input_tokens, row.judge_output_tokens)
    for name, verdict in row.verdicts.items():
        yield _use(row, JUDGE, plan.judges[name].model.model, verdict.input_tokens, verdict.output_tokens)


def _use(row: Row, purpose: str, model: str, input_tokens: int, output_tokens: int) -> Use:
    usage = ModelUsage(model=model, purpose=purpose, input_tokens=input_tokens, output_tokens=output_tokens)
    return row.system, purpose, usage
