"""`run --again`: failures that are a question's outcome are asked again, alone and never in secret."""

import asyncio
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from aiohttp import web
from click.testing import CliRunner, Result

from memdock.errors import error
from memdock_evaluator.answer.endpoint import ModelEndpoint, ModelSettings
from memdock_evaluator.cli import main
from memdock_evaluator.results.manifest import Manifest
from memdock_evaluator.results.rows import Outcome
from memdock_evaluator.run.settings import SettingsError
from support.evaluation import ran, rows, served_url, settings, write_data
from support.model_server import ModelServer, serve_models
from support.served import until
from support.toys import ToySystem


def invoke(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def model(server: ModelServer, purpose: str) -> ModelSettings:
    return ModelSettings(
        endpoint=ModelEndpoint(purpose=purpose, url=server.url, model="m", tries=1, concurrency=1), verdict_tries=1
    )


def manifest(out: Path) -> Manifest:
    return Manifest.from_json((out / "manifest.json").read_bytes(), place=str(out))


def declined() -> web.Response:
    return web.json_response({"error": {"message": "no", "code": "content_filter"}}, status=400)


async def test_errors_of_the_system_are_asked_again_in_a_space_that_is_filled_anew(tmp_path: Path) -> None:
    data, out, toy = write_data(tmp_path / "d.jsonl"), tmp_path / "run", ToySystem()
    async with served_url(toy, tmp_path / "toy") as url:
        run = settings(data, out, url=url, systems=("toy",))
        toy.read_fault = error("INTERNAL", "broken")
        end, _ = await ran(run)
        assert end.complete
        assert {row.outcome for row in rows(out)} == {Outcome.SYSTEM_ERROR}
        parts = {path: path.read_bytes() for path in out.rglob("parts/**/*.jsonl")}
        spent = end.manifest.totals["toy"].usage
        toy.read_fault = None
        end, _ = await ran(run)
        assert {row.outcome for row in rows(out)} == {Outcome.SYSTEM_ERROR}, "without being told to, they stand"
        end, _ = await ran(replace(run, again=("system_error",)))
        assert end.complete
        assert toy.kept == {}, "the spaces are given back again"
        await ran(replace(run, out=str(tmp_path / "straight")))
        with pytest.raises(SettingsError, match=r"no question of .* has the outcome system_error"):
            await ran(replace(run, again=("system_error",)))
    assert (out / "outcomes.jsonl").read_bytes() == (tmp_path / "straight/outcomes.jsonl").read_bytes()
    assert {path: path.read_bytes() for path in parts} == parts, "earlier attempts are kept"
    (demand,) = manifest(out).again
    assert (demand.outcomes, demand.asked, demand.changed) == (("system_error",), 8, 8)
    assert demand.right == sum(row.correct is True for row in rows(out)) > 0
    assert demand.finished is not None
    twice = manifest(out).totals["toy"].usage
    extraction = [sum(each.input_tokens for each in usage if each.purpose == "extraction") for usage in (spent, twice)]
    assert extraction[1] == 2 * extraction[0] > 0, "both storings are paid for"
    assert invoke("report", out).exit_code == 0
    said = invoke("verify", out)
    assert said.exit_code == 0, said.output
    caveats = [each["text"] for each in orjson.loads((out / "summary.json").read_bytes())["caveats"]]
    assert any(
        f"(system_error): 8; with another outcome or verdict now: 8; right now and not before: {demand.right}" in each
        for each in caveats
    )


async def test_refusals_of_answerer_and_judge_are_asked_again_alone(tmp_path: Path) -> None:
    data, out = write_data(tmp_path / "d.jsonl"), tmp_path / "run"
    async with (
        serve_models(ModelServer(chat=lambda _: "Bublik")) as answers,
        serve_models(ModelServer(chat=lambda _: '{"verdict": 2}')) as verdicts,
    ):
        models = {"answerer": model(answers, "answer"), "judge": model(verdicts, "judge")}
        run = settings(data, out, baselines=("oracle",), concurrency=1, **models)
        answers.faults, verdicts.faults = [declined()], [declined()]
        end, _ = await ran(run)
        assert end.complete
        assert [row.outcome for row in rows(out)].count(Outcome.REFUSED) == 1
        assert [row.correct for row in rows(out)].count(None) == 2
        asked = len(answers.requests), len(verdicts.requests)
        end, _ = await ran(replace(run, again=("refused",)))
        assert end.complete
        assert (len(answers.requests) - asked[0], len(verdicts.requests) - asked[1]) == (1, 2)
    assert {row.correct for row in rows(out)} == {True}
    (demand,) = manifest(out).again
    assert (demand.asked, demand.changed, demand.right) == (2, 2, 2)


async def test_a_demand_that_was_interrupted_goes_on_and_asks_nothing_twice(tmp_path: Path) -> None:
    data, out = write_data(tmp_path / "d.jsonl"), tmp_path / "run"
    async with serve_models(ModelServer(chat=lambda _: "Bublik")) as server:
        run = settings(data, out, baselines=("oracle",), concurrency=1, answerer=model(server, "answer"))
        server.faults = [declined() for _ in range(8)]
        await ran(run)
        again = replace(run, again=("refused",))
        before = len(server.requests)
        server.faults = [declined(), declined(), "hang"]
        running = asyncio.create_task(ran(again))
        await until(lambda: len(server.requests) == before + 3)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert manifest(out).finished is None
        said = invoke("report", out)
        assert said.exit_code == 0, said.output
        waits = "The run is not complete: questions are still being asked again on demand"
        assert waits in " ".join(said.output.split())
        assert waits in (out / "report.html").read_text(encoding="utf-8")
        assert "with another outcome or verdict now" not in said.output
        end, _ = await ran(again)
        assert "The run is not complete" not in invoke("report", out).output
        assert end.complete
        assert len(server.requests) == before + 3 + 6, (
            "of eight, two were refused once more and are not asked a third time"
        )
    (demand,) = manifest(out).again
    assert (demand.asked, demand.changed, [row.outcome for row in rows(out)].count(Outcome.REFUSED)) == (8, 6, 2)


def test_what_cannot_be_asked_again_is_said(tmp_path: Path) -> None:
    words = ("run", "--data", write_data(tmp_path / "d.jsonl"), "--out", tmp_path / "run", "--baseline", "oracle")
    said = invoke(*words, "--again", "refused")
    assert said.exit_code == 2
    assert "holds no run whose questions could be asked again" in said.output
    assert not (tmp_path / "run").exists()
    said = invoke(*words, "--again", "answered")
    assert said.exit_code == 2
    assert "give system_error, refused, or both with a comma between" in said.output
    assert invoke(*words).exit_code == 0
    before = (tmp_path / "run/manifest.json").read_bytes()
    said = invoke(*words, "--again", "refused,system_error")
    assert said.exit_code == 2
    assert "has the outcome refused or system_error" in said.output
    assert (tmp_path / "run/manifest.json").read_bytes() == before
