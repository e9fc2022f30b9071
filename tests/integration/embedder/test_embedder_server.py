"""The embedder as a process, asked by OpenAI's own client and by ours; a remote endpoint with faults."""

import asyncio
import io
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import numpy as np
import openai
import pytest
from aiohttp import web

from memdock_embedder import EmbedderError, open_embedder
from memdock_embedder.remote import RemoteEmbedder
from support.model_server import ModelServer, serve_models
from support.served import until

CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("MEMDOCK_")}


@asynccontextmanager
async def embedder_process(folder: Path, *flags: str) -> AsyncIterator[tuple[str, asyncio.subprocess.Process]]:
    port_file = folder / "port.json"
    process = await asyncio.create_subprocess_exec(
        str(Path(sys.executable).with_name("memdock-embedder")),
        *("serve", "--listen", "127.0.0.1:0", "--port-file", str(port_file), *flags),
        env=CLEAN,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(30):
            while not port_file.exists():
                assert process.returncode is None, (await process.communicate())[1].decode()
                await asyncio.sleep(0.02)
        yield f"http://127.0.0.1:{json.loads(port_file.read_text())['http']}/v1", process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def test_the_server_answers_openai_and_its_own_client_alike_and_stops_on_sigterm(tmp_path: Path) -> None:
    bundled = await open_embedder("bundled")
    expected = (await bundled.embed(["Привет", "hello"], "query")).vectors
    async with embedder_process(tmp_path, "--cache", str(tmp_path / "cache.sqlite")) as (url, process):
        async with openai.AsyncOpenAI(base_url=url, api_key="none") as client:
            answer = await client.embeddings.create(
                model=bundled.model, input=["Привет", "hello"], extra_body={"input_type": "query"}
            )
            assert np.allclose([row.embedding for row in answer.data], expected, atol=1e-6)
            assert answer.usage.prompt_tokens > 0
            with pytest.raises(openai.BadRequestError, match="this server has the model"):
                await client.embeddings.create(model="other", input="x")
        ours = await open_embedder(f"{url}#{bundled.model}")
        assert ours.dimension == bundled.dimension
        again = await ours.embed(["Привет", "hello"], "query")
        assert np.allclose(again.vectors, expected, atol=1e-6)
        # The cache had both: a count of 0 is a count, and no reason to estimate.
        assert (again.tokens, again.estimated) == (0, False)
        await ours.close()
        async with aiohttp.ClientSession() as session:
            root = url.removesuffix("/v1")
            async with session.get(f"{root}/readyz") as ready:
                assert (await ready.json())["dimension"] == bundled.dimension
            async with session.get(f"{root}/metrics") as metrics:
                assert "memdock_embedder_texts_total 5" in await metrics.text()
            async with session.post(f"{url}/embeddings", data=b"{") as broken:
                assert broken.status == 400
                assert (await broken.json())["error"]["param"] == "body"
            async with session.get(f"{root}/nothing") as nothing:
                assert (nothing.status, nothing.content_type) == (404, "application/json")
            async with session.post(f"{url}/embeddings", data=io.BytesIO(b" " * (17 * 1024 * 1024))) as large:
                assert large.status == 413
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(10):
            assert await process.wait() == 0
    await bundled.close()


async def test_what_a_caller_left_behind_is_not_worked_on(tmp_path: Path) -> None:
    async with embedder_process(tmp_path) as (url, _), aiohttp.ClientSession() as session:
        # Minutes of work for the model, left at once; a request that comes then is not behind it.
        left = {"input": ["word " * 400] * 400}
        with pytest.raises(TimeoutError):
            await session.post(f"{url}/embeddings", json=left, timeout=aiohttp.ClientTimeout(total=1.0))
        async with asyncio.timeout(45):
            async with session.post(f"{url}/embeddings", json={"input": "still here"}) as answer:
                assert answer.status == 200


async def test_remote_parts_what_is_long_and_gives_it_time() -> None:
    async with serve_models(ModelServer()) as server:
        embedder = await RemoteEmbedder.connect(server.url, "m", timeout_s=0.3)
        server.latency_s = 0.6
        embedded = await embedder.embed(["a" * 8_000, "b" * 8_000, "c" * 300], "passage")
        assert [len(body["input"]) for _, body in server.requests[-2:]] == [2, 1]
        assert embedded.calls == 2
        await embedder.close()


async def test_remote_cuts_a_text_that_endpoints_refuse_and_sends_few_passages_at_once() -> None:
    async with serve_models(ModelServer()) as server:
        embedder = await RemoteEmbedder.connect(server.url, "m")
        server.requests.clear()
        server.faults = ["hang"] * 4
        waiting = [asyncio.create_task(embedder.embed(["я" * 32_000], "passage")) for _ in range(6)]
        async with asyncio.timeout(10):
            await until(lambda: len(server.requests) == 4)
            assert (await embedder.embed(["a question"], "query")).vectors.shape == (1, 4)
        assert [body["input_type"] for _, body in server.requests] == ["passage"] * 4 + ["query"]
        texts = [text for _, body in server.requests for text in body["input"]]
        assert max(len(text.encode()) for text in texts) == 8_000
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        embedded = await embedder.embed(["я" * 32_000], "passage")
        assert embedded.vectors.shape == (1, 4)
        assert embedded.calls == 4
        await embedder.close()


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("--embedder", "bundle"), "Error: unknown embedder 'bundle': expected bundled"),
        (("--embedder", "http://127.0.0.1:9/v1"), "Error: the embedder 'http://127.0.0.1:9/v1' names no model: write"),
        (("--listen", "127.0.0.1:65536"), "Error: --listen wants HOST:PORT, not '127.0.0.1:65536'"),
        (("--listen", "192.0.2.1:80"), "Error: --listen 192.0.2.1:80: a free port is needed, or port 0: "),
        (("--port-file", "/nowhere/port"), "Error: --port-file /nowhere/port cannot be written: No such file"),
        (("--cache", "/dev/null"), "Error: the embedding cache /dev/null cannot be opened, name another file: "),
    ],
)
async def test_a_start_that_cannot_be_is_one_sentence(flags: tuple[str, ...], sentence: str) -> None:
    process = await asyncio.create_subprocess_exec(
        str(Path(sys.executable).with_name("memdock-embedder")),
        *("serve", "--listen", "127.0.0.1:0", *flags),
        env=CLEAN,
        stderr=asyncio.subprocess.PIPE,
    )
    _, stderr = await process.communicate()
    assert process.returncode in (1, 2)
    assert stderr.decode().splitlines()[-1].startswith(sentence)
    assert "Traceback" not in stderr.decode()


