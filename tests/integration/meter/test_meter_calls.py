"""What passes through the meter: answers, counts, prices, tries, streams."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import openai
import pytest
import pytest_asyncio
from aiohttp import web

from support.meters import events, meter_of, piece, seen, usage_event, write_config
from support.model_server import ModelServer, serve_models
from support.served import until

ASKED: list[Any] = [{"role": "user", "content": "Как зовут кота?"}]


@pytest_asyncio.fixture
async def models() -> AsyncIterator[ModelServer]:
    async with serve_models(ModelServer(chat=lambda body: "Мурзик")) as server:
        yield server


async def test_both_kinds_are_answered_as_the_endpoint_does_and_counted_as_it_saw_them(
    models: ModelServer, tmp_path: Path
) -> None:
    async with meter_of(write_config(tmp_path, models.url)) as meter:
        client = meter.client()
        for _ in range(3):
            reply = await client.chat.completions.create(model="m", messages=ASKED, temperature=0.5, seed=7)
            assert reply.choices[0].message.content == "Мурзик"
        vectors = await client.embeddings.create(model="e", input=["ab", "cde"], encoding_format="float")
        assert [row.embedding[0] for row in vectors.data] == [2.0, 3.0]
        used = await meter.usage()
    assert (seen(models, "chat"), seen(models, "embeddings")) == (3, 1)
    assert models.requests[0][1] == {"model": "m", "messages": ASKED, "temperature": 0.5, "seed": 7}
    chat = used["chat m"]
    assert (chat["calls"], chat["requests"], chat["failed"], chat["estimated"]) == (3, 3, 0, False)
    assert (chat["input_tokens"], chat["output_tokens"]) == (3 * (len(ASKED[0]["content"]) // 4), 3 * 2)
    assert chat["money"] == pytest.approx((chat["input_tokens"] + 10 * chat["output_tokens"]) / 1e6)
    assert used["embeddings e"]["input_tokens"] == 5
    assert used["embeddings e"]["money"] is None


async def test_tokens_that_the_endpoint_does_not_count_are_estimated_and_marked(
    models: ModelServer, tmp_path: Path
) -> None:
    models.faults.append(web.json_response({"choices": [{"index": 0, "message": {"content": "да, кот"}}]}))
    async with meter_of(write_config(tmp_path, models.url)) as meter:
        client = meter.client()
        await client.chat.completions.create(model="m", messages=ASKED)
        line = (await meter.usage())["chat m"]
    words = len(("user" + ASKED[0]["content"]).encode())
    assert (line["input_tokens"], line["output_tokens"], line["estimated"]) == (-(-words // 4), 3, True)


async def test_usage_is_told_by_space_however_it_is_named(models: ModelServer, tmp_path: Path) -> None:
    async with meter_of(write_config(tmp_path, models.url)) as meter:
        await meter.client("/s/a/t/one").embeddings.create(model="e", input="a")
        client = meter.client()
        await client.embeddings.create(model="e", input="ab", extra_headers={"X-Memdock-Space": "two"})
        await client.embeddings.create(model="e", input="abc")
        assert (await meter.usage("/s/a/t/one"))["embeddings e"]["input_tokens"] == 1
        assert (await meter.usage("/s/a/t/two"))["embeddings e"]["input_tokens"] == 2
        assert (await meter.usage())["embeddings e"]["input_tokens"] == 6
        assert await meter.usage(since=4_000_000_000) == {}


@pytest.mark.parametrize(
    "fault",
    [
        web.Response(status=500),
        web.Response(status=429, headers={"Retry-After": "0.01"}),
        web.Response(status=503, headers={"retry-after-ms": "10"}),
        web.Response(body=b"{", content_type="application/json"),
        web.Response(body=b"", content_type="application/json"),
        web.json_response({"choices": []}),
    ],
    ids=["500", "429", "503", "malformed", "empty", "nothing-in-it"],
)
async def test_a_fault_is_tried_again_and_each_try_is_counted(
    models: ModelServer, tmp_path: Path, fault: web.Response
) -> None:
    models.faults.append(fault)
    async with meter_of(write_config(tmp_path, models.url)) as meter:
        client = meter.client()
        raw = await client.chat.completions.with_raw_response.create(model="m", messages=ASKED)
        line = (await meter.usage())["chat m"]
    assert raw.parse().choices[0].message.content == "Мурзик"
    assert raw.headers["X-Memdock-Usage"] == f"requests=2 input={line['input_tokens']} output=2 estimated=0"
    assert (line["calls"], line["requests"], line["failed"]) == (1, 2, 0)
    assert seen(models, "chat") == 2


@pytest.mark.parametrize("told", ["true", "1" + "0" * 30, "9999999999999999999", "-1"])
async def test_counts_that_no_call_can_have_are_estimated(models: ModelServer, tmp_path: Path, told: str) -> None:
    choice = '{"index": 0, "message": {"role": "assistant", "content": "four"}, "finish_reason": "stop"}'
    for inward, outward in ((told, "1"), ("9", told)):
        used = f'"prompt_tokens": {inward}, "completion_tokens": {outward}'
        body = f'{{"choices": [{choice}], "usage": {{{used}}}}}'
        models.faults.append(web.Response(text=body, content_type="application/json"))
    async with meter_of(write_config(tmp_path, models.url)) as meter:
        for _ in range(2):
            await meter.client().chat.completions.create(model="m", messages=ASKED)
        line = (await meter.usage())["chat m"]
    assert (line["calls"], line["failed"], line["estimated"]) == (2, 0, True)
    assert 0 < line["input_tokens"] < 100
    assert 0 < line["output_tokens"] < 20


async def test_what_does_not_get_better_is_told_in_the_endpoints_words(models: ModelServer, tmp_path: Path) -> None:
    refusal = {"error": {"message": "the model knows no such tool", "code": "bad_tool", "type": "x", "param": None}}
    models.faults.append(web.json_response(refusal, status=400))
    models.faults.extend(web.Response(status=500) for _ in range(3))
    async with meter_of(write_config(tmp_path, models.url)) as meter:
        client = meter.client(tries=3)
        with pytest.raises(openai.BadRequestError, match="no such tool"):
            await client.chat.completions.create(model="m", messages=ASKED)
        with pytest.raises(openai.InternalServerError):
            await meter.client().chat.completions.create(model="m", messages=ASKED)
        line = (await meter.usage())["chat m"]
    assert (line["calls"], line["requests"], line["failed"]) == (2, 4, 2)
    assert seen(models, "chat") == 4


async def test_a_wait_longer_than_the_bound_is_passed_on(models: ModelServer, tmp_path: Path) -> None:
    models.faults.append(web.Response(status=429, headers={"Retry-After": "3600"}))
    async with meter_of(write_config(tmp_path, models.url)) as meter:
        client = meter.client()
        with pytest.raises(openai.RateLimitError) as refused:
            await client.chat.completions.create(model="m", messages=ASKED)
    assert refused.value.response.headers["Retry-After"] == "3600"
    assert seen(models, "chat") == 1


async def test_an_endpoint_that_is_not_there(tmp_path: Path, unused_tcp_port: int) -> None:
    upstream = {"models": {"url": f"http://127.0.0.1:{unused_tcp_port}/v1", "tries": 1}}
    async with meter_of(write_config(tmp_path, "http://x", upstreams=upstream)) as meter:
        client = meter.client()
        with pytest.raises(openai.InternalServerError, match="cannot be reached"):
            await client.chat.completions.create(model="m", messages=ASKED)


async def streamed(client: openai.AsyncOpenAI, **more: Any) -> tuple[str, list[Any]]:
    """The text of a streamed reply, and its events."""
    stream = await client.chat.completions.create(model="m", messages=ASKED, stream=True, **more)
    found = [event async for event in stream]
    return "".join(event.choices[0].delta.content or "" for event in found if event.choices), found


@pytest.mark.parametrize("asks", [False, True], ids=["without-usage", "with-usage"])
async def test_a_stream_passes_as_it_is_and_its_usage_is_read(models: ModelServer, tmp_path: Path, asks: bool) -> None:
    models.faults.append(events(piece("Мур"), piece("зик"), usage_event(11, 7), "[DONE]"))
    options = {"stream_options": {"include_usage": True}} if asks else {}
    async with meter_of(write_config(tmp_path, models.url)) as meter:
        client = meter.client()
        text, found = await streamed(client, **options)
        line = (await meter.usage())["chat m"]
    assert text == "Мурзик"
    assert len(found) == 2 + asks
    assert models.requests[0][1]["stream_options"] == {"include_usage": True}
    assert (line["input_tokens"], line["output_tokens"], line["estimated"]) == (11, 7, False)


async def test_a_stream_that_is_cut_never_looks_whole(models: ModelServer, tmp_path: Path) -> None:
    models.faults.append(events(piece("Мур")))
    asked = {"model": "m", "messages": ASKED, "stream": True}
    async with meter_of(write_config(tmp_path, models.url)) as meter:
        with pytest.raises(aiohttp.ClientError):
            async with meter.session.post(f"{meter.root}/s/a/v1/chat/completions", json=asked) as answer:
                await answer.read()
        line = (await meter.usage())["chat m"]
    assert (line["calls"], line["failed"], seen(models, "chat")) == (1, 1, 1)
    said_bytes = sum(len(each["content"].encode()) + len(each["role"]) for each in ASKED)
    assert (line["input_tokens"], line["output_tokens"], line["estimated"]) == (-(-said_bytes // 4), 2, True)
    assert line["money"] > 0


async def test_a_stream_that_is_cut_after_its_usage_is_counted_as_that_says(
    models: ModelServer, tmp_path: Path
) -> None:
    models.faults.append(events(piece("Мур"), usage_event(11, 7)))
    asked = {"model": "m", "messages": ASKED, "stream": True}
    async with meter_of(write_config(tmp_path, models.url)) as meter:
        with pytest.raises(aiohttp.ClientError):
            async with meter.session.post(f"{meter.root}/s/a/v1/chat/completions", json=asked) as answer:
                await answer.read()
        line = (await meter.usage())["chat m"]
    assert (line["failed"], line["input_tokens"], line["output_tokens"], line["estimated"]) == (1, 11, 7, False)


async def test_a_stream_that_fails_before_its_first_piece_is_tried_again(models: ModelServer, tmp_path: Path) -> None:
    models.faults += [web.Response(status=500), events(piece("да"), usage_event(1, 1), "[DONE]")]
    async with meter_of(write_config(tmp_path, models.url)) as meter:
        client = meter.client()
        assert (await streamed(client))[0] == "да"
    assert seen(models, "chat") == 2


async def test_a_caller_that_leaves_is_not_paid_for_any_longer_and_is_counted(
    models: ModelServer, tmp_path: Path
) -> None:
    models.faults.append("hang")
    async with meter_of(write_config(tmp_path, models.url)) as meter:
        client = meter.client()
        asking = asyncio.create_task(client.chat.completions.create(model="m", messages=ASKED))
        await until(lambda: bool(models.requests))
        asking.cancel()
        async with asyncio.timeout(10):
            while not (used := await meter.usage()):  # noqa: ASYNC110 - a test looks from outside
                await asyncio.sleep(0)
    line = used["chat m"]
    assert (line["calls"], line["failed"], line["requests"], line["estimated"]) == (1, 1, 1, True)
    assert line["input_tokens"] > 0


async def test_calls_at_once_are_bounded_for_each_system_alone(models: ModelServer, tmp_path: Path) -> None:
    models.faults.append("hang")
    systems = {"a": {"chat": "models", "concurrency": 1}, "b": {"chat": "models"}}
    async with meter_of(write_config(tmp_path, models.url, systems=systems)) as meter:
        stuck = asyncio.create_task(meter.client().chat.completions.create(model="m", messages=ASKED))
        await until(lambda: bool(models.requests))
        waiting = asyncio.create_task(meter.client().chat.completions.create(model="m", messages=ASKED))
        await meter.client("/s/b").chat.completions.create(model="m", messages=ASKED)
        assert not waiting.done()
        stuck.cancel()
        await waiting
    assert seen(models, "chat") == 3
