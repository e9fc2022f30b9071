"""A run that was stopped or killed goes on: nothing stored twice, nothing asked twice, the same bytes in the end."""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from memdock_evaluator.answer.endpoint import ModelEndpoint, ModelSettings
from memdock_evaluator.results.folder import FolderError
from memdock_evaluator.results.manifest import ManifestError
from memdock_evaluator.results.parts import PartError
from memdock_evaluator.results.rows import Outcome
from memdock_evaluator.run.settings import RunSettings
from support.evaluation import ran, rows, served_url, settings, write_data
from support.model_server import ModelServer, serve_models
from support.served import until
from support.toys import ToySystem

CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("MEMDOCK_")}


def answering(server: ModelServer, *, at_once: int = 8) -> ModelSettings:
    endpoint = ModelEndpoint(purpose="answer", url=server.url, model="m", tries=1, concurrency=at_once)
    return ModelSettings(endpoint=endpoint)


def first_word(body: dict[str, Any]) -> str:
    """An answer that is the same whenever the same is asked."""
    return str(len(body["messages"][0]["content"]))


async def test_a_complete_run_does_nothing_when_it_is_given_again(tmp_path: Path) -> None:
    data, out, toy = write_data(tmp_path / "d.jsonl"), tmp_path / "run", ToySystem()
    async with served_url(toy, tmp_path / "toy") as url:
        run = settings(data, out, url=url, systems=("toy",))
        first, _ = await ran(run)
        calls, files = list(toy.log), sorted(out.rglob("*"))
        before = (out / "outcomes.jsonl").read_bytes()
        again, said = await ran(run)
    assert again.complete
    assert toy.log == calls
    assert sorted(out.rglob("*")) == files
    assert (out / "outcomes.jsonl").read_bytes() == before
    assert again.manifest == first.manifest
    assert "is finished already" in said


async def test_a_key_that_expires_stops_the_run_and_a_new_one_goes_on(tmp_path: Path) -> None:
    data, out, toy = (
        write_data(tmp_path / "d.jsonl", dialogues=[str(n) for n in range(4)]),
        tmp_path / "run",
        ToySystem(),
    )
    async with served_url(toy, tmp_path / "toy") as url, serve_models(ModelServer(chat=first_word)) as server:
        run = settings(data, out, url=url, systems=("toy",), answerer=answering(server), concurrency=1)

        def expires(body: dict[str, Any]) -> str:
            if len(server.requests) == 6:
                server.faults = [web.json_response({"error": {"message": "expired"}}, status=401)] * 4
            return first_word(body)

        server.chat = expires
        end, _ = await ran(run)
        assert "refuses the key (401): check MEMDOCK_EVAL_ANSWER_KEY" in end.stopped
        assert (end.complete, end.has_rows) == (False, False)
        assert end.unanswered == 16 - 4, "the first dialogue was done"
        assert not (out / "outcomes.jsonl").exists()
        server.chat, server.faults = first_word, []
        asked = len(server.requests)
        stored = len(toy.calls("add")) + len(toy.calls("final add"))
        end, _ = await ran(run)
        assert end.complete
        paid_again = len(server.requests) - asked
        assert 16 - 6 <= paid_again <= 16 - 5, "answers that had come are kept"
        in_two = len(toy.calls("add")) + len(toy.calls("final add"))
        assert in_two > stored
    assert len(toy.calls("retrieve")) == 16
    assert all(row.outcome is Outcome.ANSWERED for row in rows(out))


