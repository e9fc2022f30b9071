"""What a framework raises becomes an error by its kind, and an outcome of a turn; none of its words is passed on."""

import json
import sqlite3
from collections.abc import Sequence

import pytest

from memdock.adapter.framework_calls import FrameworkCalls, outcome_of
from memdock.adapter.pairs import add_groups
from memdock.errors import MemdockError, error
from memdock.system import Outcome
from memdock.types import Turn, TurnState

CALLS = FrameworkCalls("Frame", store="The database", store_packages=("sqlite3",), reply_packages=("json",))


def fails(fault: Exception, cause: Exception | None = None) -> None:
    raise fault from cause


@pytest.mark.parametrize(
    ("fault", "cause", "reason"),
    [
        (sqlite3.OperationalError("said by anna"), None, "STORE_UNREACHABLE"),
        (RuntimeError("said by anna"), sqlite3.OperationalError("said by anna"), "STORE_UNREACHABLE"),
        (sqlite3.DataError("said by anna"), None, "INTERNAL"),
        (RuntimeError("said by anna"), sqlite3.DataError("said by anna"), "INTERNAL"),
        (json.JSONDecodeError("said by anna", "", 0), None, "PROVIDER_PROTOCOL_ERROR"),
        (RuntimeError("said by anna"), None, "INTERNAL"),
    ],
)
async def test_an_exception_is_told_by_its_kind_and_without_its_words(
    fault: Exception, cause: Exception | None, reason: str
) -> None:
    with pytest.raises(MemdockError) as told:
        await CALLS.run(lambda: fails(fault, cause))
    assert told.value.reason == reason
    assert "anna" not in told.value.message


async def test_an_error_for_callers_passes_as_it_is() -> None:
    mine = error("PROVIDER_TIMEOUT", "late")
    with pytest.raises(MemdockError) as told:
        await CALLS.run(lambda: fails(mine))
    assert told.value is mine


async def test_an_error_for_callers_passes_also_as_the_cause_of_another() -> None:
    mine = error("PROVIDER_PROTOCOL_ERROR", "no list")
    with pytest.raises(MemdockError) as told:
        await CALLS.run(lambda: fails(RuntimeError("said by anna"), mine))
    assert told.value is mine


async def memories(*found: str) -> Sequence[str]:
    return found


async def refused(reason: str) -> Sequence[str]:
    raise error(reason, "why")


async def test_memories_none_of_them_and_a_failure_are_three_outcomes() -> None:
    assert await outcome_of(memories("m1", "m2")) == Outcome(state=TurnState.SEARCHABLE, memory_ids=("m1", "m2"))
    assert await outcome_of(memories()) == Outcome(state=TurnState.NO_MEMORY)
    for reason, retryable in (("PROVIDER_TIMEOUT", True), ("PROVIDER_AUTH_FAILED", False)):
        outcome = await outcome_of(refused(reason))
        assert outcome.state is TurnState.FAILED
        assert outcome.error is not None
        assert (outcome.error.reason, outcome.error.message, outcome.error.retryable) == (reason, "why", retryable)


async def test_turns_of_a_group_share_an_outcome_in_the_order_of_the_turns() -> None:
    turns = [Turn(turn_id=f"t{n}", session_id="s", role="user", text="x") for n in range(3)]
    batch = await add_groups(
        turns, [(0, 2), (1,)], lambda group: outcome_of(memories("+".join(each.turn_id for each in group)))
    )
    assert [each.memory_ids for each in batch.outcomes] == [("t0+t2",), ("t1",), ("t0+t2",)]
