"""Answerer and judge against a model endpoint that behaves in every way: on the wire, with a scripted server."""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import formatdate
from typing import Any

import pytest
from aiohttp import web

from memdock import usage
from memdock_evaluator import waiting
from memdock_evaluator.answer import models
from memdock_evaluator.answer.answerer import Answer, Asked
from memdock_evaluator.answer.endpoint import ModelEndpoint, ModelSettings
from memdock_evaluator.answer.judge import ToJudge
from memdock_evaluator.answer.limiter import FIRST_AT_ONCE
from memdock_evaluator.answer.models import ChatModel
from memdock_evaluator.answer.opening import open_answerer, open_judge
from memdock_evaluator.answer.providers import Providers
from memdock_evaluator.faults import Fault, RunStoppedError
from memdock_evaluator.results.rows import Outcome, RetrievedMemory
from support.model_server import ModelServer, serve_models
from support.served import until

ITEM = ToJudge(
    question="What is my cat called", references=("Bublik", "The cat Bublik"), answer="Bublik", language="en"
)
ASKED = Asked(
    text="Как зовут кота?",
    date=datetime(2024, 10, 2, 10, 0, tzinfo=UTC),
    language="ru",
    zone=UTC,
    memories=(
        RetrievedMemory(rank=1, kind="", text="Кот Бублик", score=None, time="2024-03-04T20:15:00+00:00"),
        RetrievedMemory(rank=2, kind="", text="{question}", score=None, time=None),
    ),
)


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with serve_models(ModelServer()) as running:
        yield running


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "_FIRST_WAIT_S", 0.001)


def endpoint(server: ModelServer, *, purpose: str = "answer", timeout_s: float = 5.0) -> ModelEndpoint:
    return ModelEndpoint(purpose=purpose, url=server.url, model="test-model", key="secret-key", timeout_s=timeout_s)


async def completed(server: ModelServer, *, timeout_s: float = 5.0) -> str:
    model = ChatModel(endpoint(server, timeout_s=timeout_s))
    try:
        return (await model.complete("hello", seed=7)).text
    finally:
        await model.close()


async def fault(server: ModelServer, *, timeout_s: float = 5.0) -> Fault:
    with pytest.raises(Fault) as caught:
        await completed(server, timeout_s=timeout_s)
    return caught.value


def answer_of(status: int, **body: object) -> web.Response:
    return web.json_response({"error": {"message": "said so", **body}}, status=status)


async def test_the_request_is_at_temperature_0_with_the_seed(server: ModelServer) -> None:
    server.chat = lambda body: "hi"
    assert await completed(server) == "hi"
    assert server.requests == [
        (
            "chat",
            {
                "model": "test-model",
                "messages": [{"role": "user", "content": "hello"}],
                "temperature": 0.0,
                "seed": 7,
            },
        )
    ]


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503])
async def test_what_may_pass_is_tried_again(server: ModelServer, status: int) -> None:
    server.faults = [answer_of(status), answer_of(status)]
    assert await completed(server) == "ok"
    assert len(server.requests) == 3


async def test_it_waits_as_long_as_the_endpoint_asks(server: ModelServer) -> None:
    server.faults = [web.Response(status=429, headers={"Retry-After": "1"}, text="{}")]
    started = time.monotonic()
    assert await completed(server) == "ok"
    assert time.monotonic() - started >= 1.0


@pytest.mark.parametrize(("header", "wait"), [("Retry-After", "1"), ("retry-after-ms", "1000")])
async def test_while_an_endpoint_asks_to_wait_no_call_begins(server: ModelServer, header: str, wait: str) -> None:
    server.faults = [web.Response(status=503, headers={header: wait}, text="{}")]
    providers = Providers()
    model, limiter = ChatModel(endpoint(server), providers), providers.limiter(endpoint(server))
    first = asyncio.create_task(model.complete("first", seed=0))
    await until(lambda: limiter.limit < FIRST_AT_ONCE)
    started = time.monotonic()
    await asyncio.gather(first, *(model.complete(f"later {n}", seed=0) for n in range(5)))
    assert time.monotonic() - started >= 0.9
    assert [body["messages"][0]["content"] for _, body in server.requests].count("later 0") == 1
    assert len(server.requests) == 1 + 6
    await model.close()


