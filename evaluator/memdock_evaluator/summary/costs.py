"""The bill of a run by system and purpose, and what a question costs."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from memdock_evaluator.cost.bill import is_cached
from memdock_evaluator.results.manifest import Cost, CostLine
from memdock_evaluator.summary.shape import Costs, PurposeCost, SystemCost
from memdock_evaluator.words.sentence import said

PURPOSES = {"answer": said("Answerer"), "judge": said("Judges"), "memory": said("Memory system")}
"""In the order of a run's bill, with their headings; all words behind "memory: " are one purpose."""

_DIGITS = 9
"""Behind the point of money: a question of a small model costs some millionths."""


def costs(cost: Cost | None, n_questions: Mapping[str, int]) -> Costs | None:
    """By system, of those that asked a model; `n_questions` is how often each was asked a question."""
    if cost is None:
        return None
    lines: defaultdict[str, list[CostLine]] = defaultdict(list)
    for line in cost.lines:
        lines[line.system].append(line)
    return Costs(
        date=cost.date,
        currency=cost.currency,
        unpriced=list(cost.unpriced),
        systems={name: _system(found, n_questions[name]) for name, found in lines.items() if name in n_questions},
    )


def _system(lines: Sequence[CostLine], n: int) -> SystemCost:
    of = {purpose: [line for line in lines if line.purpose.partition(":")[0] == purpose] for purpose in PURPOSES}
    return SystemCost(
        n_questions=n,
        purposes={purpose: _purpose(found, n) for purpose, found in of.items() if found},
        total=_purpose(lines, n),
    )


def _purpose(lines: Sequence[CostLine], n: int) -> PurposeCost:
    priced = [line.money for line in lines if line.money is not None]
    money = round(sum(priced), _DIGITS) if priced else None
    asked = [line for line in lines if not is_cached(line)]
    return PurposeCost(
        models=sorted({line.model for line in lines}),
        input_tokens=sum(line.input_tokens for line in asked),
        output_tokens=sum(line.output_tokens for line in asked),
        estimated=any(line.estimated for line in asked),
        money=money,
        a_question=None if money is None else round(money / n, _DIGITS),
        unpriced=sorted({line.model for line in lines if line.money is None}),
    )
