"""The budget of a run that goes on: what its earlier attempts have paid for is counted first."""

from collections.abc import Iterable

from memdock_evaluator.cost.bill import bill
from memdock_evaluator.cost.budget import Budget
from memdock_evaluator.cost.prices import PriceError, Prices
from memdock_evaluator.results.folder import Folder
from memdock_evaluator.results.manifest import Cost
from memdock_evaluator.results.parts import Parts, Unit
from memdock_evaluator.results.plan import Plan
from memdock_evaluator.results.records import ANSWER, CLOSE, INGEST, JUDGE


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


def left_out(plan: Plan, prices: Prices) -> list[str]:
    """Systems with the models inside them that the budget cannot count, as "rag (e5)"."""
    unknown = {
        system.name: sorted({model.name for model in system.models if prices.of(model.name) is None})
        for system in plan.systems
        if plan.reused is None and not system.baseline
    }
    return [f"{system} ({', '.join(names)})" for system, names in unknown.items() if names]


def paid_replies_of(folder: Folder, units: Iterable[Unit]) -> set[str]:
    """The keys of the cache's replies that the parts in `folder` have paid for; raises `PartError`."""
    parts = [Parts(folder, unit) for unit in units]
    answers = {key for each in parts for record in each.read(ANSWER) for key in record.paid}
    return answers | {key for each in parts for record in each.read(JUDGE) for key in record.paid}


def budget_of(limit: float, prices: Prices, plan: Plan, folder: Folder, units: Iterable[Unit]) -> Budget:
    """With all that the parts in `folder` have cost; raises `PartError`."""
    units = list(units)
    budget = Budget(limit=limit, prices=prices)
    for unit in units if plan.reused is None else ():
        parts = Parts(folder, unit)
        for space, end in zip(parts.newest(INGEST), parts.newest(CLOSE), strict=False):
            if not end.reset:
                budget.pay_space(unit.system, space.space_id, end.usage)
    budget.spent = bill(plan, folder, units, prices).money
    return budget


def on_the_bill(stopped: str, budget: Budget, cost: Cost) -> str:
    """The sentence on a spent budget with what the bill says when all has ended, calls that were under way included.

    What spaces that are still open have cost gets on the bill as they are given back: it is told apart.
    """
    of_spaces = f"{budget.spent - cost.money:.4f}"
    still_open = "" if float(of_spaces) <= 0 else f", and {of_spaces} by spaces that are still open"
    return f"{stopped} ({cost.money:.4f} {cost.currency}{still_open})"
