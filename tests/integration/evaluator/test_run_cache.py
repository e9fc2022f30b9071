"""A cache of replies: the same run again asks nothing, what differs is asked, what is forgotten is purged."""

import asyncio
import sqlite3
import subprocess
import sys
import threading
from asyncio import to_thread
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from memdock_evaluator.answer.completion import Completion
from memdock_evaluator.answer.endpoint import ModelEndpoint, ModelSettings
from memdock_evaluator.answer.reply_cache import ReplyCache
from memdock_evaluator.cli import main
from memdock_evaluator.cost.prices import Prices
from memdock_evaluator.forgetting.modes import Mode
from memdock_evaluator.forgetting.settings import ForgettingSettings
from memdock_evaluator.forgetting.suite import forgetting_suite
from memdock_evaluator.results.folder import Folder
from memdock_evaluator.results.manifest import Manifest, Price
from memdock_evaluator.review.verify import verify
from memdock_evaluator.run.settings import RunSettings
from support.evaluation import ran, served_url, settings, write_data
from support.model_server import ModelServer, serve_models
from support.served import until
from support.suites import facts, quiet
from support.toys import ToySystem

PRICES = Prices(
    date="2025-01-01", currency="EUR", models={"a": Price(input=1, output=1), "j": Price(input=1, output=1)}
)


def chat(body: dict[str, Any]) -> str:
    return '{"verdict": 2, "reason": "same"}' if body["model"] == "j" else "Perm, says the memory"


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with serve_models(ModelServer(chat=chat)) as running:
        yield running


def asking(server: ModelServer, run: RunSettings, *, at_once: int = 8) -> RunSettings:
    def model(purpose: str, name: str) -> ModelSettings:
        endpoint = ModelEndpoint(purpose=purpose, url=server.url, model=name, tries=1, concurrency=at_once)
        return ModelSettings(endpoint=endpoint)

    return replace(run, answerer=model("answer", "a"), judge=model("judge", "j"), prices=PRICES)


async def asked(server: ModelServer, run: RunSettings) -> int:
    """How many calls of a model a complete run took."""
    before = len(server.requests)
    end, said = await ran(run)
    assert end.complete, said
    return len(server.requests) - before


async def test_the_same_run_asks_nothing_again_and_the_bill_says_so(tmp_path: Path, server: ModelServer) -> None:
    data, cache = write_data(tmp_path / "d.jsonl", dialogues=("0",)), tmp_path / "replies.sqlite"
    async with served_url(ToySystem(), tmp_path / "toy") as url:
        run = asking(server, settings(data, tmp_path / "one", url=url, systems=("toy",), cache=str(cache), trial=True))
        one = tmp_path / "one"
        assert await asked(server, run) == 2 + 8
        two = replace(run, out=str(tmp_path / "two"), budget=1.0)
        assert await asked(server, two) == 0
        end, _ = await ran(two)
    assert (tmp_path / "two/outcomes.jsonl").read_bytes() == (one / "outcomes.jsonl").read_bytes()
    assert end.manifest.cost is not None
    lines = {line.purpose: line for line in end.manifest.cost.lines if not line.purpose.startswith("memory")}
    assert sorted(lines) == ["answer: from cache", "judge: from cache"]
    assert [line.money for line in lines.values()] == [0.0, 0.0]
    assert all(line.input_tokens > 0 for line in lines.values())
    spaces = ReplyCache(str(cache)).facts().spaces
    assert len(spaces) == 2, "the spaces of both runs"
    told = await to_thread(CliRunner().invoke, main, ["report", str(tmp_path / "two")])
    assert told.exit_code == 0, told.output
    verify(Folder(str(tmp_path / "two")))
    content = b"".join(path.read_bytes() for path in tmp_path.glob("replies.sqlite*"))
    assert b"Perm, says the memory" in content
    assert b"bicycle" not in content, "no prompt is kept"


