"""A hard budget: no call of a model begins once it is spent."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from memdock.types import ModelUsage
from memdock_evaluator.cost.prices import Prices, money
from memdock_evaluator.faults import RunStoppedError


class BudgetSpentError(RunStoppedError):
    """The run stops; the same command with a higher budget goes on."""


@dataclass(slots=True, kw_only=True)
class Budget:
    """Counts what replies cost as they come, and what the memory systems' spaces say that they have cost.

    `limit` and `spent` are money, in the currency of `prices`; models that have no price there cost nothing. Calls that
    are under way when it is spent end and are kept, so that up to the concurrency's calls may come on top.
    """

    limit: float
    prices: Prices
    spent: float = 0.0
    _spaces: dict[tuple[str, str], float] = field(default_factory=dict)

    @property
    def is_spent(self) -> bool:
        """Whether nothing is left."""
        return self.spent >= self.limit

    def heed(self) -> None:
        """Raises `BudgetSpentError` where nothing is left."""
        if self.is_spent:
            raise BudgetSpentError(f"the budget of {self.limit:g} {self.prices.currency} is spent")

    def pay(self, model: str, input_tokens: int, output_tokens: int) -> None:
        """Counts a reply."""
        if (price := self.prices.of(model)) is not None:
            self.spent += money(price, input_tokens, output_tokens)

    def pay_space(self, system: str, space_id: str, usage: Iterable[ModelUsage]) -> None:
        """Counts all that a space has cost since its last Reset, in place of what was told of it before."""
        found = sum(
            money(price, each.input_tokens, each.output_tokens)
            for each in usage
            if (price := self.prices.of(each.model)) is not None
        )
        self.spent += found - self._spaces.get((system, space_id), 0.0)
        self._spaces[system, space_id] = found

    def begin_space(self, system: str, space_id: str) -> None:
        """After a Reset the space counts from 0; what it has cost stays spent."""
        self._spaces.pop((system, space_id), None)
