"""What a run has cost: tokens and money of the answerer, the judges, and the memory systems' own calls."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from memdock_evaluator.cost.prices import Prices, money
from memdock_evaluator.results.manifest import Cost, CostLine, Plan, SystemTotals
from memdock_evaluator.results.rows import Row

ANSWER, JUDGE, MEMORY = "answer", "judge", "memory"


def bill(plan: Plan, totals: Mapping[str, SystemTotals], rows: Iterable[Row], prices: Prices) -> Cost:
    """A line for each system, purpose and model that was asked. What the table does not know has no money, never 0."""
    tokens: Counter[tuple[str, str, str, bool]] = Counter()
    for row in rows:
        for purpose, model, used in _of_row(plan, row):
            for is_output, count in enumerate(used):
                tokens[row.system, purpose, model, bool(is_output)] += count
    for system, total in totals.items():
        for usage in total.usage:
            purpose = f"{MEMORY}: {usage.purpose}"
            tokens[system, purpose, usage.model, False] += usage.input_tokens
            tokens[system, purpose, usage.model, True] += usage.output_tokens
    places = sorted({place[:3] for place, count in tokens.items() if count})
    lines = [
        CostLine(
            system=system,
            purpose=purpose,
            model=model,
            input_tokens=tokens[system, purpose, model, False],
            output_tokens=tokens[system, purpose, model, True],
        )
        for system, purpose, model in places
    ]
    return priced(lines, prices)


def priced(lines: Iterable[CostLine], prices: Prices) -> Cost:
    """The lines with their money, and the sum of those that have any."""
    found = [replace(line, money=_money(line, prices)) for line in lines]
    used = {line.model: price for line in found if (price := prices.of(line.model)) is not None}
    return Cost(
        date=prices.date,
        currency=prices.currency,
        prices=dict(sorted(used.items())),
        lines=tuple(found),
        money=round(sum(line.money for line in found if line.money is not None), 6),
        unpriced=tuple(sorted({line.model for line in found if line.money is None})),
    )


def judge_models(plan: Plan) -> Mapping[str, str]:
    """By language, the model whose verdicts count."""
    by_language = {
        language: each.model.model for each in plan.judges.values() for language in each.primary_for if plan.judges
    }
    return {language: by_language.get(language, plan.judge.model) for language in plan.data.languages}


def told(cost: Cost) -> list[str]:
    """The bill in sentences; none where no model was asked."""
    sums: defaultdict[str, float] = defaultdict(float)
    for line in cost.lines:
        if line.money is not None:
            sums[line.purpose.partition(":")[0]] += line.money
    parts = ", ".join(f"{purpose} {value:.4f}" for purpose, value in sorted(sums.items()))
    lines = [f"cost: {cost.money:.4f} {cost.currency} ({parts}), by list prices of {cost.date}"] if sums else []
    if cost.unpriced:
        missing = "not in it" if sums else "cost unknown"
        models = ", ".join(cost.unpriced)
        lines.append(f"{missing}, for the price table does not know them: {models} (--prices FILE)")
    return lines


def _of_row(plan: Plan, row: Row) -> Iterable[tuple[str, str, tuple[int, int]]]:
    yield ANSWER, plan.answerer.model, (row.answer_input_tokens, row.answer_output_tokens)
    judge = judge_models(plan).get(row.language, plan.judge.model)
    yield JUDGE, judge, (row.judge_input_tokens, row.judge_output_tokens)
    for name, verdict in row.verdicts.items():
        yield JUDGE, plan.judges[name].model.model, (verdict.input_tokens, verdict.output_tokens)


def _money(line: CostLine, prices: Prices) -> float | None:
    price = prices.of(line.model)
    return None if price is None else round(money(price, line.input_tokens, line.output_tokens), 6)