async def test_what_differs_is_asked(tmp_path: Path, server: ModelServer) -> None:
    data = write_data(tmp_path / "d.jsonl", dialogues=("0",))
    cache = str(tmp_path / "replies.sqlite")
    run = asking(server, settings(data, tmp_path / "0", baselines=("oracle",), cache=cache))
    assert await asked(server, run) == 8

    def other(settings: ModelSettings, **fields: Any) -> ModelSettings:
        assert settings.endpoint is not None
        return replace(settings, endpoint=replace(settings.endpoint, **fields))

    prompt = tmp_path / "answer.txt"
    prompt.write_text("{memories} {date} {question} {refusal}!")
    others = {
        "model": (replace(run, answerer=other(run.answerer, model="a2")), 4),
        "temperature": (replace(run, answerer=other(run.answerer, temperature=0.5)), 4),
        "judge's model": (replace(run, judge=other(run.judge, model="j2")), 4),
        "seed": (replace(run, seed=9), 8),
        "prompt": (replace(run, answerer=replace(run.answerer, prompt=str(prompt))), 4),
        "rules for the judge": (replace(run, judge=replace(run.judge, verdict_tries=2)), 0),
        "repeats": (replace(run, repeats=2), 8),
    }
    server.chat = lambda body: chat({"model": body["model"][0]})
    for name, (changed, calls) in others.items():
        assert await asked(server, replace(changed, out=str(tmp_path / name))) == calls, name
    async with serve_models(ModelServer(chat=chat)) as elsewhere:
        moved = replace(asking(elsewhere, run), out=str(tmp_path / "elsewhere"))
        assert await asked(elsewhere, moved) == 8


async def test_a_verdict_that_cannot_be_read_is_not_kept(tmp_path: Path, server: ModelServer) -> None:
    data = write_data(tmp_path / "d.jsonl", dialogues=("0",))
    run = asking(server, settings(data, tmp_path / "0", baselines=("oracle",), cache=str(tmp_path / "c.sqlite")))
    server.chat = lambda body: "hm" if body["model"] == "j" else "Perm"
    assert await asked(server, run) == 4 + 3 * 4
    server.chat = chat
    assert await asked(server, replace(run, out=str(tmp_path / "1"))) == 4


async def test_a_run_that_is_stopped_leaves_what_it_had_and_the_next_asks_the_rest(
    tmp_path: Path, server: ModelServer
) -> None:
    data = write_data(tmp_path / "d.jsonl", dialogues=("0",))
    cache = str(tmp_path / "c.sqlite")
    run = asking(server, settings(data, tmp_path / "0", baselines=("oracle",), cache=cache), at_once=1)

    def third_hangs(body: dict[str, Any]) -> str:
        server.faults = ["hang"] if len(server.requests) == 2 else []
        return chat(body)

    server.chat = third_hangs
    running = asyncio.create_task(ran(run))
    await until(lambda: len(server.requests) == 3)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    server.chat, server.faults = chat, []
    assert ReplyCache(cache).facts().replies == 2
    assert await asked(server, replace(run, out=str(tmp_path / "1"))) == 8 - 2


async def test_what_a_suite_forgets_is_purged(tmp_path: Path, server: ModelServer) -> None:
    file, cache = write_data(tmp_path / "d.jsonl", **facts()), tmp_path / "c.sqlite"
    async with served_url(ToySystem(), tmp_path / "toy") as url:
        run = asking(server, settings(file, tmp_path / "run", url=url, systems=("toy",), cache=str(cache)))
        await asked(server, run)
        held = ReplyCache(str(cache)).facts()
        assert held.replies
        before = len(server.requests)
        suite = ForgettingSettings(
            run=replace(run, out=str(tmp_path / "out")), modes=(Mode.TURN,), targets=2, replies=True
        )
        await forgetting_suite(suite, quiet(), quiet())
    assert len(server.requests) > before, "models were asked before and after"
    left = ReplyCache(str(cache)).facts()
    assert set(left.spaces) == set(held.spaces), "nothing of the suite's spaces is kept, however late it came"
    assert left.replies <= held.replies


def test_many_may_begin_at_once_with_one_that_is_not_there_yet(tmp_path: Path) -> None:
    together = threading.Barrier(6)

    def begin(path: Path) -> None:
        together.wait()
        ReplyCache(str(path)).close()

    with ThreadPoolExecutor(6) as threads:
        for number in range(30):
            list(threads.map(begin, [tmp_path / str(number)] * 6))