async def test_a_date_is_waited_for_as_well(server: ModelServer) -> None:
    until_then = formatdate(time.time() + 2, usegmt=True)  # whole seconds: one at least
    server.faults = [web.Response(status=429, headers={"Retry-After": until_then}, text="{}")]
    started = time.monotonic()
    assert await completed(server) == "ok"
    assert time.monotonic() - started >= 0.9


async def test_concurrency_falls_to_what_the_endpoint_allows_and_climbs_back(server: ModelServer) -> None:
    server.allowed, server.latency_s = 6, 0.002
    server.overload_headers = {"retry-after-ms": "5"}
    providers = Providers()
    model = ChatModel(replace(endpoint(server), concurrency=32), providers)
    limiter = providers.limiter(endpoint(server))

    async def many(number: int) -> None:
        await asyncio.gather(*(model.complete(f"{n}", seed=0) for n in range(number)))

    await many(300)
    assert len(server.requests) == 300
    assert len(server.overloads) < 60, "not each call is refused, only the one too many of each climb"
    assert limiter.limit < 12
    server.allowed, refused = 1_000, len(server.overloads)
    await many(900)
    await model.close()
    assert len(server.overloads) == refused
    assert server.most_at_once > 20
    assert limiter.limit > 20


async def test_waiting_for_a_slot_is_no_try_and_costs_no_time_of_one(server: ModelServer) -> None:
    server.latency_s = 0.05
    model = ChatModel(replace(endpoint(server, timeout_s=0.2), tries=1, concurrency=1))
    replies = await asyncio.gather(*(model.complete("x", seed=0) for _ in range(8)))
    await model.close()
    assert [each.text for each in replies] == ["ok"] * 8


async def test_answerer_and_judge_of_one_provider_share_their_limit(server: ModelServer) -> None:
    server.latency_s = 0.01
    providers = Providers()
    one = replace(endpoint(server), concurrency=3)
    models = [ChatModel(replace(one, purpose=purpose), providers) for purpose in ("answer", "judge")]
    stranger = ChatModel(replace(one, key="another"), providers)
    await asyncio.gather(*(model.complete("x", seed=0) for model in models for _ in range(12)))
    assert server.most_at_once == 3
    await asyncio.gather(*(model.complete("x", seed=0) for model in (*models, stranger) for _ in range(12)))
    assert server.most_at_once == 6
    for model in (*models, stranger):
        await model.close()


async def test_an_endpoint_that_asks_for_an_hour_is_not_waited_for(server: ModelServer) -> None:
    server.faults = [web.Response(status=429, headers={"Retry-After": "3600"}, text="{}")]
    model = ChatModel(endpoint(server))
    for _ in range(3):
        with pytest.raises(Fault) as caught:
            await model.complete("x", seed=0)
        found = caught.value
        assert (found.outcome, found.reason) == (Outcome.INFRASTRUCTURE_ERROR, "PROVIDER_RATE_LIMITED")
    await model.close()
    assert "asked to wait 3600 s" in found.detail
    assert len(server.requests) == 1, "nor is it asked again within the hour"


async def test_500_for_good_is_an_infrastructure_error(server: ModelServer) -> None:
    server.faults = [answer_of(500) for _ in range(4)]
    found = await fault(server)
    assert (found.outcome, found.reason) == (Outcome.INFRASTRUCTURE_ERROR, "PROVIDER_UNREACHABLE")
    assert "test-model" in found.detail
    assert "500" in found.detail