async def test_only_what_the_infrastructure_failed_is_asked_again(tmp_path: Path) -> None:
    data, out, toy = write_data(tmp_path / "d.jsonl"), tmp_path / "run", ToySystem()
    async with served_url(toy, tmp_path / "toy") as url, serve_models(ModelServer(chat=first_word)) as server:
        run = settings(data, out, url=url, systems=("toy",), answerer=answering(server))
        server.faults = [web.Response(status=500, text="{}") for _ in range(3)]
        end, _ = await ran(run)
        failed = [row for row in rows(out) if row.outcome is Outcome.INFRASTRUCTURE_ERROR]
        assert (len(failed), end.unanswered, end.complete) == (3, 3, False)
        assert all(row.correct is None and row.reason == "PROVIDER_UNREACHABLE" for row in failed)
        assert end.manifest.finished is None
        asked = len(server.requests)
        end, _ = await ran(run)
        assert len(server.requests) == asked + 3
    assert end.complete
    assert end.manifest.finished is not None
    assert len(toy.calls("retrieve")) == 8
    resumed = (out / "outcomes.jsonl").read_bytes()
    async with served_url(ToySystem(), tmp_path / "other") as url, serve_models(ModelServer(chat=first_word)) as server:
        run = settings(data, tmp_path / "straight", url=url, systems=("toy",), answerer=answering(server))
        await ran(run)
    assert (tmp_path / "straight/outcomes.jsonl").read_bytes() == resumed, "as if nothing had happened"


async def test_a_judge_that_comes_back_judges_the_answers_that_are_there(tmp_path: Path) -> None:
    data, out = write_data(tmp_path / "d.jsonl", dialogues=("0",)), tmp_path / "run"
    async with serve_models(ModelServer(chat=lambda body: '{"verdict": 2}')) as server:
        judge = ModelSettings(endpoint=ModelEndpoint(purpose="judge", url=server.url, model="m", tries=1))
        server.faults = [web.Response(status=503, text="{}") for _ in range(4)]
        run = settings(data, out, baselines=("oracle",), judge=judge)
        end, _ = await ran(run)
        assert {(row.outcome, row.correct) for row in rows(out)} == {(Outcome.INFRASTRUCTURE_ERROR, None)}
        assert all(row.answer for row in rows(out))
        assert not end.complete
        end, _ = await ran(run)
    assert end.complete
    assert {row.correct for row in rows(out)} == {True}


async def test_the_space_is_used_again_while_it_holds_all_turns_and_filled_again_where_not(tmp_path: Path) -> None:
    from memdock.errors import error

    data, out, toy = write_data(tmp_path / "d.jsonl", dialogues=("0",)), tmp_path / "run", ToySystem()
    async with served_url(toy, tmp_path / "toy") as url:
        run = settings(data, out, url=url, systems=("toy",), patience_s=0.0)
        toy.read_fault = error("STORE_UNREACHABLE", "gone")
        end, _ = await ran(run)
        assert not end.complete
        (space,) = toy.kept
        stored = toy.calls("add") + toy.calls("final add")
        end, _ = await ran(run)
        assert toy.calls("add") + toy.calls("final add") == stored, "not stored twice"
        from memdock.client import connect_async

        async with connect_async(url, system="toy") as client:
            await client.reset(space)
        toy.read_fault = None
        end, _ = await ran(run)
    assert end.complete
    twice = sorted(turn for ids in toy.calls("add") + toy.calls("final add") for turn in ids)
    assert twice == sorted([turn for ids in stored for turn in ids] * 2)
    assert end.manifest.totals["toy"].ingest.searchable == 8


