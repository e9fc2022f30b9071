"""Retrieve, ListTurns and ListMemories: filters that are refused or kept, pages, staleness that shows."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memdock.engine import Ledgered
from memdock.errors import DeadlineExceededError, InvalidArgumentError, UnimplementedError
from memdock.service import METHODS, Call
from memdock.sqlite_ledger import SqliteLedger
from memdock.types import Feature
from memdock.v1 import memory_pb2 as pb
from support.served import SPACE, reason_of, served, turn, turns, until
from support.toys import ToySystem, without

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("lacking", "asked", "reason"),
    [
        (Feature.FILTER_SESSIONS, {"session_ids": ["s1"]}, "FILTER_UNSUPPORTED"),
        (Feature.FILTER_TIME, {"since": NOON}, "FILTER_UNSUPPORTED"),
        (Feature.FILTER_TIME, {"until": NOON}, "FILTER_UNSUPPORTED"),
        (Feature.REFERENCE_TIME, {"reference_time": NOON}, "FEATURE_UNSUPPORTED"),
    ],
)
async def test_what_is_not_declared_is_refused_and_what_is_declared_is_kept(
    tmp_path: Path, lacking: Feature, asked: dict[str, Any], reason: str
) -> None:
    for features, served_folder in ((without(lacking), "lacking"), (without(), "whole")):
        (tmp_path / served_folder).mkdir()
        system = ToySystem(features=features)
        async with served(system, tmp_path / served_folder) as client:
            await client.add_turns(SPACE, [turn("early", time=NOON - timedelta(days=1)), turn("late", time=NOON)])
            await client.flush(SPACE)
            if served_folder == "whole":
                await client.retrieve(SPACE, "hello", **asked)
                continue
            with pytest.raises(UnimplementedError) as problem:
                await client.retrieve(SPACE, "hello", **asked)
            assert problem.value.reason == reason
            assert f"FEATURE_{lacking}" in problem.value.message
            assert not system.calls("retrieve")


async def test_filters_reach_the_system(tmp_path: Path) -> None:
    async with served(ToySystem(), tmp_path) as client:
        early, late = turn("early", time=NOON - timedelta(days=1)), turn("late", time=NOON)
        await client.add_turns(SPACE, [early, late, turn("other", session_id="s2")])
        await client.flush(SPACE)

        async def ids(**asked: Any) -> list[str]:
            memories = (await client.retrieve(SPACE, "hello", **asked)).memories
            return [memory.sources[0].turn_id for memory in memories]

        assert await ids(since=NOON) == ["late"]
        assert await ids(until=NOON) == ["early"]
        assert await ids(session_ids=["s2"]) == ["other"]
        assert len(await ids(top_k=2)) == 2


async def test_an_unknown_space_is_empty(tmp_path: Path) -> None:
    async with served(ToySystem(), tmp_path) as client:
        answer = await client.retrieve("unknown", "hello")
        assert (answer.memories, answer.pending, answer.failed_count) == ((), 0, 0)
        assert [record async for record in client.list_turns("unknown")] == []
        assert [memory async for memory in client.list_memories("unknown")] == []


async def test_lists_are_complete_over_pages_of_changing_size(tmp_path: Path) -> None:
    service = Ledgered(ToySystem(), SqliteLedger(tmp_path / "ledger.db"))
    await service.start()
    wanted = [f"t{number}" for number in range(10)]
    add = pb.AddTurnsRequest(
        space_id=SPACE,
        turns=[pb.Turn(turn_id=turn_id, session_id="s1", role="user", text=turn_id) for turn_id in wanted],
    )
    await service.call(METHODS["AddTurns"], add, Call())
    await service.call(METHODS["Flush"], pb.FlushRequest(space_id=SPACE), Call())

    async def listed(method: str, request: Any, field: str) -> list[str]:
        seen: list[str] = []
        for size in (1, 3, 2, 4, 5):
            request.page_size = size
            page = await service.call(METHODS[method], request, Call())
            seen += [getattr(one, field) for one in next(iter(page.ListFields()))[1]]
            request.page_token = page.next_page_token
            if not page.next_page_token:
                break
        return seen

    assert await listed("ListTurns", pb.ListTurnsRequest(space_id=SPACE), "turn_id") == wanted
    assert await listed("ListMemories", pb.ListMemoriesRequest(space_id=SPACE), "text") == wanted
    await service.drain(5.0)
    await service.close()


async def test_a_token_of_another_list_or_space_or_none_at_all_is_refused(tmp_path: Path) -> None:
    service = Ledgered(ToySystem(), SqliteLedger(tmp_path / "ledger.db"))
    await service.start()
    add = pb.AddTurnsRequest(
        space_id=SPACE, turns=[pb.Turn(turn_id=t, session_id="s1", role="user", text=t) for t in "abc"]
    )
    await service.call(METHODS["AddTurns"], add, Call())
    page = await service.call(METHODS["ListTurns"], pb.ListTurnsRequest(space_id=SPACE, page_size=1), Call())
    token = page.next_page_token
    assert "1" not in token or len(token) > 8
    for method, request in (
        ("ListTurns", pb.ListTurnsRequest(space_id="other", page_token=token)),
        ("ListMemories", pb.ListMemoriesRequest(space_id=SPACE, page_token=token)),
        ("ListTurns", pb.ListTurnsRequest(space_id=SPACE, page_token=token + "A")),
        ("ListTurns", pb.ListTurnsRequest(space_id=SPACE, page_token="not a token")),
        ("ListTurns", pb.ListTurnsRequest(space_id=SPACE, page_token="я")),
        ("ListTurns", pb.ListTurnsRequest(space_id=SPACE, page_token="AAAA")),
    ):
        with pytest.raises(InvalidArgumentError) as problem:
            await service.call(METHODS[method], request, Call())
        assert problem.value.reason == "BAD_PAGE_TOKEN"
        assert problem.value.fields[0].field == "page_token"
    await service.drain(5.0)
    await service.close()


async def test_memories_are_listed_only_where_declared(tmp_path: Path) -> None:
    async with served(ToySystem(features=without(Feature.LIST_MEMORIES)), tmp_path) as client:
        with pytest.raises(UnimplementedError) as problem:
            [memory async for memory in client.list_memories(SPACE)]
        assert problem.value.reason == "FEATURE_UNSUPPORTED"


async def test_a_deadline_cancels_the_work_behind_a_retrieve(tmp_path: Path) -> None:
    system = ToySystem()
    async with served(system, tmp_path, timeout_s=0.5) as client:
        await client.add_turns(SPACE, turns("a"))
        system.read_delay_s = 30.0
        started = time.monotonic()
        with pytest.raises(DeadlineExceededError) as problem:
            await client.retrieve(SPACE, "hello")
        assert time.monotonic() - started < 2.0
        assert problem.value.reason == "DEADLINE_EXCEEDED"
        assert system.reads_cancelled == 1
        await until(lambda: system.turn_ids(SPACE) == ["a"])


async def test_a_caller_who_leaves_cancels_its_retrieve(tmp_path: Path) -> None:
    system = ToySystem()
    system.read_delay_s = 30.0
    async with served(system, tmp_path) as client:
        reading = asyncio.create_task(client.retrieve(SPACE, "hello"))
        await until(lambda: bool(system.calls("retrieve")))
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        assert system.reads_cancelled == 1


async def test_usage_of_writes_reads_and_failures_adds_up_in_the_space(tmp_path: Path) -> None:
    system = ToySystem()
    system.failing = {"b"}
    async with served(system, tmp_path) as client:
        await client.add_turns(SPACE, [turn("a", "12345"), turn("b", "123")])
        flushed = await client.flush(SPACE)
        assert [(one.purpose, one.calls, one.input_tokens) for one in flushed.space_usage] == [("extraction", 2, 8)]
        answer = await client.retrieve(SPACE, "1234567")
        assert [(one.model, one.purpose, one.input_tokens) for one in answer.usage] == [("toy-model", "search", 7)]
        system.read_fault = ValueError()
        assert await reason_of(client.retrieve(SPACE, "1")) == "INTERNAL"
        spent = {one.purpose: one.input_tokens for one in (await client.flush(SPACE)).space_usage}
        assert spent == {"extraction": 8, "search": 8}