@pytest.mark.parametrize(
    "garbage",
    [
        web.Response(text="<html>It works!</html>", content_type="text/html"),
        web.Response(text="{not json", content_type="application/json"),
        web.json_response({"hello": "world"}),
        web.json_response({"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": []}),
        web.json_response([1, 2]),
        web.json_response({"choices": {"message": {"content": "hi"}}}),
        web.json_response({"choices": "hi"}),
        web.json_response({"choices": [{"message": {"content": [{"type": "text", "text": "hi"}]}}]}),
        web.Response(text="[" * 100_000, content_type="application/json"),
        web.Response(text='{"choices": [' + "9" * 100_000, content_type="application/json"),
    ],
    ids=["html", "broken", "other", "no choices", "list", "object", "text", "parts", "deep", "number"],
)
async def test_garbage_is_tried_again_and_never_an_answer(server: ModelServer, garbage: web.Response) -> None:
    def same() -> web.Response:
        return web.Response(body=garbage.body, content_type=garbage.content_type)

    server.faults = [same()]
    assert await completed(server) == "ok"
    server.faults = [same() for _ in range(4)]
    found = await fault(server)
    assert (found.outcome, found.reason) == (Outcome.INFRASTRUCTURE_ERROR, "PROVIDER_PROTOCOL_ERROR")


async def test_an_endpoint_that_never_answers(server: ModelServer) -> None:
    server.faults = ["hang"] * 4
    found = await fault(server, timeout_s=0.1)
    assert (found.outcome, found.reason) == (Outcome.INFRASTRUCTURE_ERROR, "PROVIDER_TIMEOUT")
    assert "did not answer within 0.1 s" in found.detail


async def test_an_endpoint_that_does_not_answer_is_told_while_one_waits(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "SILENT_S", 0.02)
    server.faults = ["hang"]
    lines: list[str] = []
    model = ChatModel(endpoint(server, timeout_s=0.5), Providers(say=lines.append))
    assert (await model.complete("hello", seed=0)).text == "ok"
    await model.close()
    assert lines[0] == f"the answer model test-model at {server.url[7:-3]} has not answered for 0 s"


async def test_an_endpoint_that_says_a_little_for_ever_is_as_late_as_one_that_hangs() -> None:
    async def drip(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        while True:
            await response.write(b" ")
            await asyncio.sleep(0.02)

    app = web.Application()
    app.router.add_post("/v1/chat/completions", drip)
    runner = web.AppRunner(app, shutdown_timeout=0.2)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    model = ChatModel(ModelEndpoint(purpose="answer", url=url, model="m", timeout_s=0.2, tries=1))
    with pytest.raises(Fault, match=r"did not answer within 0\.2 s"):
        await model.complete("hello", seed=0)
    await model.close()
    await runner.cleanup()


async def test_a_cut_pair_of_surrogates_and_a_usage_that_is_none_spoil_no_answer(server: ModelServer) -> None:
    body = r'{"choices": [{"message": {"content": "so \ud83d\ude00 \ud83d"}}], "usage": {"prompt_tokens": "many"}}'
    server.faults = [web.Response(text=body, content_type="application/json")]
    model = ChatModel(endpoint(server))
    completion = await model.complete("x" * 400, seed=0)
    await model.close()
    assert (completion.text, completion.input_tokens, completion.estimated) == ("so \U0001f600 \ufffd", 100, True)


async def test_an_endpoint_that_is_not_there(server: ModelServer) -> None:
    server.url = "http://127.0.0.1:9/v1"
    found = await fault(server)
    assert (found.outcome, found.reason) == (Outcome.INFRASTRUCTURE_ERROR, "PROVIDER_UNREACHABLE")
    assert "cannot be reached" in found.detail


@pytest.mark.parametrize(
    ("status", "body", "sentence"),
    [
        (401, {}, "refuses the key .401.: check MEMDOCK_EVAL_ANSWER_KEY"),
        (403, {}, "refuses the key .403.: check MEMDOCK_EVAL_ANSWER_KEY"),
        (404, {}, "was not found .404.: check the address and the model's name"),
        (429, {"code": "insufficient_quota"}, "has no quota left"),
    ],
)
async def test_what_no_request_can_pass_stops_the_run(
    server: ModelServer, status: int, body: dict[str, str], sentence: str
) -> None:
    server.faults = [answer_of(status, **body)]
    with pytest.raises(RunStoppedError, match=sentence) as caught:
        await completed(server)
    assert "secret-key" not in str(caught.value)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("status", "body", "outcome", "reason"),
    [
        (400, {"code": "context_length_exceeded"}, Outcome.SYSTEM_ERROR, "PAYLOAD_TOO_LARGE"),
        (413, {}, Outcome.SYSTEM_ERROR, "PAYLOAD_TOO_LARGE"),
        (400, {"code": "content_filter"}, Outcome.REFUSED, "CONTENT_FILTERED"),
        (422, {}, Outcome.INFRASTRUCTURE_ERROR, "PROVIDER_UNREACHABLE"),
    ],
)
async def test_a_request_that_is_declined_is_not_sent_again(
    server: ModelServer, status: int, body: dict[str, str], outcome: Outcome, reason: str
) -> None:
    server.faults = [answer_of(status, **body)]
    found = await fault(server)
    assert (found.outcome, found.reason) == (outcome, reason)
    assert len(server.requests) == 1


