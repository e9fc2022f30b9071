"""The bill of a run as a table: a row a system and purpose, then what all of a system's purposes cost."""

from collections.abc import Iterator

from memdock_evaluator.summary.shape import Costs, PurposeCost, Summary
from memdock_evaluator.tables.shape import Cell, Table, amount

ALL = "all"
_COLUMNS = (
    "system",
    "purpose",
    "models",
    "tokens in",
    "tokens out",
    "estimated",
    "money",
    "a question",
    "1,000 questions",
    "unpriced",
)


def cost_table(summary: Summary) -> Table:
    """Empty where the run kept no bill or asked no model."""
    cost = summary["cost"]
    return Table(
        name="cost",
        title="Cost",
        columns=_COLUMNS,
        rows=tuple(_rows(cost)) if cost else (),
        notes=_notes(cost) if cost and cost["systems"] else (),
    )


def _rows(cost: Costs) -> Iterator[tuple[Cell, ...]]:
    for name, system in cost["systems"].items():
        for purpose, found in (*system["purposes"].items(), (ALL, system["total"])):
            yield name, purpose, *_cells(found)


def _cells(found: PurposeCost) -> tuple[Cell, ...]:
    each = found["a_question"]
    return (
        *(", ".join(found["models"]), found["input_tokens"], found["output_tokens"]),
        found["estimated"],
        *(amount(found["money"]), amount(each), amount(None if each is None else 1000 * each)),
        ", ".join(found["unpriced"]),
    )


def _notes(cost: Costs) -> tuple[str, ...]:
    prices = f"Money in {cost['currency']} by list prices of {cost['date']}, storing the dialogues included."
    tokens = (
        "Tokens are what models were asked for: what a cache answered is not counted, so that a second run over the "
        "same texts may have fewer. Estimated: some are not an endpoint's own count."
    )
    if not cost["unpriced"]:
        return prices, tokens
    return prices, tokens, f"Not in the price table, so that their money comes on top: {', '.join(cost['unpriced'])}."
