"""The budget of a run that goes on: what its earlier attempts have paid for is counted first."""

from collections.abc import Iterable

from memdock_evaluator.cost.bill import judge_models
from memdock_evaluator.cost.budget import Budget
from memdock_evaluator.cost.prices import PriceError, Prices
from memdock_evaluator.results.folder import Folder
from memdock_evaluator.results.manifest import Plan
from memdock_evaluator.results.parts import Parts, Unit
from memdock_evaluator.results.records import ANSWER, JUDGE


def models_of(plan: Plan) -> set[str]:
    """The models that the run pays for itself; offline rules have no name."""
    answers = plan.reused is not None and plan.reused.through == ANSWER.name
    named = {plan.answerer.model} if not answers else set()
    named |= {each.model.model for each in plan.judges.values()} if plan.judges else {plan.judge.model}
    return named - {""}


def check_prices(plan: Plan, prices: Prices) -> None:
    """Raises `PriceError` where a budget could not be kept."""
    if unknown := sorted(name for name in models_of(plan) if prices.of(name) is None):
        raise PriceError(f"a budget needs the price of every model: {', '.join(unknown)} has none (--prices FILE)")


def budget_of(limit: float, prices: Prices, plan: Plan, folder: Folder, units: Iterable[Unit]) -> Budget:
    """With all that the parts in `folder` have cost."""
    known = {name: price for name in models_of(plan) if (price := prices.of(name)) is not None}
    budget = Budget(limit=limit, currency=prices.currency, prices=known)
    primary = judge_models(plan)
    pays_answers = plan.reused is None or plan.reused.through != ANSWER.name
    for unit in units:
        parts = Parts(folder, unit)
        for answered in parts.read(ANSWER) if pays_answers else ():
            budget.pay(plan.answerer.model, answered.input_tokens, answered.output_tokens)
        for judged in parts.read(JUDGE):
            budget.pay(primary[unit.language], judged.input_tokens, judged.output_tokens)
            for name, verdict in judged.verdicts.items():
                budget.pay(plan.judges[name].model.model, verdict.input_tokens, verdict.output_tokens)
    return budget
