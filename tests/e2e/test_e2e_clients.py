"""Each client does the whole life of a space against the gateway, with a key, and all of them get the same answers."""

import asyncio
import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, is_dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

import pytest

from memdock import connect, read_answers
from memdock.client import connect_async
from memdock.service import METHODS, Method
from memdock.types import Turn
from memdock.wire import from_json
from support.command_line import BufCurl, Curl, Said, curl_missing
from support.whole_stack import DENSE, HYBRID, WholeStack

TIME = datetime(2024, 5, 3, 18, 30, 0, 250_000, tzinfo=UTC)
TURNS = (
    Turn(turn_id="t1", session_id="s1", role="user", name="Аня", text="Я переехала в Казань 🏡", time=TIME),
    Turn(turn_id="t2", session_id="s1", role="assistant", text="Congratulations!", metadata={"mood": "glad"}),
    Turn(turn_id="D2:1", session_id="s2", role="user", text="My cat is called Barsik", time_zone="Europe/Moscow"),
    Turn(turn_id="D2:2", session_id="s2", role="assistant", text="A fine name for a cat"),
)
TURNS_JSON = [
    {"turn_id": "t1", "session_id": "s1", "role": "user", "name": "Аня", "text": "Я переехала в Казань 🏡",
     "time": "2024-05-03T21:30:00.25+03:00"},
    {"turn_id": "t2", "session_id": "s1", "role": "assistant", "text": "Congratulations!",
     "metadata": {"mood": "glad"}},
    {"turn_id": "D2:1", "session_id": "s2", "role": "user", "text": "My cat is called Barsik",
     "time_zone": "Europe/Moscow"},
    {"turn_id": "D2:2", "session_id": "s2", "role": "assistant", "text": "A fine name for a cat"},
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Step:
    """One call, as Python says it and as JSON says it."""

    method: str
    request: Mapping[str, Any]
    call: Callable[[Any, str], Any]


LIFE = (
    Step("ListSystems", {}, lambda client, space: client.list_systems()),
    Step("Describe", {}, lambda client, space: client.describe()),
    Step("AddTurns", {"turns": TURNS_JSON}, lambda client, space: client.add_turns(space, TURNS)),
    Step("Flush", {"timeout": "20s"}, lambda client, space: client.flush_once(space, timeout_s=20)),
    Step("AddTurns", {"turns": TURNS_JSON[:1]}, lambda client, space: client.add_turns(space, TURNS[:1])),
    Step("ListTurns", {}, lambda client, space: client.list_turns(space)),
    Step("ListMemories", {}, lambda client, space: client.list_memories(space)),
    Step("Retrieve", {"query": "cat Barsik"}, lambda client, space: client.retrieve(space, "cat Barsik")),
    Step(
        "Retrieve",
        {"query": "переехала", "top_k": 1, "filter": {"session_ids": ["s1"], "until": "2024-05-04T00:00:00Z"}},
        lambda client, space: client.retrieve(
            space, "переехала", top_k=1, session_ids=["s1"], until=datetime(2024, 5, 4, tzinfo=UTC)
        ),
    ),
    Step(
        "Forget",
        {"selector": {"turn_ids": ["t1", "t9"]}, "dry_run": True},
        lambda client, space: client.forget(space, turn_ids=["t1", "t9"], dry_run=True),
    ),
    Step(
        "Forget",
        {"selector": {"session_ids": ["s2"]}, "request_id": "r1"},
        lambda client, space: client.forget(space, session_ids=["s2"], request_id="r1"),
    ),
    Step("Retrieve", {"query": "cat Barsik"}, lambda client, space: client.retrieve(space, "cat Barsik")),
    Step("ListTurns", {}, lambda client, space: client.list_turns(space)),
    Step("Reset", {}, lambda client, space: client.reset(space)),
    Step("ListMemories", {}, lambda client, space: client.list_memories(space)),
    Step("ListTurns", {}, lambda client, space: client.list_turns(space)),
)

READERS: Mapping[str, Callable[[Any], Any]] = {
    "ListSystems": read_answers.systems,
    "Describe": read_answers.description,
    "AddTurns": read_answers.added,
    "Flush": read_answers.flushed,
    "ListTurns": read_answers.records,
    "ListMemories": read_answers.memories,
    "Retrieve": read_answers.retrieved,
    "Forget": read_answers.forgotten,
    "Reset": read_answers.reset_done,
}


class CommandLine(Protocol):
    """Something that sends one request as JSON."""

    def call(self, method: Method, request: Mapping[str, Any]) -> Said:
        """The answer."""


def live_blocking(url: str, key: str, space: str) -> list[Any]:
    with connect(url, system=HYBRID, key=key) as client:
        return [_whole(step.call(client, space)) for step in LIFE]


def _whole(answer: Any) -> Any:
    return list(answer) if isinstance(answer, Iterator) else answer


async def live_async(url: str, key: str, space: str) -> list[Any]:
    async with connect_async(url, system=HYBRID, key=key) as client:
        answers = []
        for step in LIFE:
            answer = step.call(client, space)
            answers.append(await answer if inspect.isawaitable(answer) else [each async for each in answer])
        return answers


def live_on_command_line(client: CommandLine, space: str) -> list[Any]:
    answers = []
    for step in LIFE:
        method = METHODS[step.method]
        names = {name: value for name, value in (("system", HYBRID), ("space_id", space)) if _has(method, name)}
        said = client.call(method, {**names, **step.request})
        assert said.status in (0, 200), said
        answers.append(READERS[step.method](from_json(method.response, said.body.encode())))
    return answers


def _has(method: Method, name: str) -> bool:
    return name in method.request.DESCRIPTOR.fields_by_name


def comparable(answers: list[Any]) -> list[str]:
    """The answers without their wall times, and with memory ids numbered as they appear."""
    numbers: dict[str, str] = {}
    uuid = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

    def plain(value: Any) -> Any:
        if is_dataclass(value) and not isinstance(value, type):
            return {name: each for name, each in asdict(value).items() if name != "timing"}
        return [plain(each) for each in value] if isinstance(value, list | tuple) else value

    texts = [json.dumps(plain(answer), default=str, ensure_ascii=False, sort_keys=True) for answer in answers]
    return [uuid.sub(lambda found: numbers.setdefault(found[0], f"m{len(numbers)}"), text) for text in texts]


@pytest.fixture(scope="module")
def expected(stack: WholeStack) -> list[str]:
    """What the blocking client gets over gRPC, looked at closely once."""
    answers = live_blocking(stack.grpc_url, stack.key, "life-expected")
    by_step = list(zip((step.method for step in LIFE), answers, strict=True))
    assert {summary.system: summary.ready for summary in answers[0]} == {HYBRID: True, DENSE: True}
    assert answers[1].system == HYBRID
    assert [result.duplicate for result in answers[4].results] == [True]
    assert [(record.turn_id, record.state) for record in answers[5]] == [(t.turn_id, "SEARCHABLE") for t in TURNS]
    assert [memory.text for memory in answers[6]] == [
        "Аня: Я переехала в Казань 🏡\nassistant: Congratulations!",
        "user: My cat is called Barsik\nassistant: A fine name for a cat",
    ]
    assert [source.turn_id for source in answers[7].memories[0].sources] == ["D2:1", "D2:2"]
    assert [(memory.time, len(memory.sources)) for memory in answers[8].memories] == [(TIME, 2)]
    assert (answers[9].erased_turn_ids, answers[9].not_found) == (("t1",), ("t9",))
    assert answers[10].erased_turn_ids == ("D2:1", "D2:2")
    assert [memory.sources[0].turn_id for memory in answers[11].memories] == ["t1"]
    assert [str(record.state) for record in answers[12]] == ["SEARCHABLE"] * 2 + ["FORGOTTEN"] * 2
    assert (answers[13].erased_memories, answers[13].erased_turns) == (1, 2), by_step[13]
    assert answers[14:] == [[], []]
    return comparable(answers)


@pytest.mark.parametrize("scheme", ["grpc", "http"])
def test_python_blocking(stack: WholeStack, expected: list[str], scheme: str) -> None:
    url = stack.grpc_url if scheme == "grpc" else stack.http_url
    assert comparable(live_blocking(url, stack.key, f"life-blocking-{scheme}")) == expected


@pytest.mark.parametrize("scheme", ["grpc", "http"])
def test_python_async(stack: WholeStack, expected: list[str], scheme: str) -> None:
    url = stack.grpc_url if scheme == "grpc" else stack.http_url
    assert comparable(asyncio.run(live_async(url, stack.key, f"life-async-{scheme}"))) == expected


@pytest.mark.parametrize("reflect", [False, True], ids=["schema", "reflection"])
def test_grpc_command_line(stack: WholeStack, expected: list[str], reflect: bool) -> None:
    client = BufCurl(address=stack.grpc_url.removeprefix("grpc://"), key=stack.key, reflect=reflect)
    assert comparable(live_on_command_line(client, f"life-buf-{reflect}")) == expected


@pytest.mark.skipif(curl_missing(), reason="curl is not installed")
def test_curl(stack: WholeStack, expected: list[str]) -> None:
    assert comparable(live_on_command_line(Curl(url=stack.http_url, key=stack.key), "life-curl")) == expected
