"""What only MemOS does: either memory, what its replies may be, its modes, and what its prompts show."""

import asyncio
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from memdock.adapter.postgres import EmbeddedPostgres
from memdock.errors import MemdockError
from memdock.types import Feature, TurnState
from support.adapters import (
    MEMOS,
    MEMOS_LIGHT,
    SAID,
    Adapter,
    RunningAdapter,
    declares,
    environment,
    fill,
    memos_chat,
    running,
    space,
    turn,
)
from support.model_server import ModelServer
from support.processes import clean_environment

BOTH = (MEMOS, MEMOS_LIGHT)


def wanted(adapter: Adapter) -> Adapter:
    if adapter.name not in os.environ.get("ADAPTERS", adapter.name).split():
        pytest.skip("the variable ADAPTERS leaves it out")
    return adapter


@pytest.fixture(scope="module", params=BOTH, ids=str)
def adapter(request: pytest.FixtureRequest) -> Adapter:
    return wanted(request.param)


@pytest.fixture
def answers(served: RunningAdapter) -> Iterator[Callable[[Any], None]]:
    """Sets what the chat model answers in place of the usual."""

    def answer(reply: Any) -> None:
        served.models.chat = lambda body: reply if isinstance(reply, str) else json.dumps(reply)

    yield answer
    served.models.chat = memos_chat


def memory(text: str, **more: Any) -> dict[str, Any]:
    return {"key": "k", "memory_type": "UserMemory", "value": text, "tags": [], **more}


@pytest.mark.parametrize(
    "reply",
    [
        "There is nothing to remember here.",
        {"memories": []},
        {"memory list": "persimmon"},
        {"memory list": [memory("persimmon"), {"key": "without a value"}]},
        {"memory list": [memory("  ")]},
    ],
    ids=["no JSON", "another object", "no list", "a memory without a text", "an empty text"],
)
def test_a_reply_of_another_form_is_a_failure_and_leaves_nothing(
    served: RunningAdapter, answers: Callable[[Any], None], reply: Any
) -> None:
    name = space()
    answers(reply)
    with served.client() as client:
        client.add_turns(name, [turn("t1", "persimmon is my cat")])
        (failed,) = client.flush(name, timeout_s=60).failed
        assert failed.error is not None
        assert (failed.error.reason, failed.error.retryable) == ("PROVIDER_PROTOCOL_ERROR", True)
        assert list(client.list_memories(name)) == []


@pytest.mark.parametrize("odd", [{"memory_type": "WorkingMemory"}, {"tags": "cat"}, {"key": None}], ids=str)
def test_a_memory_with_an_odd_label_is_kept(
    served: RunningAdapter, answers: Callable[[Any], None], odd: dict[str, Any]
) -> None:
    name = space()
    answers({"memory list": [memory("persimmon is a cat", **odd)], "summary": None})
    with served.client() as client:
        fill(client, name, turn("t1", "persimmon is my cat"))
        assert [each.text for each in client.retrieve(name, "persimmon").memories] == ["persimmon is a cat"]


def test_who_spoke_and_when_stands_in_the_prompt(served: RunningAdapter) -> None:
    said = replace(turn("t1", "persimmon is my cat"), name="Anna", time_zone="Asia/Tokyo")
    with served.client() as client:
        fill(client, space(), said)
    (prompt,) = [body["messages"][-1]["content"] for kind, body in served.models.requests if kind == "chat"]
    assert "[Saturday 2019-05-04 19:30+09:00]: Anna: persimmon is my cat" in prompt


@pytest.mark.parametrize("role", ["user", "assistant", "tool"])
def test_what_any_role_says_is_kept(served: RunningAdapter, role: str) -> None:
    name = space()
    with served.client() as client:
        fill(client, name, replace(turn("t1", "persimmon is my cat"), role=role))
        (found,) = client.retrieve(name, "persimmon").memories
        assert "persimmon is my cat" in found.text


def test_a_search_keeps_to_sessions_and_times(served: RunningAdapter) -> None:
    name, later = space(), SAID + timedelta(days=30)
    with served.client() as client:
        turns = [
            turn("t1", "persimmon one"),
            turn("t2", "persimmon two", "s2", later),
            turn("t3", "persimmon", "s3", None),
        ]
        fill(client, name, *turns)

        def found(**narrowed: Any) -> set[str]:
            return {each.sources[0].turn_id for each in client.retrieve(name, "persimmon", **narrowed).memories}

        assert found() == {"t1", "t2", "t3"}
        assert found(session_ids=["s2", "s3"]) == {"t2", "t3"}
        assert found(since=later) == {"t2"}
        assert found(until=later) == {"t1"}
        assert found(session_ids=["s1"], since=later) == set()


def test_an_embedder_is_asked_for_no_number_of_dimensions_which_many_refuse(served: RunningAdapter) -> None:
    with served.client() as client:
        fill(client, space(), turn("t1", "persimmon is my cat"))
    asked = [body for kind, body in served.models.requests if kind == "embeddings"]
    assert asked
    assert all("dimensions" not in body for body in asked)


def test_words_that_mean_files_or_tools_to_memos_are_words(served: RunningAdapter) -> None:
    name = space()
    with served.client() as client:
        fill(client, name, turn("t1", "persimmon tool: Filename: <tool_schema>[]</tool_schema>"))
        (found,) = client.retrieve(name, "persimmon").memories
        assert "Filename:" in found.text
        assert served.seen("chat") == 1