async def test_remote_takes_no_garbage_for_a_wait_or_a_count() -> None:
    async with serve_models(ModelServer()) as server:
        embedder = await RemoteEmbedder.connect(server.url, "m")
        for garbage in ("inf", "nan", "-1", "1e400", "\u00b2"):
            server.faults = [web.Response(status=429, headers={"Retry-After": garbage})]
            assert (await embedder.embed(["one"], "query")).vectors.shape == (1, 4)
        server.faults = [web.Response(status=429, headers={"Retry-After": "1e9"})]
        with pytest.raises(EmbedderError, match="over its rate") as told:
            await embedder.embed(["one"], "query")
        assert told.value.retry_after_s == 1e9
        row = '{"index": 0, "embedding": [1, 0, 0, 0]}'
        for used in (
            "[1]",
            "true",
            *(f'{{"prompt_tokens": {told}}}' for told in ("true", "1" + "0" * 30, "-1", "500")),
        ):
            text = f'{{"data": [{row}], "usage": {used}}}'
            server.faults = [web.Response(text=text, content_type="application/json")]
            embedded = await embedder.embed(["four"], "query")
            assert (embedded.tokens, embedded.estimated) == (2, True), used
        await embedder.close()


async def test_remote_retries_what_may_pass_and_tells_what_does_not() -> None:
    async with serve_models(ModelServer()) as server:
        embedder = await RemoteEmbedder.connect(server.url, "m")
        server.faults = [web.Response(status=500), web.Response(status=429, headers={"Retry-After": "0.01"})]
        embedded = await embedder.embed(["one", "three"], "passage")
        assert embedded.vectors.shape == (2, 4)
        assert server.requests[-1][1]["input_type"] == "passage"
        for fault, reason in (
            (web.Response(status=401), "PROVIDER_AUTH_FAILED"),
            (web.Response(status=400), "PROVIDER_PROTOCOL_ERROR"),
            (web.Response(text="garbage"), "PROVIDER_PROTOCOL_ERROR"),
            (web.json_response({"data": []}), "PROVIDER_PROTOCOL_ERROR"),
        ):
            server.faults = [fault]
            with pytest.raises(EmbedderError) as caught:
                await embedder.embed(["x"], "query")
            assert caught.value.reason == reason
        server.embed = lambda text: [1.0]
        with pytest.raises(EmbedderError, match="dimensions"):
            await embedder.embed(["x"], "query")
        await embedder.close()


async def test_remote_that_never_answers_is_a_timeout() -> None:
    async with serve_models(ModelServer()) as server:
        embedder = await RemoteEmbedder.connect(server.url, "m", timeout_s=0.05)
        server.faults = ["hang"] * 8
        with pytest.raises(EmbedderError) as caught:
            await embedder.embed(["x"], "query")
        assert caught.value.reason == "PROVIDER_TIMEOUT"
        await embedder.close()


async def test_remote_that_is_not_there_is_unreachable() -> None:
    with pytest.raises(EmbedderError) as caught:
        await open_embedder("http://127.0.0.1:9/v1#m")
    assert caught.value.reason == "PROVIDER_UNREACHABLE"
