"""Who may pass and how far: keys, budgets, requests that are none, recordings."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import openai
import pytest
import pytest_asyncio

from support.logs import logged
from support.meters import events, meter_of, piece, seen, usage_event, write_config
from support.model_server import ModelServer, serve_models
from support.served import until

ASKED: list[Any] = [{"role": "user", "content": "pomegranate-7719"}]


@pytest_asyncio.fixture
async def models() -> AsyncIterator[ModelServer]:
    async with serve_models(ModelServer(chat=lambda body: "ok persimmon-5512")) as server:
        yield server


async def test_a_budget_stops_one_system_and_no_other(models: ModelServer, tmp_path: Path) -> None:
    models.chat = lambda body: "x" * 40_000  # a hundred thousandth of a budget's unit a token: 0.1 a reply
    systems = {"a": {"chat": "models", "budget": 0.15}, "b": {"chat": "models"}}
    config = write_config(tmp_path, models.url, systems=systems)
    async with meter_of(config) as meter:
        ask = meter.client(tries=3).chat.completions.create
        await ask(model="m", messages=ASKED)
        await ask(model="m", messages=ASKED)
        with pytest.raises(openai.RateLimitError, match=r"the budget of a is spent: 0\.2.* of 0\.15 USD"):
            await ask(model="m", messages=ASKED)
        assert (await meter.usage())["chat m"]["calls"] == 3, "the client was told not to try again"
        await meter.client("/s/b").chat.completions.create(model="m", messages=ASKED)
        with pytest.raises(openai.BadRequestError, match="does not know other: add its price"):
            await ask(model="other", messages=ASKED)
    async with meter_of(config) as meter:
        with pytest.raises(openai.RateLimitError, match="is spent"):
            await meter.client().chat.completions.create(model="m", messages=ASKED)
    assert seen(models, "chat") == 3


async def test_what_a_caller_that_left_has_cost_counts_for_the_budget(models: ModelServer, tmp_path: Path) -> None:
    models.faults.append("hang")
    systems = {"a": {"chat": "models", "budget": 0.001, "concurrency": 1}}
    long: list[Any] = [{"role": "user", "content": "x" * 8000}]  # 2000 tokens of a millionth
    async with meter_of(write_config(tmp_path, models.url, systems=systems)) as meter:
        ask = meter.client().chat.completions.create
        left = asyncio.create_task(ask(model="m", messages=long))
        await until(lambda: bool(models.requests))
        waiting = asyncio.create_task(ask(model="m", messages=ASKED))
        left.cancel()
        with pytest.raises(openai.RateLimitError, match=r"the budget of a is spent: 0\.0020 of 0\.001 USD"):
            await waiting
        assert (await meter.usage())["chat m"]["money"] == pytest.approx(0.002, rel=0.01)
    assert seen(models, "chat") == 1


async def test_a_key_names_its_system_and_opens_no_other(models: ModelServer, tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.key").write_text(f"secret-of-{name}\n")
    systems = {name: {"embeddings": "models", "key_file": f"{name}.key"} for name in "ab"}
    async with meter_of(write_config(tmp_path, models.url, systems=systems)) as meter:
        await meter.client("", key="secret-of-b").embeddings.create(model="e", input="x")
        await meter.client("/s/a", key="secret-of-a").embeddings.create(model="e", input="x")
        for prefix, key in (
            ("/s/a", "secret-of-b"),
            ("/s/a", "none"),
            ("", "none"),
            ("", ""),
            ("", "ключ"),
            ("", "\udcff"),
        ):
            async with meter.session.post(
                f"{meter.root}{prefix}/v1/embeddings",
                json={"model": "e", "input": "x"},
                headers={"Authorization": f"Bearer {key}"},
            ) as answer:
                assert (answer.status, (await answer.json())["error"]["code"]) == (401, "invalid_api_key")
        async with meter.session.get(f"{meter.root}/s/a/usage") as answer:
            assert answer.status == 401
    assert seen(models, "embeddings") == 2


async def test_an_endpoint_gets_its_own_key_and_never_the_callers(models: ModelServer, tmp_path: Path) -> None:
    shown: list[str] = []

    (tmp_path / "models.key").write_text("upstream-secret")
    upstreams = {"models": {"url": models.url, "key_file": "models.key"}}
    models.see = lambda request: shown.append(request.headers["Authorization"])
    async with meter_of(write_config(tmp_path, models.url, upstreams=upstreams)) as meter:
        await meter.client(key="callers-own").embeddings.create(model="e", input="x")
    assert shown == ["Bearer upstream-secret"]


@pytest.mark.parametrize(
    ("path", "body", "status", "said"),
    [
        ("/s/a/v1/chat/completions", b"{", 400, "the request's body is no JSON"),
        ("/s/a/v1/chat/completions", b"[]", 400, "is no JSON object"),
        ("/s/a/v1/chat/completions", b'{"messages": [1]}', 400, "the field model is missing"),
        ("/s/a/v1/chat/completions", b'{"model": "m"}', 400, "the field messages is missing or empty"),
        ("/s/a/v1/embeddings", b'{"model": "m", "input": []}', 400, "the field input is missing or empty"),
        ("/s/nobody/v1/embeddings", b"{}", 404, "has no system nobody"),
        ("/s/a/v1/responses", b"{}", 404, "chat completions, embeddings and models are served"),
        ("/v1/embeddings", b"{}", 401, "the key is none"),
        ("/s/a/t/%20/v1/embeddings", b'{"model": "m", "input": "x"}', 400, "a space's tag"),
    ],
)
async def test_what_is_no_request_is_refused_by_its_field(
    models: ModelServer, tmp_path: Path, path: str, body: bytes, status: int, said: str
) -> None:
    async with (
        meter_of(write_config(tmp_path, models.url)) as meter,
        meter.session.post(meter.root + path, data=body) as answer,
    ):
        assert (answer.status, answer.headers["X-Should-Retry"]) == (status, "false")
        assert said in (await answer.json())["error"]["message"]
    assert not models.requests


async def test_a_system_reaches_only_what_it_was_given(models: ModelServer, tmp_path: Path) -> None:
    async with meter_of(write_config(tmp_path, models.url, systems={"a": {"embeddings": "models"}})) as meter:
        with pytest.raises(openai.NotFoundError, match="gives a no chat endpoint"):
            await meter.client().chat.completions.create(model="m", messages=ASKED)


async def test_recordings_give_the_same_bytes_without_an_endpoint(models: ModelServer, tmp_path: Path) -> None:
    models.faults.append(events(piece("да"), usage_event(3, 1), "[DONE]"))

    async def ask(**changes: Any) -> list[bytes]:
        found = []
        async with meter_of(write_config(tmp_path, models.url, **changes)) as meter:
            for path, body in REQUESTS:
                async with meter.session.post(f"{meter.root}/s/a/t/one/v1{path}", json=body) as answer:
                    assert answer.status == 200
                    found.append(await answer.read())
            (line,) = [line for name, line in (await meter.usage()).items() if name == "chat m"]
            used.append(line)
        return found

    used: list[dict[str, Any]] = []
    recorded = await ask(mode="record")
    requests = len(models.requests)
    gone = {"models": {"url": "http://127.0.0.1:9/v1", "tries": 1}}
    assert await ask(mode="replay", upstreams=gone) == recorded
    assert await ask(mode="record") == recorded, "what is recorded is not asked for again"
    assert len(models.requests) == requests
    assert [line["replayed"] for line in used] == [0, 2, 4]
    assert {line["money"] for line in used} == {used[0]["money"]}
    assert {line["input_tokens"] for line in used} == {used[0]["input_tokens"]}
    assert used[2]["replayed_tokens"] == 2 * (used[0]["input_tokens"] + used[0]["output_tokens"])


REQUESTS = (
    ("/chat/completions", {"model": "m", "messages": ASKED, "stream": True}),
    ("/chat/completions", {"model": "m", "messages": ASKED, "temperature": 0.3}),
    ("/embeddings", {"model": "e", "input": ["x", "y"]}),
)


async def test_replay_says_what_is_not_recorded_and_asks_nobody(models: ModelServer, tmp_path: Path) -> None:
    async with meter_of(write_config(tmp_path, models.url, mode="record")) as meter:
        await meter.client("/s/a/t/one").chat.completions.create(model="m", messages=ASKED)
    async with meter_of(write_config(tmp_path, models.url, mode="replay")) as meter:
        await meter.client("/s/a/t/one").chat.completions.create(messages=ASKED, model="m")
        for prefix, more in (("/s/a/t/two", {}), ("/s/a/t/one", {"temperature": 0.1}), ("/s/a/t/one", {"seed": 1})):
            with pytest.raises(openai.NotFoundError, match="there is no recording"):
                await meter.client(prefix).chat.completions.create(model="m", messages=ASKED, **more)
    assert seen(models, "chat") == 1


async def test_a_space_that_is_forgotten_leaves_nothing_of_its_recordings(models: ModelServer, tmp_path: Path) -> None:
    async with meter_of(write_config(tmp_path, models.url, mode="record")) as meter:
        for space in ("one", "two"):
            await meter.client(f"/s/a/t/{space}").chat.completions.create(model="m", messages=ASKED)
        assert _holds(tmp_path, b"persimmon-5512")
        assert not _holds(tmp_path, b"pomegranate-7719"), "what is asked is kept as a hash"
        for space in ("one", "two"):
            async with meter.session.delete(f"{meter.root}/s/a/t/{space}/recordings") as answer:
                assert await answer.json() == {"deleted": 1}
        assert not _holds(tmp_path, b"persimmon-5512")
        async with meter.session.delete(f"{meter.root}/s/a/recordings") as answer:
            assert (answer.status, (await answer.json())["error"]["code"]) == (400, "space_missing")


def _holds(folder: Path, word: bytes) -> bool:
    return any(word in path.read_bytes() for path in folder.glob("meter.sqlite*"))


async def test_logs_and_metrics_hold_no_content_and_no_key(models: ModelServer, tmp_path: Path) -> None:
    (tmp_path / "a.key").write_text("secret-of-a")
    systems = {"a": {"chat": "models", "key_file": "a.key"}}
    with logged() as read:
        async with meter_of(write_config(tmp_path, models.url, systems=systems)) as meter:
            client = meter.client("/s/a/t/space-8841", key="secret-of-a")
            await client.chat.completions.create(model="m", messages=ASKED)
            with pytest.raises(openai.NotFoundError):
                await client.embeddings.create(model="m", input="pomegranate-7719")
            async with meter.session.get(f"{meter.root}/metrics") as answer:
                metrics = await answer.text()
        told = json.dumps(read())
    assert 'memdock_meter_calls_total{kind="chat",status="200",system="a"} 1.0' in metrics
    for word in ("pomegranate-7719", "persimmon-5512", "secret-of-a", "space-8841"):
        assert word not in told + metrics
