"""What the system does wrong becomes an outcome, an error or a refusal, never a loss and never its own words."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from memdock.client import AsyncClient
from memdock.errors import (
    DeadlineExceededError,
    InternalError,
    InvalidArgumentError,
    PayloadTooLargeError,
    ResourceExhaustedError,
    UnavailableError,
)
from memdock.system import Batch, Outcome
from memdock.types import Memory, Source, Turn, TurnError, TurnState
from support.served import SPACE, found, reason_of, served, states, turns
from support.toys import ToySystem

SECRET = "my-secret-text"


@pytest.mark.parametrize(
    ("fault", "reason", "retryable"),
    [
        (ResourceExhaustedError("PROVIDER_RATE_LIMITED", "slow down"), "PROVIDER_RATE_LIMITED", True),
        (UnavailableError("PROVIDER_UNREACHABLE", "gone"), "PROVIDER_UNREACHABLE", True),
        (DeadlineExceededError("PROVIDER_TIMEOUT", "too slow"), "PROVIDER_TIMEOUT", True),
        (InternalError("PROVIDER_AUTH_FAILED", "no key"), "PROVIDER_AUTH_FAILED", False),
        (PayloadTooLargeError("PAYLOAD_TOO_LARGE", "too long"), "PAYLOAD_TOO_LARGE", False),
        (InvalidArgumentError("VALIDATION_FAILED", "odd"), "VALIDATION_FAILED", False),
        (ValueError(SECRET), "INTERNAL", False),
        (TimeoutError(SECRET), "INTERNAL", False),
        (asyncio.CancelledError(SECRET), "INTERNAL", False),
    ],
)
async def test_an_exception_fails_the_batch_with_a_reason(
    tmp_path: Path, fault: BaseException, reason: str, retryable: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    system = ToySystem()
    system.add_fault = fault
    async with served(system, tmp_path) as client:
        await client.add_turns(SPACE, turns("a", "b"))
        flushed = await client.flush(SPACE)
        assert flushed.done
        assert flushed.failed_count == 2
        for result in flushed.failed:
            assert result.error is not None
            assert (result.error.reason, result.error.retryable) == (reason, retryable)
            assert SECRET not in result.error.message
        assert SECRET not in capsys.readouterr().out
        system.add_fault = None
        await client.add_turns(SPACE, turns("c"))
        assert (await client.flush(SPACE)).failed_count == 2
        assert await found(client) == {"c"}


async def test_one_turn_may_fail_and_one_may_be_worth_nothing(tmp_path: Path) -> None:
    system = ToySystem()
    system.failing, system.empty = {"b"}, {"c"}
    async with served(system, tmp_path) as client:
        await client.add_turns(SPACE, turns("a", "b", "c", "d"))
        await client.flush(SPACE)
        assert list((await states(client)).values()) == [
            TurnState.SEARCHABLE,
            TurnState.FAILED,
            TurnState.NO_MEMORY,
            TurnState.SEARCHABLE,
        ]
        assert await found(client) == {"a", "d"}


class AnswersWith(ToySystem):
    def __init__(self, outcomes: Sequence[Outcome]) -> None:
        super().__init__()
        self.outcomes = outcomes

    async def add(self, space: str, turns: Sequence[Turn], *, final: bool) -> Batch:
        return Batch(outcomes=self.outcomes)


GOOD = Outcome(state=TurnState.SEARCHABLE)


@pytest.mark.parametrize(
    "outcomes",
    [
        [GOOD, GOOD, GOOD],
        [Outcome(state=TurnState.PENDING), GOOD],
        [Outcome(state=TurnState.FORGOTTEN), GOOD],
        [Outcome(state=TurnState.FAILED), GOOD],
        [replace(GOOD, error=TurnError(reason="INTERNAL", message="", retryable=False)), GOOD],
        [],
    ],
)
async def test_an_answer_outside_the_interface_fails_the_turns(tmp_path: Path, outcomes: list[Outcome]) -> None:
    async with served(AnswersWith(outcomes), tmp_path) as client:
        await client.add_turns(SPACE, turns("a", "b"))
        flushed = await client.flush(SPACE)
        assert flushed.done
        assert {one.error.reason for one in flushed.failed if one.error} == {"ADAPTER_PROTOCOL_ERROR"}
        assert flushed.failed_count == 2


async def test_a_write_without_a_shared_transaction_fails_the_turns(tmp_path: Path) -> None:
    class Writes(ToySystem):
        async def add(self, space: str, turns: Sequence[Turn], *, final: bool) -> Batch:
            async def write(connection: object) -> None:
                raise AssertionError("never awaited")

            return Batch(outcomes=[GOOD] * len(turns), write=write)

    async with served(Writes(), tmp_path) as client:
        await client.add_turns(SPACE, turns("a"))
        assert (await client.flush(SPACE)).failed_count == 1


async def test_an_outcome_that_cannot_be_kept_fails_the_turn_and_is_not_worked_on_for_ever(tmp_path: Path) -> None:
    odd: Any = object()
    async with served(AnswersWith([Outcome(state=TurnState.SEARCHABLE, memory_ids=(odd,))]), tmp_path) as client:
        await client.add_turns(SPACE, turns("a"))
        flushed = await client.flush(SPACE, timeout_s=5.0)
        assert flushed.done
        assert flushed.failed_count == 1


async def test_a_failed_read_is_an_error_and_never_an_empty_list(tmp_path: Path) -> None:
    system = ToySystem()
    async with served(system, tmp_path) as client:
        system.read_fault = UnavailableError("STORE_UNREACHABLE", "the store is away")
        assert await reason_of(client.retrieve(SPACE, "hello")) == "STORE_UNREACHABLE"
        system.read_fault = ValueError(SECRET)
        with pytest.raises(InternalError) as problem:
            await client.retrieve(SPACE, "hello")
        assert problem.value.reason == "INTERNAL"
        assert SECRET not in str(problem.value)


NAIVE = datetime(2024, 1, 1)


@pytest.mark.parametrize(
    "memory",
    [
        Memory(memory_id="m", text=SECRET, sources=(Source(session_id="s1", turn_id="other-space"),)),
        Memory(memory_id="m", text=SECRET, sources=(Source(session_id="s9", turn_id="a"),)),
        Memory(memory_id="", text=SECRET),
        Memory(memory_id="m", text=SECRET, score=float("nan")),
        Memory(memory_id="m", text=SECRET, time=NAIVE),
        Memory(memory_id="m", text="half \ud800"),
    ],
)
async def test_an_answer_that_is_not_the_spaces_is_refused_and_not_leaked(tmp_path: Path, memory: Memory) -> None:
    system = ToySystem()
    async with served(system, tmp_path) as client:
        await client.add_turns("elsewhere", turns("other-space"))
        await client.add_turns(SPACE, turns("a"))
        await client.flush(SPACE)
        system.alter = lambda memories: [*memories, memory]
        for reading in (client.retrieve(SPACE, "hello"), list_all(client)):
            with pytest.raises(InternalError) as problem:
                await reading
            assert problem.value.reason == "ADAPTER_PROTOCOL_ERROR"
            assert SECRET not in str(problem.value)


async def list_all(client: AsyncClient) -> list[Memory]:
    return [memory async for memory in client.list_memories(SPACE)]


async def test_more_memories_than_were_asked_for_are_refused(tmp_path: Path) -> None:
    system = ToySystem()
    async with served(system, tmp_path) as client:
        await client.add_turns(SPACE, turns("a", "b", "c"))
        await client.flush(SPACE)
        extra = Memory(memory_id="x", text="extra")
        system.alter = lambda memories: [*memories, extra]
        assert await reason_of(client.retrieve(SPACE, "hello", top_k=3)) == "ADAPTER_PROTOCOL_ERROR"
