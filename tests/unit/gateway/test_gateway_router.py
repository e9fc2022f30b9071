"""The router and its upstreams, before a scripted system: names, limits, retries, lanes, checked answers, audit."""

import asyncio
import copy
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import orjson
import pytest
from google.protobuf.message import Message

from memdock.callers import DEVELOPMENT_KEY
from memdock.errors import MemdockError, error
from memdock.service import METHODS, Call, Method
from memdock.types import Limits
from memdock.v1 import memory_pb2 as pb
from memdock_gateway.audit import Audit
from memdock_gateway.exchange import Exchange
from memdock_gateway.router import Router
from memdock_gateway.space_key import DEVELOPMENT_KEY as SPACE_KEY
from memdock_gateway.space_key import SpaceNames
from memdock_gateway.upstream import Upstream
from support.faces import until

Answer = Message | Exception | Callable[[], Awaitable[object]]


class Scripted:
    """Answers from a list; an exception is raised, a callable is asked."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.seen: list[tuple[str, Any, Call]] = []

    async def call(self, method: Method, request: Message, call: Call) -> Any:
        self.seen.append((method.name, type(request).FromString(request.SerializeToString()), call))
        answer: object = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if callable(answer):
            answer = await answer()
        if isinstance(answer, Exception):
            raise answer
        return answer


def upstream(
    service: Scripted, *, name: str = "rag", deadline_s: float = 5.0, concurrency: int = 4, queue: int = 4
) -> Upstream:
    names = SpaceNames(SPACE_KEY, name)
    return Upstream(name, service, names, deadline_s=deadline_s, concurrency=concurrency, queue=queue)


def router(
    service: Scripted,
    *,
    limits: Limits | None = None,
    audit: Audit | None = None,
    deadline_s: float = 5.0,
    concurrency: int = 4,
    queue: int = 4,
) -> Router:
    one = upstream(service, deadline_s=deadline_s, concurrency=concurrency, queue=queue)
    return Router({one.name: one}, limits or Limits(), audit)


def exchange(method: str, tenant: str = "acme") -> Exchange:
    return Exchange(method=method, request_id="r1", key=replace(DEVELOPMENT_KEY, tenant=tenant, key_id="k1"))


async def ask(
    through: Router, method: str, request: Message, *, call: Call | None = None, of: Exchange | None = None
) -> Any:
    return await through.call(METHODS[method], request, call or Call(request_id="r1"), of or exchange(method))


def retrieve() -> pb.RetrieveRequest:
    return pb.RetrieveRequest(system="rag", space_id="s1", query="q")


def memories(count: int) -> pb.RetrieveResponse:
    return pb.RetrieveResponse(memories=[pb.Memory(memory_id=str(n), text="t") for n in range(count)])


async def test_the_adapter_sees_a_hashed_space_and_no_system() -> None:
    service = Scripted(memories(1))
    await ask(router(service), "Retrieve", retrieve())
    (_, request, call) = service.seen[0]
    assert request.system == ""
    assert request.space_id == SpaceNames(SPACE_KEY, "rag").name("acme", "s1")
    assert request.query == "q"
    assert call.credential == ""
    assert call.request_id == "r1"


async def test_two_tenants_never_meet() -> None:
    service = Scripted(memories(0))
    for tenant in ("acme", "globex"):
        await ask(router(service), "Retrieve", retrieve(), of=exchange("Retrieve", tenant))
    assert service.seen[0][1].space_id != service.seen[1][1].space_id


async def test_an_unknown_system_is_not_found_and_not_repeated() -> None:
    with pytest.raises(MemdockError) as refused:
        await ask(router(Scripted(memories(0))), "Retrieve", pb.RetrieveRequest(system="secret-name", space_id="s"))
    assert refused.value.reason == "SYSTEM_NOT_FOUND"
    assert "secret-name" not in refused.value.message


async def test_unavailable_twice_then_fine_is_one_answer() -> None:
    gone = error("ADAPTER_UNREACHABLE", "gone")
    service = Scripted(gone, gone, memories(1))
    trail = exchange("Retrieve")
    answer = await ask(router(service), "Retrieve", retrieve(), of=trail)
    assert len(answer.memories) == 1
    assert (len(service.seen), trail.retries) == (3, 2)
    assert len({request.SerializeToString() for _, request, _ in service.seen}) == 1, "the same request each time"


async def test_the_tries_of_an_erasure_are_one_for_the_system() -> None:
    service = Scripted(error("ADAPTER_UNREACHABLE", "gone"), pb.ResetResponse())
    await ask(router(service), "Reset", pb.ResetRequest(system="rag", space_id="anna"))
    first, second = (request.request_id for _, request, _ in service.seen)
    assert first
    assert first == second


async def test_unavailable_for_ever_is_told_after_three_more_tries() -> None:
    service = Scripted(error("ADAPTER_UNREACHABLE", "gone"))
    with pytest.raises(MemdockError) as failed:
        await ask(router(service), "Retrieve", retrieve())
    assert failed.value.reason == "ADAPTER_UNREACHABLE"
    assert len(service.seen) == 4


@pytest.mark.parametrize("reason", ["VALIDATION_FAILED", "PROVIDER_RATE_LIMITED", "TURN_ID_CONFLICT", "INTERNAL"])
async def test_what_a_repeat_cannot_mend_is_asked_once(reason: str) -> None:
    service = Scripted(error(reason, "no"))
    with pytest.raises(MemdockError) as failed:
        await ask(router(service), "Retrieve", retrieve())
    assert failed.value.reason == reason
    assert len(service.seen) == 1


async def test_a_rate_limit_that_names_a_time_is_waited_for() -> None:
    service = Scripted(error("PROVIDER_RATE_LIMITED", "later", retry_after_s=0.05), memories(1))
    began = time.monotonic()
    await ask(router(service), "Retrieve", retrieve())
    assert time.monotonic() - began >= 0.05


async def test_no_place_is_held_between_tries() -> None:
    async def later() -> MemdockError:
        return error("IN_PROGRESS", "later", retry_after_s=0.2)

    service = Scripted(later, memories(1))
    through = router(service, concurrency=1, queue=0)
    waiting = asyncio.create_task(ask(through, "Reset", pb.ResetRequest(system="rag", space_id="s")))
    await asyncio.sleep(0.05)
    await asyncio.wait_for(ask(through, "Retrieve", retrieve()), 0.1)
    service.answers = [pb.ResetResponse()]
    await waiting


async def test_the_deadline_of_the_system_holds_where_the_caller_has_none() -> None:
    service = Scripted(memories(0))
    await ask(router(service, deadline_s=3), "Retrieve", retrieve())
    left_s = service.seen[0][2].left_s()
    assert left_s is not None
    assert 2.5 < left_s <= 3


async def test_the_nearer_deadline_holds() -> None:
    service = Scripted(memories(0))
    call = Call(request_id="r1", deadline=time.monotonic() + 1)
    await ask(router(service, deadline_s=3), "Retrieve", retrieve(), call=call)
    assert service.seen[0][2].deadline == call.deadline


async def test_whose_deadline_ran_out_is_told() -> None:
    late = error("DEADLINE_EXCEEDED", "the time is used up")
    with pytest.raises(MemdockError) as own:
        await ask(router(Scripted(late), deadline_s=3), "Retrieve", retrieve())
    assert (own.value.reason, own.value.http_status) == ("ADAPTER_TIMEOUT", 504)
    call = Call(request_id="r1", deadline=time.monotonic() + 1)
    with pytest.raises(MemdockError) as callers:
        await ask(router(Scripted(late), deadline_s=3), "Retrieve", retrieve(), call=call)
    assert callers.value.reason == "DEADLINE_EXCEEDED"


@pytest.mark.parametrize("reason", ["CREDENTIAL_INVALID", "SPACE_FORBIDDEN", "SYSTEM_NOT_FOUND", "PATH_NOT_FOUND"])
async def test_an_adapter_cannot_speak_for_the_gateway(reason: str) -> None:
    service = Scripted(error(reason, "foreign words"))
    with pytest.raises(MemdockError) as failed:
        await ask(router(service), "Retrieve", retrieve())
    assert failed.value.reason == "ADAPTER_PROTOCOL_ERROR"
    assert "foreign words" not in failed.value.message


async def test_a_slow_system_fills_its_own_lane_alone() -> None:
    async def never() -> None:
        await asyncio.Event().wait()

    slow, quick = upstream(Scripted(never), name="slow", concurrency=2, queue=1), upstream(Scripted(memories(1)))
    through = Router({"slow": slow, "rag": quick}, Limits(), None)

    async def ask_slow() -> None:
        await ask(through, "Retrieve", pb.RetrieveRequest(system="slow", space_id="s", query="q"))

    stuck = [asyncio.create_task(ask_slow()) for _ in range(3)]
    await asyncio.sleep(0.01)
    with pytest.raises(MemdockError) as full:
        await ask_slow()
    assert full.value.reason == "QUEUE_FULL"
    assert full.value.retry_after_s
    await asyncio.wait_for(ask(through, "Retrieve", retrieve()), 1)
    for task in stuck:
        task.cancel()
    await asyncio.gather(*stuck, return_exceptions=True)
    assert (slow.lane.inside, slow.lane.waiting) == (0, 0)


async def test_waiting_flushes_take_no_place() -> None:
    answers = asyncio.Event()

    async def flushed() -> pb.FlushResponse:
        await answers.wait()
        return pb.FlushResponse(done=True)

    service = Scripted(flushed)
    through = router(service, concurrency=1, queue=0)
    flushes = [
        asyncio.create_task(ask(through, "Flush", pb.FlushRequest(system="rag", space_id="s"))) for _ in range(64)
    ]
    await asyncio.sleep(0.01)
    service.answers = [memories(1)]
    await asyncio.wait_for(ask(through, "Retrieve", retrieve()), 1)
    answers.set()
    assert all(answer.done for answer in await asyncio.gather(*flushes))


async def test_describe_tells_the_configured_name_and_the_limits_of_the_whole_way() -> None:
    description = pb.DescribeResponse(system="inner", adapter=pb.Software(name="a"), protocol_versions=["v1"])
    description.limits.max_top_k = 50
    description.limits.max_turns_per_request = 1000
    description.limits.max_wait.seconds = 30
    through = router(Scripted(description), limits=Limits(max_turns_per_request=100), deadline_s=10)
    answer = await ask(through, "Describe", pb.DescribeRequest(system="rag"))
    assert answer.system == "rag"
    assert (answer.limits.max_top_k, answer.limits.max_turns_per_request) == (50, 100)
    assert answer.limits.max_wait.ToNanoseconds() == 9_500_000_000


async def test_an_erasure_leaves_two_lines_and_no_name(tmp_path: Path) -> None:
    audit = Audit(tmp_path / "audit.jsonl")
    forgotten = pb.ForgetResponse(erased_turn_ids=["t1"], erased_memory_ids=["m1", "m2"], not_found=["t2"])
    request = pb.ForgetRequest(system="rag", space_id="private-space", selector=pb.Selector(turn_ids=["t1", "t2"]))
    await ask(router(Scripted(forgotten), audit=audit), "Forget", request)
    audit.close()
    text = (tmp_path / "audit.jsonl").read_text()
    asked, answered = (orjson.loads(line) for line in text.splitlines())
    hashed = SpaceNames(SPACE_KEY, "rag").name("acme", "private-space")
    for line in (asked, answered):
        assert (line["tenant"], line["key_id"], line["system"], line["space"]) == ("acme", "k1", "rag", hashed)
        assert line["method"] == "Forget"
    assert (asked["stage"], asked["selected"], asked["dry_run"]) == ("asked", {"turn_ids": 2}, False)
    assert (answered["stage"], answered["outcome"]) == ("answered", "OK")
    assert (answered["erased"], answered["not_found"]) == ({"memories": 2, "turns": 1}, 1)
    assert "private-space" not in text


ERASURES: list[Message] = [
    pb.ForgetRequest(system="rag", space_id="s", selector=pb.Selector(turn_ids=["t1"])),
    pb.ResetRequest(system="rag", space_id="s"),
]


@pytest.mark.parametrize("request_", ERASURES, ids=["Forget", "Reset"])
async def test_an_erasure_that_fails_or_is_left_is_in_the_audit_too(tmp_path: Path, request_: Message) -> None:
    audit = Audit(tmp_path / "audit.jsonl")
    name = type(request_).__name__.removesuffix("Request")

    async def never() -> None:
        await asyncio.Event().wait()

    wrong = pb.ForgetResponse(erased_turn_ids=["FOREIGN"]) if name == "Forget" else pb.ResetResponse(residual=[{}])
    service = Scripted(
        error("STORE_UNREACHABLE", "away", retry_after_s=60), MemdockError("FOREIGN words", "no"), wrong, never
    )
    through = router(service, audit=audit)
    for _ in range(3):
        with pytest.raises(MemdockError):
            await ask(through, name, copy.deepcopy(request_))
    left = asyncio.create_task(ask(through, name, copy.deepcopy(request_)))
    await until(lambda: len(service.seen) == 4)
    left.cancel()
    await asyncio.gather(left, return_exceptions=True)
    audit.close()
    lines = [orjson.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    assert [line["stage"] for line in lines] == ["asked", "answered"] * 4
    assert [line["outcome"] for line in lines[1::2]] == [
        "STORE_UNREACHABLE",
        "ADAPTER_PROTOCOL_ERROR",
        "ADAPTER_PROTOCOL_ERROR",
        "CANCELLED",
    ]


@pytest.mark.parametrize("reason", ["I moved to Kazan", "lower_case", "A" * 64, "Ы", "A\n"])
async def test_what_an_adapter_says_in_place_of_a_reason_goes_nowhere(reason: str) -> None:
    with pytest.raises(MemdockError) as failed:
        await ask(router(Scripted(MemdockError(reason, "no"))), "Retrieve", retrieve())
    assert failed.value.reason == "ADAPTER_PROTOCOL_ERROR"
    assert reason not in failed.value.message
    with pytest.raises(MemdockError) as newer:
        await ask(router(Scripted(MemdockError("A_NEWER_1", "no"))), "Retrieve", retrieve())
    assert newer.value.reason == "A_NEWER_1"


async def test_a_line_after_the_end_of_the_audit_is_written_nowhere(tmp_path: Path) -> None:
    audit = Audit(tmp_path / "audit.jsonl")

    async def erased() -> Any:
        audit.close()
        other.append((tmp_path / "other").open("w"))
        return pb.ResetResponse()

    other: list[IO[str]] = []
    await ask(router(Scripted(erased), audit=audit), "Reset", pb.ResetRequest(system="rag", space_id="s"))
    other[0].close()
    assert (tmp_path / "other").read_text() == "", "the file that has the audit's number now"


async def test_nothing_is_erased_when_the_audit_cannot_be_written(tmp_path: Path) -> None:
    audit = Audit(tmp_path / "audit.jsonl")
    audit.close()
    service = Scripted(pb.ResetResponse())
    with pytest.raises(MemdockError) as refused:
        await ask(router(service, audit=audit), "Reset", pb.ResetRequest(system="rag", space_id="s"))
    assert refused.value.reason == "INTERNAL"
    assert service.seen == []


async def test_an_erasure_that_happened_is_answered_even_when_its_second_line_is_lost(tmp_path: Path) -> None:
    audit = Audit(tmp_path / "audit.jsonl")

    async def erased() -> Any:
        audit.close()
        return pb.ResetResponse(erased_turns=3)

    answer = await ask(router(Scripted(erased), audit=audit), "Reset", pb.ResetRequest(system="rag", space_id="s"))
    assert answer.erased_turns == 3
    assert len((tmp_path / "audit.jsonl").read_text().splitlines()) == 1
