"""What reads have cost is added up later, and is not lost when the ledger is away meanwhile."""

from collections.abc import Sequence

import pytest

from memdock.engine.background import Background
from memdock.engine.spending import Spending
from memdock.errors import UnavailableError
from memdock.sqlite_ledger import SqliteLedger
from memdock.types import ModelUsage


class AwayAtFirst(SqliteLedger):
    """Fails its first write with `fault`, then keeps what it is given in memory."""

    def __init__(self, fault: Exception) -> None:
        super().__init__("never-opened.db")
        self.fault: Exception | None = fault
        self.kept: list[ModelUsage] = []

    async def spend(self, space: str, usage: Sequence[ModelUsage]) -> None:
        if self.fault is not None:
            fault, self.fault = self.fault, None
            raise fault
        self.kept.extend(usage)


@pytest.mark.parametrize("fault", [UnavailableError("STORE_UNREACHABLE", "away"), ValueError("a bug")])
async def test_what_could_not_be_written_is_written_by_the_next_flush(fault: Exception) -> None:
    ledger = AwayAtFirst(fault)
    spending = Spending(ledger, Background())
    spending.add("space", [ModelUsage(model="m", purpose="search", calls=1)])
    await spending.written()  # the round that fails, and the next one
    assert [one.calls for one in ledger.kept] == [1]
    spending.add("space", [ModelUsage(model="m", purpose="search", calls=2)])
    await spending.written()
    assert [one.calls for one in ledger.kept] == [1, 2]