WRITER = """
import sys
from memdock_evaluator.answer.completion import Completion
from memdock_evaluator.answer.reply_cache import ReplyCache

cache = ReplyCache(sys.argv[1])
reply = Completion(text="Perm", input_tokens=7, output_tokens=3, estimated=True)
for number in range(100_000_000):
    cache.put(b"%d" % number, reply, [f"space {number % 3}"])
    if number == 200:
        print("many are written", flush=True)
"""


def test_processes_share_it_and_those_that_are_killed_leave_it_whole(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    words = [sys.executable, "-c", WRITER, str(path)]
    writers = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "many are written\n"
    for writer in writers:
        writer.kill()
        writer.communicate()
    cache = ReplyCache(str(path))
    held = cache.facts()
    assert held.replies > 200
    assert sum(held.spaces.values()) == held.replies, "each reply is there with its space or not at all"
    assert cache.get(b"0", []) is not None
    cache.close()
    database = sqlite3.connect(path)
    assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    database.close()


async def test_a_cache_that_cannot_be_is_refused_before_anything_is_asked(tmp_path: Path, server: ModelServer) -> None:
    data = write_data(tmp_path / "d.jsonl")
    words = ["run", "--data", data, "--out", tmp_path / "run", "--baseline", "oracle", "--cache", "s3://bucket/c"]
    said = await to_thread(CliRunner().invoke, main, [str(word) for word in words])
    assert said.exit_code == 2, said.output
    assert "--cache: the cache s3://bucket/c: it must be a file on this machine" in said.output
    assert not (tmp_path / "run").exists()


async def test_what_a_killed_run_had_paid_for_is_on_its_bill_once(tmp_path: Path) -> None:
    data, out, prices = write_data(tmp_path / "d.jsonl", dialogues=("0",)), tmp_path / "run", tmp_path / "prices.yaml"
    prices.write_text("date: 2025-01-01\ncurrency: EUR\nmodels: {a: {input: 1, output: 1}, j: {input: 1, output: 1}}\n")
    running: list[asyncio.subprocess.Process] = []
    asked: list[str] = []
    kills = [3, 7]

    def answer(body: dict[str, Any]) -> str:
        asked.append(body["model"])
        if kills and len(asked) == kills[0]:
            kills.pop(0)
            running[-1].kill()
        return chat(body)

    async with serve_models(ModelServer(chat=answer)) as server:
        words = ["run", "--data", data, "--baseline", "oracle", "--out", out, "--cache", tmp_path / "c", "--no-trial"]
        words += ["--answer-url", server.url, "--answer-model", "a", "--judge-url", server.url, "--judge-model", "j"]
        words += ["--prices", prices, "--budget", "1", "--model-concurrency", "1"]
        codes = []
        for _ in range(3):
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", "from memdock_evaluator.cli import main; main()", *map(str, words)),
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
            )
            running.append(process)
            codes.append(await process.wait())
    assert codes == [-9, -9, 0]
    assert len(asked) == 8 + 2, "what was in the cache is not asked again"
    cost = Manifest.from_json((out / "manifest.json").read_bytes(), place="manifest.json").cost
    assert cost is not None
    assert {line.purpose for line in cost.lines} == {"answer", "judge"}, "the run paid for all of it"
    with sqlite3.connect(tmp_path / "c") as database:
        tokens = database.execute("SELECT total(input_tokens) + total(output_tokens) FROM replies").fetchone()[0]
    database.close()
    assert sum(line.input_tokens + line.output_tokens for line in cost.lines) == tokens
    assert cost.money == pytest.approx(tokens / 1e6, abs=2e-6)
    verify(Folder(str(out)))


def test_a_cache_of_an_earlier_version_learns_who_paid(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    reply = Completion(text="Perm", input_tokens=7, output_tokens=3, estimated=True)
    cache = ReplyCache(str(path))
    cache.put(b"a", reply, [])
    cache.close()
    with sqlite3.connect(path) as database:
        database.execute("DROP TABLE payers")
    database.close()
    again = ReplyCache(str(path))
    assert not again.was_paid_by(b"a", "one")
    again.put(b"b", reply, ["space"], run="one")
    assert (again.was_paid_by(b"b", "one"), again.was_paid_by(b"b", "two")) == (True, False)
    again.purge("space")
    assert not again.was_paid_by(b"b", "one")
    again.close()
