"""Calls into a system whose line is bad, or which does not do as it says: a scripted service, without a network."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from memdock.client import AsyncClient
from memdock.engine import Ledgered
from memdock.errors import MemdockError, error
from memdock.service import Call, Method
from memdock.sqlite_ledger import SqliteLedger
from memdock_evaluator.dataset import open_dataset
from memdock_evaluator.faults import Fault, RunStoppedError
from memdock_evaluator.results.folder import Folder
from memdock_evaluator.results.parts import Parts, Unit
from memdock_evaluator.results.plan import SystemFacts
from memdock_evaluator.results.records import INGEST, RETRIEVE
from memdock_evaluator.results.rows import Outcome
from memdock_evaluator.run import memory_system
from memdock_evaluator.run.answering import keys_of
from memdock_evaluator.run.contestants import Contestant
from memdock_evaluator.run.memory_system import MemorySystem
from memdock_evaluator.run.progress import show_progress
from memdock_evaluator.run.space import Space
from memdock_evaluator.run.system_retriever import SystemRetriever
from support.evaluation import settings, write_data
from support.served import turns
from support.toys import ToySystem

SPACE = "eval-r-0-en"


class Line:
    """A service in front of a served system that loses answers, adds faults, or changes what comes back."""

    def __init__(self, inner: Ledgered) -> None:
        self.inner = inner
        self.lost: list[MemdockError] = []
        self.faults: list[MemdockError] = []
        self.alter: Callable[[str, Any], Any] = lambda method, answer: answer
        self.calls: list[str] = []

    async def call(self, method: Method, request: Any, call: Call) -> Any:
        self.calls.append(method.name)
        if self.faults and method.name != "Describe":
            raise self.faults.pop(0)
        answer = await self.inner.call(method, request, call)
        if self.lost and method.name != "Describe":
            raise self.lost.pop(0)
        return self.alter(method.name, answer)


@asynccontextmanager
async def behind_a_line(
    tmp_path: Path, toy: ToySystem, *, patience_s: float
) -> AsyncIterator[tuple[Line, MemorySystem]]:
    inner = Ledgered(toy, SqliteLedger(tmp_path / "ledger.db"))
    await inner.start()
    line = Line(inner)
    client = AsyncClient(line, timeout_s=5.0)
    try:
        yield line, MemorySystem(client, await client.describe(), name="toy", patience_s=patience_s)
    finally:
        await inner.drain(1.0)
        await inner.close()


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_system, "_FIRST_WAIT_S", 0.001)


async def test_an_answer_that_is_lost_stores_nothing_twice(tmp_path: Path) -> None:
    toy = ToySystem()
    async with behind_a_line(tmp_path, toy, patience_s=5.0) as (line, system):
        line.lost = [error("ADAPTER_UNREACHABLE", "lost") for _ in range(5)]
        added = await system.add_turns(SPACE, turns("a", "b"))
        await system.flush(SPACE, timeout_s=5.0)
        assert [result.duplicate for result in added.result.results] == [True, True]
        assert line.calls.count("AddTurns") == 6
        assert toy.turn_ids(SPACE) == ["a", "b"]


@pytest.mark.parametrize("reason", ["DRAINING", "QUEUE_FULL", "RATE_LIMITED", "ADAPTER_TIMEOUT", "IN_PROGRESS"])
async def test_what_may_pass_is_tried_again_while_patience_lasts(tmp_path: Path, reason: str) -> None:
    async with behind_a_line(tmp_path, ToySystem(), patience_s=5.0) as (line, system):
        line.faults = [error(reason, "later") for _ in range(4)]
        await system.reset(SPACE)
        assert line.calls.count("Reset") == 5


async def test_patience_ends(tmp_path: Path) -> None:
    async with behind_a_line(tmp_path, ToySystem(), patience_s=0.05) as (line, system):
        line.faults = [error("DRAINING", "the gateway drains") for _ in range(99)]
        with pytest.raises(Fault) as caught:
            await system.retrieve(SPACE, "hello", k=3)
        assert (caught.value.outcome, caught.value.reason) == (Outcome.INFRASTRUCTURE_ERROR, "DRAINING")
        assert caught.value.detail == "the gateway drains"


async def test_a_wait_that_is_asked_for_past_the_patience_is_not_begun(tmp_path: Path) -> None:
    async with behind_a_line(tmp_path, ToySystem(), patience_s=5.0) as (line, system):
        line.faults = [error("RATE_LIMITED", "in an hour", retry_after_s=3600.0)]
        with pytest.raises(Fault, match="in an hour"):
            await system.reset(SPACE)
        assert line.calls.count("Reset") == 1


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        ("INTERNAL", Outcome.SYSTEM_ERROR),
        ("PAYLOAD_TOO_LARGE", Outcome.SYSTEM_ERROR),
        ("ADAPTER_PROTOCOL_ERROR", Outcome.SYSTEM_ERROR),
        ("TURN_ID_CONFLICT", Outcome.SYSTEM_ERROR),
        ("PROVIDER_AUTH_FAILED", Outcome.INFRASTRUCTURE_ERROR),
    ],
)
async def test_what_does_not_pass_is_not_tried_again(tmp_path: Path, reason: str, outcome: Outcome) -> None:
    async with behind_a_line(tmp_path, ToySystem(), patience_s=5.0) as (line, system):
        line.faults = [error(reason, "no")]
        with pytest.raises(Fault) as caught:
            await system.retrieve(SPACE, "hello", k=3)
        assert caught.value.outcome is outcome
        assert line.calls.count("Retrieve") == 1


@pytest.mark.parametrize("reason", ["CREDENTIAL_EXPIRED", "SPACE_FORBIDDEN", "SYSTEM_NOT_FOUND"])
async def test_what_concerns_every_call_stops_the_run(tmp_path: Path, reason: str) -> None:
    async with behind_a_line(tmp_path, ToySystem(), patience_s=5.0) as (line, system):
        line.faults = [error(reason, "the key has expired")]
        with pytest.raises(RunStoppedError, match=f"the key has expired .{reason}."):
            await system.retrieve(SPACE, "hello", k=3)


async def test_a_system_that_loses_turns_is_told_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def loses(method: str, answer: Any) -> Any:
        if method == "ListTurns":
            del answer.turns[2:]
        return answer

    async with behind_a_line(tmp_path, ToySystem(), patience_s=0.0) as (line, system):
        line.alter = loses
        parts = await retrieved(tmp_path, system)
    (ingested,) = parts.read(INGEST)
    assert (ingested.counts.turns_read, ingested.counts.turns_listed) == (8, 2)
    assert "toy: dialogue 0 (en): 8 turns were sent, the system lists 2" in capsys.readouterr().out


async def test_a_read_with_turns_pending_after_the_barrier_is_marked_stale(tmp_path: Path) -> None:
    def pending(method: str, answer: Any) -> Any:
        if method == "Retrieve":
            answer.pending = 3
        return answer

    async with behind_a_line(tmp_path, ToySystem(), patience_s=0.0) as (line, system):
        line.alter = pending
        parts = await retrieved(tmp_path, system)
    assert [record.stale for record in parts.read(RETRIEVE)] == [True] * 4


async def test_more_memories_than_were_asked_for_do_not_count(tmp_path: Path) -> None:
    def more(method: str, answer: Any) -> Any:
        if method == "Retrieve":
            answer.memories.extend(list(answer.memories) * 20)
        return answer

    async with behind_a_line(tmp_path, ToySystem(), patience_s=0.0) as (line, system):
        line.alter = more
        parts = await retrieved(tmp_path, system, k=3)
    assert max(len(record.memories) for record in parts.read(RETRIEVE)) == 3


async def retrieved(tmp_path: Path, system: MemorySystem, *, k: int = 10) -> Parts:
    data = write_data(tmp_path / "d.jsonl", dialogues=("0",))
    (dialogue,) = open_dataset(data)
    parts = Parts(Folder(str(tmp_path / "run")), Unit(system="toy", language="en", dialogue_id="0"))
    run, progress = settings(data, tmp_path / "run"), show_progress(Console(width=200))
    space = Space(space_id=SPACE, system=system, parts=parts, settings=run, progress=progress)
    contestant = Contestant(facts=SystemFacts(name="toy", system="toy", k=k), parts=parts)
    retriever = SystemRetriever(space=space, contestants=[contestant], settings=run, progress=progress)
    await retriever.retrieve(dialogue, keys_of(dialogue, 1))
    return parts
