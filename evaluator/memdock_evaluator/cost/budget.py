"""A hard budget: no call of a model begins once it is spent."""

from collections.abc import Mapping
from dataclasses import dataclass

from memdock_evaluator.answer.answerer import Answer, Answerer, Asked
from memdock_evaluator.answer.judge import Judge, ToJudge, Verdict
from memdock_evaluator.cost.prices import money
from memdock_evaluator.faults import RunStoppedError
from memdock_evaluator.results.manifest import ModelFacts, Price


class BudgetSpentError(RunStoppedError):
    """The run stops; the same command with a higher budget goes on."""


@dataclass(slots=True, kw_only=True)
class Budget:
    """Counts money of answers and verdicts. `prices` by model. `limit` and `spent` are in `currency`.

    Calls that are under way when it is spent end and are kept, so that up to the concurrency's calls may come on top.
    """

    limit: float
    currency: str
    prices: Mapping[str, Price]
    spent: float = 0.0

    def heed(self) -> None:
        """Raises `BudgetSpentError` where nothing is left."""
        if self.spent >= self.limit:
            raise BudgetSpentError(
                f"the budget of {self.limit:g} {self.currency} is spent ({self.spent:.4f} {self.currency})"
            )

    def pay(self, model: str, input_tokens: int, output_tokens: int) -> None:
        """Counts a call; a model that is no endpoint's costs nothing."""
        if (price := self.prices.get(model)) is not None:
            self.spent += money(price, input_tokens, output_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetedAnswerer:
    """An `Answerer` that pays."""

    answerer: Answerer
    budget: Budget

    @property
    def facts(self) -> ModelFacts:
        """The answerer's."""
        return self.answerer.facts

    async def answer(self, asked: Asked, *, repeat: int) -> Answer:
        """Raises `BudgetSpentError` in place of a call that the budget is spent for."""
        self.budget.heed()
        answer = await self.answerer.answer(asked, repeat=repeat)
        self.budget.pay(self.facts.model, answer.input_tokens, answer.output_tokens)
        return answer

    async def close(self) -> None:
        """The answerer's own affair."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetedJudge:
    """A `Judge` that pays. `primaries`: of several judges the primary models by language; `further`: all by name."""

    inner: Judge
    primaries: Mapping[str, str]
    further: Mapping[str, str]
    budget: Budget

    @property
    def facts(self) -> ModelFacts:
        """The judge's."""
        return self.inner.facts

    async def judge(self, item: ToJudge, *, repeat: int) -> Verdict:
        """Raises `BudgetSpentError` in place of a call that the budget is spent for."""
        self.budget.heed()
        verdict = await self.inner.judge(item, repeat=repeat)
        self.budget.pay(
            self.primaries.get(item.language, self.facts.model), verdict.input_tokens, verdict.output_tokens
        )
        for name, other in verdict.further.items():
            self.budget.pay(self.further[name], other.input_tokens, other.output_tokens)
        return verdict

    async def close(self) -> None:
        """The judge's own affair."""
