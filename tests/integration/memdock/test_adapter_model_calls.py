"""Model calls of a framework, seen on the wire: counted, tagged, and their failures kept."""

import asyncio
import json
import math
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import openai
import pytest
from aiohttp import web

from memdock import usage
from memdock.adapter import model_calls as seen
from memdock.adapter.framework_calls import FrameworkCalls
from memdock.errors import MemdockError
from support.model_server import ModelServer
from support.model_thread import models_in_thread
from support.processes import free_port

ASKED: list[Any] = [{"role": "user", "content": "who"}]
JSON = {"type": "json_object"}


@pytest.fixture(autouse=True)
def watching(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Looks at what is sent, and leaves the libraries as they were."""
    for name in seen.CLIENTS:
        with suppress(ImportError):
            library = __import__(name)
            for client in (library.Client, library.AsyncClient):
                monkeypatch.setattr(client, "send", client.send)
    monkeypatch.setattr(ThreadPoolExecutor, "submit", ThreadPoolExecutor.submit)
    seen.watch.cache_clear()
    seen.watch()
    yield
    seen.watch.cache_clear()


@pytest.fixture
def models() -> Iterator[ModelServer]:
    with models_in_thread(ModelServer(chat=lambda body: '{"memory": []}')) as server:
        yield server


def client(server: ModelServer, tries: int = 1) -> openai.OpenAI:
    return openai.OpenAI(base_url=server.url, api_key="none", max_retries=tries - 1)


def ask(server: ModelServer, tries: int = 1, **more: Any) -> None:
    with client(server, tries) as made:
        made.chat.completions.create(model="m", messages=ASKED, **more)


def test_each_call_is_counted_by_model_and_purpose_and_bears_its_space(models: ModelServer) -> None:
    tags: list[str | None] = []
    models.see = lambda request: tags.append(request.headers.get(seen.SPACE_HEADER))
    with usage.collect() as counted, seen.model_calls("space-1", "extraction") as calls, client(models) as made:
        made.chat.completions.create(model="m", messages=ASKED)
        made.embeddings.create(model="e", input=["ab", "cde"])
        calls.check()
    chat, embedding = sorted(counted.models, key=lambda each: each.purpose, reverse=True)
    assert (chat.model, chat.purpose, chat.calls, chat.output_tokens) == ("m", "extraction", 1, 4)
    assert (embedding.model, embedding.purpose, embedding.input_tokens) == ("e", "embedding", 5)
    assert tags == ["space-1", "space-1"]
    assert calls.count == 2
    ask(models)
    assert tags[-1] is None, "a call outside belongs to nobody"


def test_threads_of_pools_and_tasks_serve_the_call_that_began_them(models: ModelServer) -> None:
    async def from_a_task() -> None:
        async with openai.AsyncOpenAI(base_url=models.url, api_key="none") as made:
            await asyncio.gather(*(made.chat.completions.create(model="m", messages=ASKED) for _ in range(2)))

    with usage.collect() as counted, seen.model_calls("space-1", "query"):
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda _: ask(models), range(3)))
        asyncio.run(from_a_task())
    (line,) = counted.models
    assert (line.purpose, line.calls) == ("query", 5)


def test_a_meters_count_of_requests_goes_before_the_clients(models: ModelServer) -> None:
    reply = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "ok"}}]}
    told = {seen.USAGE_HEADER: "requests=3 input=70 output=5 estimated=1"}
    models.faults.append(web.json_response(reply, headers=told))
    with usage.collect() as counted, seen.model_calls("space-1", "query"):
        ask(models)
    (line,) = counted.models
    assert (line.calls, line.input_tokens, line.output_tokens, line.estimated) == (3, 70, 5, True)


@pytest.mark.parametrize("told", ["true", "1" + "0" * 30, "-1", "3000000000", "0.5", '"9"'])
def test_counts_that_no_call_can_have_are_estimated(models: ModelServer, told: str) -> None:
    choice = '{"index": 0, "message": {"role": "assistant", "content": "ok"}}'
    body = f'{{"choices": [{choice}], "usage": {{"prompt_tokens": 9, "completion_tokens": {told}}}}}'
    header = {seen.USAGE_HEADER: f"requests={told} input=1 output=1 estimated=0"}
    for headers in ({}, header):
        models.faults.append(web.Response(text=body, content_type="application/json", headers=headers))
        with usage.collect() as counted, seen.model_calls("space-1", "query"):
            ask(models)
        (line,) = counted.models
        assert (line.calls, line.estimated, line.output_tokens) == (1, True, len(body) // 4)
        assert 0 < line.input_tokens < 100


def test_what_an_adapter_counts_fits_the_wire() -> None:
    with usage.collect() as counted:
        usage.count(model="m", purpose="query", calls=10**30, input_tokens=10**30, output_tokens=-1)
    (line,) = counted.models
    assert (line.calls, line.input_tokens, line.output_tokens) == (usage.MAX_COUNT, usage.MAX_COUNT, 0)


def completion(content: Any, finish: str = "stop") -> web.Response:
    message = {"role": "assistant", "content": content}
    return web.json_response({"choices": [{"index": 0, "message": message, "finish_reason": finish}]})


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (web.Response(status=500), "PROVIDER_UNREACHABLE"),
        (web.Response(status=429), "PROVIDER_RATE_LIMITED"),
        (web.Response(status=504), "PROVIDER_TIMEOUT"),
        (web.Response(status=401), "PROVIDER_AUTH_FAILED"),
        (web.json_response({"error": {"code": "insufficient_quota"}}, status=429), "PROVIDER_AUTH_FAILED"),
        (web.Response(status=400), "PROVIDER_PROTOCOL_ERROR"),
        (web.json_response({"choices": []}), "PROVIDER_PROTOCOL_ERROR"),
        (completion(""), "PROVIDER_PROTOCOL_ERROR"),
        (completion(None), "PROVIDER_PROTOCOL_ERROR"),
        (completion('{"memory": [', "stop"), "PROVIDER_PROTOCOL_ERROR"),
        (completion('{"memory": []}', "length"), "PROVIDER_PROTOCOL_ERROR"),
        (completion("I remember nothing."), "PROVIDER_PROTOCOL_ERROR"),
    ],
)
def test_a_failure_that_a_framework_swallows_is_raised(models: ModelServer, fault: web.Response, reason: str) -> None:
    models.faults.append(fault)
    with seen.model_calls("space-1", "extraction") as calls:
        with suppress(openai.APIError):  # as a framework does
            ask(models, response_format=JSON)
        with pytest.raises(MemdockError) as raised:
            calls.check()
    assert raised.value.reason == reason


def test_no_answer_at_all_is_a_failure(unused_tcp_port: int) -> None:
    with seen.model_calls("space-1", "extraction") as calls:
        with suppress(openai.APIError):
            ask(ModelServer(url=f"http://127.0.0.1:{free_port()}/v1"))
        with pytest.raises(MemdockError, match=r"The model at 127\.0\.0\.1 cannot be reached"):
            calls.check()


def test_vectors_that_are_missing_are_a_failure(models: ModelServer) -> None:
    models.faults.append(web.json_response({"data": [{"index": 0, "embedding": [1.0]}]}))
    with seen.model_calls("space-1", "extraction") as calls, client(models) as made:
        made.embeddings.create(model="e", input=["a", "b"], encoding_format="float")
        with pytest.raises(MemdockError, match="as many vectors as texts"):
            calls.check()


@pytest.mark.parametrize(
    "vector",
    [[1.0, math.nan], [math.inf, 1.0], [1e300, 1.0], [10**400, 1], ["1.0", 1.0], [None], "AAA", "AACAfw=="],
    ids=["NaN", "infinity", "1e300", "a long integer", "a word", "nothing", "no base64", "infinity in base64"],
)
def test_a_vector_that_no_store_can_hold_is_a_failure(models: ModelServer, vector: Any) -> None:
    body = json.dumps({"data": [{"index": 0, "embedding": vector}]})
    models.faults.append(web.Response(text=body, content_type="application/json"))
    with seen.model_calls("space-1", "extraction") as calls, client(models) as made:
        with suppress(OverflowError):  # the client's own, of a long integer
            made.embeddings.create(model="e", input="a", encoding_format="float")
        with pytest.raises(MemdockError, match="what is no finite 32-bit number") as raised:
            calls.check()
    assert raised.value.reason == "PROVIDER_PROTOCOL_ERROR"


@pytest.mark.parametrize("vector", [[0.0, 0.0], [1, -3.4e38], "AAAAAAAAgD8="], ids=["zero", "long", "base64"])
def test_any_other_vector_is_none(models: ModelServer, vector: Any) -> None:
    models.faults.append(web.json_response({"data": [{"index": 0, "embedding": vector}]}))
    with seen.model_calls("space-1", "extraction") as calls, client(models) as made:
        made.embeddings.create(model="e", input="a", encoding_format="float")
        calls.check()


@pytest.mark.parametrize("content", ['{"a": 1}', '```json\n{"a": 1}\n```', 'Here it is: {"a": "b\n"}'])
def test_json_between_other_words_is_json(models: ModelServer, content: str) -> None:
    models.faults.append(completion(content))
    with seen.model_calls("space-1", "extraction") as calls:
        ask(models, response_format=JSON)
        calls.check()


def test_a_failure_that_a_later_try_mends_is_none(models: ModelServer) -> None:
    models.faults.append(web.Response(status=500, headers={"retry-after-ms": "1"}))
    with seen.model_calls("space-1", "extraction") as calls:
        ask(models, tries=2)
        calls.check()
    assert calls.count == 2


def test_without_a_client_library_there_is_nothing_to_watch() -> None:
    without = "import sys; sys.modules['httpx'] = sys.modules['httpx2'] = None"
    code = f"{without}; from memdock.adapter.model_calls import watch; watch()"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


FRAMEWORK = FrameworkCalls("Frame", store="The database", store_packages=())


@pytest.mark.parametrize("then", [None, RuntimeError("said by anna")])
async def test_a_failed_model_is_told_whatever_a_framework_made_of_it(
    models: ModelServer, then: Exception | None
) -> None:
    def work() -> None:
        with suppress(openai.APIError):
            ask(models)
        if then is not None:
            raise then

    models.faults[:] = [web.Response(status=503)]
    with pytest.raises(MemdockError) as told:
        await FRAMEWORK.ask("space", "extraction", asyncio.to_thread(work))
    assert told.value.reason == "PROVIDER_UNREACHABLE"


async def test_a_framework_may_go_on_without_a_model_where_that_does_no_harm(models: ModelServer) -> None:
    def work() -> str:
        with suppress(openai.APIError):
            ask(models)
        return "done"

    models.faults[:] = [web.Response(status=503)]
    assert await FRAMEWORK.ask("space", "forgetting", asyncio.to_thread(work), check=False) == "done"


def test_what_must_not_be_written_after_a_failure_looks_by_itself(models: ModelServer) -> None:
    seen.check_calls()  # outside of any call there is nothing to look at
    models.faults[:] = [web.Response(status=503)]
    with seen.model_calls("space", "extraction"):
        seen.check_calls()
        with suppress(openai.APIError):
            ask(models)
        with pytest.raises(MemdockError):
            seen.check_calls()