async def test_a_reply_that_was_filtered_is_a_refusal(server: ModelServer) -> None:
    choice = {"index": 0, "finish_reason": "content_filter", "message": {"role": "assistant", "content": None}}
    server.faults = [
        web.json_response({"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]})
    ]
    assert (await fault(server)).outcome is Outcome.REFUSED


async def test_the_tokens_of_replies_that_cannot_be_used_are_counted_once(server: ModelServer) -> None:
    choice = {"index": 0, "finish_reason": "content_filter", "message": {"role": "assistant", "content": None}}
    used = {"prompt_tokens": 70, "completion_tokens": 5}
    server.faults = [answer_of(500), web.json_response({"choices": [choice], "usage": used})]
    with usage.collect() as meter:
        assert (await fault(server)).outcome is Outcome.REFUSED
    (counted,) = meter.models
    assert (counted.model, counted.purpose, counted.calls) == ("test-model", "answer", 1)
    assert (counted.input_tokens, counted.output_tokens) == (70, 5)


async def test_a_dead_endpoint_stops_the_run_instead_of_failing_every_question(server: ModelServer) -> None:
    model = ChatModel(ModelEndpoint(purpose="answer", url=server.url, model="m", tries=1))
    server.faults = [answer_of(500) for _ in range(30)]
    for _ in range(9):
        with pytest.raises(Fault):
            await model.complete("x", seed=0)
    with pytest.raises(RunStoppedError, match=r"failed 10 times in a row; the last time: .* answers 500"):
        await model.complete("x", seed=0)
    await model.close()


async def test_tokens_are_counted_by_the_endpoint_or_estimated_and_said_so(server: ModelServer) -> None:
    model = ChatModel(endpoint(server))
    counted = await model.complete("x" * 400, seed=0)
    assert (counted.input_tokens, counted.estimated) == (100, False)
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "ё" * 8}}
    server.faults = [
        web.json_response({"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]})
    ]
    estimated = await model.complete("x" * 400, seed=0)
    assert (estimated.input_tokens, estimated.output_tokens, estimated.estimated) == (100, 4, True)
    await model.close()


async def answered(server: ModelServer, **fields: Any) -> Answer:
    answerer = open_answerer(ModelSettings(endpoint=endpoint(server), **fields), ["ru", "en"], seed=5)
    try:
        return await answerer.answer(ASKED, repeat=2)
    finally:
        await answerer.close()


async def test_the_answer_prompt_has_memories_with_times_the_question_and_its_weekday(server: ModelServer) -> None:
    server.chat = lambda body: "<think>hm</think>Бублик"
    answer = await answered(server)
    assert (answer.text, answer.abstained) == ("Бублик", False)
    (_, body) = server.requests[0]
    prompt = body["messages"][0]["content"]
    assert "- [понедельник, 4 марта 2024 г., 20:15] Кот Бублик\n- {question}\n" in prompt
    assert "Сегодня среда, 2 октября 2024 г., 10:00." in prompt
    assert "Вопрос: Как зовут кота?" in prompt
    assert "Такой информации нет." in prompt
    assert body["seed"] == 7


async def test_an_answer_that_abstains_is_seen_as_such(server: ModelServer) -> None:
    server.chat = lambda body: "Такой информации нет."
    assert (await answered(server)).abstained


@pytest.mark.parametrize(
    ("form", "reply"),
    [("json", '<think>3?</think>{"verdict": 2, "reason": "same"}'), ("pollux", "Да [RESULT] 2 [END]")],
)
async def test_the_judge_sees_question_references_answer_and_rubric(server: ModelServer, form: str, reply: str) -> None:
    server.chat = lambda body: reply
    judge = open_judge(ModelSettings(endpoint=endpoint(server, purpose="judge"), form=form), ["en"], seed=0)
    verdict = await judge.judge(ITEM, repeat=0)
    await judge.close()
    assert (verdict.label, verdict.correct) == (2, True)
    prompt = server.requests[0][1]["messages"][0]["content"]
    for part in (
        ITEM.question,
        "Bublik\nThe cat Bublik",
        "0: The answer is wrong",
        "3: The answer is right in its key",
    ):
        assert part in prompt
    assert ("### Эталонный ответ:" in prompt) == (form == "pollux")


async def test_a_reply_without_a_verdict_is_asked_for_again_and_then_unscored(server: ModelServer) -> None:
    replies = iter(["correct!", "[RESULT] 2 [END]", '{"verdict": 9}'])
    server.chat = lambda body: next(replies)
    judge = open_judge(ModelSettings(endpoint=endpoint(server, purpose="judge")), ["en"], seed=0)
    verdict = await judge.judge(ITEM, repeat=1)
    await judge.close()
    assert (verdict.label, verdict.correct) == (None, None)
    assert "no verdict of the rubric, 3 times" in verdict.note
    assert [body["seed"] for _, body in server.requests] == [3, 4, 5]
    assert verdict.input_tokens == 3 * (len(server.requests[0][1]["messages"][0]["content"]) // 4)


async def test_the_second_try_of_the_judge_may_succeed(server: ModelServer) -> None:
    replies = iter(["hm", '{"verdict": 0, "reason": "other name"}'])
    server.chat = lambda body: next(replies)
    judge = open_judge(ModelSettings(endpoint=endpoint(server, purpose="judge")), ["en"], seed=0)
    verdict = await judge.judge(ITEM, repeat=0)
    await judge.close()
    assert (verdict.label, verdict.note) == (0, "other name")


@pytest.mark.parametrize(
    ("told", "counted"),
    [
        ("70", True),
        ("0", True),
        ("-1", False),
        ("true", False),
        ("1" + "0" * 30, False),
        ("3000000000", False),
        ("20000", False),
    ],
)
async def test_tokens_that_no_call_can_take_are_estimated(server: ModelServer, told: str, counted: bool) -> None:
    used = f'{{"prompt_tokens": {told}, "completion_tokens": 2}}'
    body = f'{{"choices": [{{"message": {{"content": "Murzik"}}}}], "usage": {used}}}'
    server.faults = [web.Response(text=body, content_type="application/json")]
    with usage.collect() as meter:
        model = ChatModel(endpoint(server))
        await model.complete("who is it? " * 4, seed=0)
        await model.close()
    (line,) = meter.models
    assert line.estimated is not counted
    assert (line.input_tokens, line.output_tokens) == ((int(told), 2) if counted else (11, 2))
