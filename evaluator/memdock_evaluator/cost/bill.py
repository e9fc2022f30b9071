"""What a run has cost: tokens and money of the answerer, the judges, and the memory systems' own calls."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TypeAlias

from memdock.types import ModelUsage
from memdock_evaluator.cost.prices import Prices, money
from memdock_evaluator.results.folder import Folder
from memdock_evaluator.results.manifest import Cost, CostLine
from memdock_evaluator.results.parts import Parts, Unit
from memdock_evaluator.results.plan import Plan
from memdock_evaluator.results.records import ANSWER as ANSWERS
from memdock_evaluator.results.records import CLOSE, spent_on
from memdock_evaluator.results.records import JUDGE as VERDICTS
from memdock_evaluator.words import counted

ANSWER, JUDGE, MEMORY = "answer", "judge", "memory"
_FROM_CACHE = ": from cache"

Use: TypeAlias = tuple[str, str, ModelUsage]
"""A system, a purpose as the bill has it, and tokens of a model."""


def from_cache(purpose: str) -> str:
    """The purpose of tokens that were not asked for, and cost nothing."""
    return purpose + _FROM_CACHE


def bill(plan: Plan, folder: Folder, units: Iterable[Unit], prices: Prices) -> Cost:
    """A line for each system, purpose and model that was asked, of all attempts; raises `PartError`.

    What the table does not know has no money, never 0. What was taken over from another run is on that run's bill.
    """
    return added((use for unit in units for use in used(plan, Parts(folder, unit))), prices)


def added(uses: Iterable[Use], prices: Prices) -> Cost:
    """The bill of all these uses."""
    tokens: Counter[tuple[str, str, str, bool]] = Counter()
    estimated: set[tuple[str, str, str]] = set()
    for system, purpose, usage in uses:
        tokens[system, purpose, usage.model, False] += usage.input_tokens
        tokens[system, purpose, usage.model, True] += usage.output_tokens
        if usage.estimated:
            estimated.add((system, purpose, usage.model))
    places = sorted({place[:3] for place, count in tokens.items() if count})
    lines = [
        CostLine(
            system=system,
            purpose=purpose,
            model=model,
            input_tokens=tokens[system, purpose, model, False],
            output_tokens=tokens[system, purpose, model, True],
            estimated=(system, purpose, model) in estimated,
        )
        for system, purpose, model in places
    ]
    return priced(lines, prices)


def used(plan: Plan, parts: Parts) -> Iterator[Use]:
    """What each attempt at a unit used; raises `PartError`."""
    system = parts.unit.system
    reused = "" if plan.reused is None else plan.reused.through
    if reused != ANSWERS.name:
        yield from ((system, each.purpose, each) for record in parts.read(ANSWERS) for each in record.usage)
    yield from ((system, each.purpose, each) for record in parts.read(VERDICTS) for each in record.usage)
    if not reused:
        yield from ((system, f"{MEMORY}: {each.purpose}", each) for each in spent_on(parts.read(CLOSE)))


def priced(lines: Iterable[CostLine], prices: Prices) -> Cost:
    """The lines with their money, and the sum of those that have any."""
    found = [replace(line, money=_money(line, prices)) for line in lines]
    used_prices = {line.model: price for line in found if (price := prices.of(line.model)) is not None}
    return Cost(
        date=prices.date,
        currency=prices.currency,
        prices=dict(sorted(used_prices.items())),
        lines=tuple(found),
        money=round(sum(line.money for line in found if line.money is not None), 6),
        unpriced=tuple(sorted({line.model for line in found if line.money is None})),
    )


def told(cost: Cost) -> list[str]:
    """The bill in sentences; none where no model was asked."""
    sums: defaultdict[str, float] = defaultdict(float)
    for line in cost.lines:
        if line.money is not None and not is_cached(line):
            sums[line.purpose.partition(":")[0]] += line.money
    parts = ", ".join(f"{purpose} {value:.4f}" for purpose, value in sorted(sums.items()))
    lines = [f"cost: {cost.money:.4f} {cost.currency} ({parts}), by list prices of {cost.date}"] if sums else []
    if cost.unpriced:
        missing = "not in it" if sums else "cost unknown"
        models = ", ".join(cost.unpriced)
        lines.append(f"{missing}, for the price table does not know them: {models} (--prices FILE)")
    if cached := sum(line.input_tokens + line.output_tokens for line in cost.lines if is_cached(line)):
        lines.append(f"from cache, without cost: {counted(cached, 'token')}")
    return lines


def is_cached(line: CostLine) -> bool:
    """Whether the line tells of replies that a cache gave."""
    return line.purpose.endswith(_FROM_CACHE)


def _money(line: CostLine, prices: Prices) -> float | None:
    if is_cached(line):
        return 0.0
    price = prices.of(line.model)
    return None if price is None else round(money(price, line.input_tokens, line.output_tokens), 6)