async def test_a_run_that_is_interrupted_keeps_the_answers_that_had_come(tmp_path: Path) -> None:
    data, out = write_data(tmp_path / "d.jsonl", dialogues=("0",)), tmp_path / "run"
    async with serve_models(ModelServer(chat=first_word)) as server:
        run = settings(data, out, baselines=("oracle",), answerer=answering(server, at_once=1))

        def third_hangs(body: dict[str, Any]) -> str:
            if len(server.requests) == 2:
                server.faults = ["hang"]
            return first_word(body)

        server.chat = third_hangs
        running = asyncio.create_task(ran(run))
        await until(lambda: len(server.requests) == 3)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        server.chat = first_word
        end, _ = await ran(run)
        assert end.complete
        assert len(server.requests) == 5, "two had come, one was cut off, two are asked"


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_run_that_is_told_to_end_keeps_what_it_has_and_says_so(tmp_path: Path, number: signal.Signals) -> None:
    data = write_data(tmp_path / "d.jsonl")
    toy = ToySystem()
    async with (
        serve_models(ModelServer(chat=first_word, skip=2, faults=["hang"] * 20)) as server,
        served_url(toy, tmp_path / "toy") as url,
    ):
        words = _command(data, tmp_path / "run", url, server)
        process = await asyncio.create_subprocess_exec(*words, env=CLEAN, stderr=asyncio.subprocess.PIPE)
        try:
            await until(lambda: len(server.requests) >= 4, within_s=30.0)  # two are answered, the others never
            process.send_signal(number)
            async with asyncio.timeout(60):
                _, said = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.communicate()
        assert process.returncode == 1
        assert said.decode().strip().splitlines()[-1] == "Error: interrupted; the same command goes on from here"
        assert b"Traceback" not in said
        asked = len(server.requests)
        server.faults.clear()
        end, _ = await ran(settings(data, tmp_path / "run", url=url, systems=("toy",), answerer=answering(server)))
        assert end.complete
        assert len(server.requests) - asked < 8, "answers that had come are kept"


# A shell's background jobs, and all that they start, ignore SIGINT; this one shall not.
_HEEDED = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"


def _command(data: Path, out: Path, url: str, server: ModelServer) -> list[str]:
    flags = ["--data", str(data), "--out", str(out), "--url", url, "--system", "toy", "--concurrency", "2"]
    models = ["--answer-url", server.url, "--answer-model", "m", "--no-trial"]
    command = str(Path(sys.executable).with_name("memdock-eval"))
    return [sys.executable, "-c", _HEEDED, command, "run", *flags, *models]


async def test_a_folder_of_another_configuration_is_refused_with_the_fields_that_differ(tmp_path: Path) -> None:
    data, out = write_data(tmp_path / "d.jsonl"), tmp_path / "run"
    await ran(settings(data, out, baselines=("refusal",)))
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    write_data(data, dialogues=("0", "1", "2"))
    other = settings(data, out, baselines=("refusal", "oracle"), repeats=2)
    with pytest.raises(ManifestError) as caught:
        await ran(other)
    for line in (
        "repeats: then 1, now 2",
        f"data.files.{data}: then",
        "data.languages.en.dialogues: then 2, now 3",
        "systems.baseline:oracle: then absent, now",
        "Give another --out",
    ):
        assert line in str(caught.value)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


async def test_pace_and_address_may_change_on_the_way(tmp_path: Path) -> None:
    data, out = write_data(tmp_path / "d.jsonl"), tmp_path / "run"
    await ran(settings(data, out, baselines=("refusal",), concurrency=1))
    end, _ = await ran(settings(data, out, baselines=("refusal",), concurrency=3, patience_s=9.0))
    assert end.complete


async def test_a_second_run_in_a_folder_is_kept_out(tmp_path: Path) -> None:
    data, out, toy = write_data(tmp_path / "d.jsonl"), tmp_path / "run", ToySystem()
    async with served_url(toy, tmp_path / "toy") as url:
        toy.gate.clear()
        run: RunSettings = settings(data, out, url=url, systems=("toy",))
        first = asyncio.create_task(ran(run))
        await toy.entered.wait()
        with pytest.raises(FolderError, match="another run is writing to"):
            await ran(run)
        toy.gate.set()
        assert (await first)[0].complete


async def test_a_damaged_part_is_named_and_done_again_once_deleted(tmp_path: Path) -> None:
    data, out = write_data(tmp_path / "d.jsonl"), tmp_path / "run"
    run = settings(data, out, baselines=("oracle",))
    await ran(run)
    before = (out / "outcomes.jsonl").read_bytes()
    part = next(out.rglob("rows-001.jsonl"))
    part.write_bytes(part.read_bytes()[:-30])
    with pytest.raises(PartError, match=r"rows-001\.jsonl is damaged: delete it"):
        await ran(run)
    part.unlink()
    end, _ = await ran(run)
    assert end.complete
    assert (out / "outcomes.jsonl").read_bytes() == before