def test_an_id_that_is_none_of_its_own_is_not_found(served: RunningAdapter) -> None:
    with served.client() as client:
        name = space()
        fill(client, name, turn("t1", "persimmon is my cat"))
        assert client.forget(name, memory_ids=["of nobody"]).not_found == ("of nobody",)


def test_no_file_of_its_own_holds_a_text(served: RunningAdapter) -> None:
    with served.client() as client:
        fill(client, space(), turn("t1", "durian is my dog"))
    stores = {"storage.sqlite"} if served.adapter is MEMOS_LIGHT else {"memos.memories"}
    assert {place.partition(": ")[0] for place in served.places_of(["durian"])} <= {
        *stores,
        "turns.sqlite",
        "turns.sqlite-wal",
    }


def test_a_turn_longer_than_a_prompt_is_read_in_parts(served: RunningAdapter) -> None:
    if served.adapter is MEMOS_LIGHT:
        pytest.skip("the light memory asks once")
    name, words = space(), [f"persimmon{number} is a cat." for number in range(600)]
    with served.client() as client:
        fill(client, name, turn("t1", " ".join(words)))
        texts = [each.text for each in client.list_memories(name)]
    assert len(texts) > 1
    assert all(any(word in text for text in texts) for word in words)


@pytest.fixture(scope="module")
def fast(models: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningAdapter]:
    flags = {"--add": "fast", "--search": "fine", "--dedup": "no", "--unit": "turn"}
    with running(wanted(MEMOS), tmp_path_factory.mktemp("fast"), models, flags=flags) as started:
        yield started


def test_a_fast_add_keeps_what_was_said_without_a_chat_call(fast: RunningAdapter, models: ModelServer) -> None:
    name = space()
    with fast.client() as client:
        assert not declares(client, Feature.NO_MEMORY)
        fill(client, name, turn("t1", "persimmon is my cat"))
        assert fast.seen("chat") == 0
        (found,) = client.list_memories(name)
    assert (found.text.strip(), found.time) == ("user: [Saturday 2019-05-04 10:30+00:00]: persimmon is my cat", SAID)


def test_what_a_system_says_is_not_kept(fast: RunningAdapter) -> None:
    name = space()
    with fast.client() as client:
        fill(client, name, replace(turn("t1", "be brief"), role="system"))
        assert [each.state for each in client.list_turns(name)] == [TurnState.NO_MEMORY]
        assert client.forget(name, turn_ids=["t1"]).erased_turn_ids == ("t1",)


def test_a_fine_search_rewrites_what_is_in_the_store(fast: RunningAdapter, models: ModelServer) -> None:
    name = space()
    with fast.client() as client:
        assert not declares(client, Feature.SCORES)
        fill(client, name, turn("t1", "persimmon is my cat"))
        (held,) = client.list_memories(name)
        models.chat = fine_search
        try:
            (found,) = client.retrieve(name, "what is persimmon").memories
        finally:
            models.chat = memos_chat
    assert (found.memory_id, found.text, found.score, found.time) == (held.memory_id, "persimmon: the cat", None, SAID)
    assert [each.turn_id for each in found.sources] == ["t1"]


def fine_search(body: dict[str, Any]) -> str:
    """The question as it is; its memories in other words."""
    prompt = body["messages"][-1]["content"]
    if "rephrased_instruction" in prompt:
        return json.dumps(
            {"memories": ["persimmon"], "keys": [], "tags": [], "rephrased_instruction": "", "goal_type": "default"}
        )
    return "<answer>\n- [0] persimmon: the cat\n</answer>"


async def test_a_database_that_is_away_is_told_and_never_taken_for_nothing_found(
    tmp_path: Path, models: ModelServer
) -> None:
    database = EmbeddedPostgres(tmp_path / "database")
    await database.start()
    try:
        with running(wanted(MEMOS), tmp_path, models, flags={"--database": database.url}) as started:
            address = f"http://127.0.0.1:{started.process.ports()['http']}/readyz"

            async def ready() -> int:
                async with aiohttp.ClientSession() as session, session.get(address) as answer:
                    return answer.status

            assert await ready() == 200
            await database.stop()
            assert await ready() == 503
            with started.client() as client, pytest.raises(MemdockError, match="PostgreSQL cannot be used now"):
                await asyncio.to_thread(client.retrieve, space(), "persimmon")
            await database.start()
            async with asyncio.timeout(60):
                while await ready() != 200:  # noqa: ASYNC110 - a test looks from outside
                    await asyncio.sleep(0.1)
    finally:
        await database.stop()


def test_what_cannot_be_opened_is_told_in_a_sentence(tmp_path: Path) -> None:
    command = [
        str(environment("memos") / "memdock-memos"),
        "serve",
        "--data",
        str(tmp_path),
        "--embedder-dimension",
        "64",
    ]
    models = [
        "--chat-url",
        "http://h/v1",
        "--chat-model",
        "m",
        "--embedder-url",
        "http://h/v1",
        "--embedder-model",
        "e",
    ]
    for more, said in (
        (["--memory", "light", "--add", "fast"], "--add is for --memory product alone"),
        (["--database", "postgresql://nobody@127.0.0.1:1/x"], "cannot serve: PostgreSQL cannot be used now"),
    ):
        refused = subprocess.run(
            [*command, *models, *more], capture_output=True, text=True, check=False, env=clean_environment()
        )
        assert refused.returncode != 0
        assert said in refused.stderr
        assert "Traceback" not in refused.stderr
