"""Stages alone, and answers and verdicts made again over what an earlier run retrieved."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from memdock_evaluator.answer.endpoint import ModelEndpoint, ModelSettings
from memdock_evaluator.cli import main
from memdock_evaluator.results.folder import Folder
from memdock_evaluator.results.manifest import Manifest, ManifestError
from memdock_evaluator.results.plan import Reused
from memdock_evaluator.review.verify import verify
from memdock_evaluator.run.settings import Reuse, RunSettings, SettingsError
from support.evaluation import ran, rows, served_url, settings, write_data
from support.model_server import ModelServer, serve_models
from support.toys import ToySystem


def model(server: ModelServer, purpose: str) -> ModelSettings:
    return ModelSettings(endpoint=ModelEndpoint(purpose=purpose, url=server.url, model="m", tries=1), verdict_tries=1)


def again(source: Path, out: Path, through: str, **fields: Any) -> RunSettings:
    only = fields.pop("only_unscored", False)
    reuse = Reuse(run=str(source), through=through, only_unscored=only)
    return RunSettings(data=(), out=str(out), reuse=reuse, trial=False, **fields)


@pytest.mark.parametrize("stage", ["ingest", "retrieve", "answer"])
async def test_a_run_that_stops_after_a_stage_goes_on_behind_it(stage: str, tmp_path: Path) -> None:
    data, toy = write_data(tmp_path / "d.jsonl"), ToySystem()
    async with served_url(toy, tmp_path / "toy") as url, serve_models(ModelServer(chat=lambda _: "Bublik")) as server:
        whole = settings(data, tmp_path / "run", url=url, systems=("toy",), answerer=model(server, "answer"))
        end, _ = await ran(replace(whole, stop_after=stage))
        assert (end.has_rows, end.stopped, end.manifest.finished) == (False, "", None)
        assert len(toy.calls("retrieve")) == (0 if stage == "ingest" else 8)
        assert len(server.requests) == (8 if stage == "answer" else 0)
        added = toy.calls("add")
        end, _ = await ran(whole)
        assert end.complete
        assert toy.calls("add") == added, "what was stored is not stored again"
        assert (len(toy.calls("retrieve")), len(server.requests)) == (8, 8)
        await ran(replace(whole, out=str(tmp_path / "at once")))
    assert (tmp_path / "run/outcomes.jsonl").read_bytes() == (tmp_path / "at once/outcomes.jsonl").read_bytes()


def test_stopping_is_told_and_no_failure(tmp_path: Path) -> None:
    words = ["run", "--data", write_data(tmp_path / "d.jsonl"), "--out", tmp_path / "run", "--baseline", "oracle"]
    said = CliRunner().invoke(main, [*map(str, words), "--stop-after", "retrieve"])
    assert said.exit_code == 0, said.output
    assert "stopped after retrieve, as asked; the same command without --stop-after goes on" in said.output
    as_of = CliRunner().invoke(main, [*map(str, words), "--as-of", "--stop-after", "ingest"])
    assert as_of.exit_code == 2
    assert "--as-of stores a dialogue while its questions are asked" in as_of.output


async def test_a_stage_that_fails_is_told(tmp_path: Path) -> None:
    data = write_data(tmp_path / "d.jsonl")
    async with serve_models(ModelServer(faults=[])) as server:
        gone = replace(model(server, "answer"))
    end, _ = await ran(settings(data, tmp_path / "run", baselines=("oracle",), answerer=gone, stop_after="answer"))
    assert end.stopped == "8 questions failed at answer for want of infrastructure"


async def first_run(tmp_path: Path, **fields: Any) -> Path:
    data, out = write_data(tmp_path / "d.jsonl"), tmp_path / "first"
    async with served_url(ToySystem(), tmp_path / "toy") as url:
        end, _ = await ran(
            settings(data, out, url=url, systems=("toy",), baselines=("full-context", "refusal"), **fields)
        )
    assert end.complete
    return out


def read(out: Path) -> Manifest:
    return Manifest.from_json((out / "manifest.json").read_bytes(), place=str(out))


def texts(chosen: Callable[[Any], Any], out: Path) -> list[Any]:
    return [chosen(row) for row in rows(out)]


async def test_reanswering_asks_no_system_and_keeps_the_memories(tmp_path: Path) -> None:
    first, out = await first_run(tmp_path), tmp_path / "other"
    async with serve_models(ModelServer(chat=lambda _: "Perm")) as server:
        run = again(first, out, "retrieve", answerer=model(server, "answer"))
        end, _ = await ran(run)
        asked = len(server.requests)
        assert (end.complete, asked) == (True, 16), "the fixed refusal asks no model"
        await ran(run)
        assert len(server.requests) == asked, "a complete run asks nothing more"
    assert texts(lambda row: row.memories, out) == texts(lambda row: row.memories, first)
    assert texts(lambda row: row.recall_turns, out) == texts(lambda row: row.recall_turns, first)
    assert {row.answer for row in rows(out) if row.system != "baseline:refusal"} == {"Perm"}
    assert end.manifest.plan.reused is not None
    assert end.manifest.plan.reused.through == "retrieve"
    assert end.manifest.plan.answerer.model == "m"
    assert CliRunner().invoke(main, ["report", str(out)]).exit_code == 0
    assert verify(Folder(str(out))).rows == 24


async def test_rejudging_keeps_the_answers(tmp_path: Path) -> None:
    first, out = await first_run(tmp_path), tmp_path / "other"
    async with serve_models(ModelServer(chat=lambda _: '{"verdict": 3}')) as server:
        end, _ = await ran(again(first, out, "answer", judge=model(server, "judge")))
        assert (end.complete, len(server.requests)) == (True, 24)
    assert texts(lambda row: row.answer, out) == texts(lambda row: row.answer, first)
    assert set(texts(lambda row: row.verdict, out)) == {3}
    assert end.manifest.plan.answerer.kind == "offline-extractive"


async def test_only_what_has_no_verdict_is_judged_again(tmp_path: Path) -> None:
    async with serve_models(ModelServer()) as server:
        server.chat = lambda body: "hm" if "bicycle" in str(body) else '{"verdict": 2}'
        first = await first_run(tmp_path, judge=model(server, "judge"))
        unscored = [row.key for row in rows(first) if row.verdict is None]
        assert 0 < len(unscored) < 24
        asked = len(server.requests)
        server.chat = lambda _: '{"verdict": 0}'
        again_run = again(first, tmp_path / "more", "answer", judge=model(server, "judge"), only_unscored=True)
        end, _ = await ran(again_run)
        assert len(server.requests) - asked == len(unscored)
    assert [row.key for row in rows(tmp_path / "more") if row.verdict == 0] == unscored
    assert end.manifest.plan.reused == Reused(run_id=read(first).run_id, through="answer", only_unscored=True)
    with pytest.raises(ManifestError, match="the judge must be the same"):
        await ran(replace(again_run, judge=ModelSettings(), out=str(tmp_path / "not")))
    elsewhere = ModelSettings(endpoint=ModelEndpoint(purpose="judge", url=f"{server.url}/other", model="m", tries=1))
    with pytest.raises(ManifestError, match=r"judge\.path: then"):
        await ran(replace(again_run, judge=elsewhere, out=str(tmp_path / "elsewhere")))


async def test_a_run_that_is_missing_unfinished_or_over_other_data_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="holds no run"):
        await ran(again(tmp_path / "none", tmp_path / "new", "answer"))
    data = write_data(tmp_path / "d.jsonl")
    unfinished = settings(data, tmp_path / "half", baselines=("oracle",), stop_after="answer")
    await ran(unfinished)
    with pytest.raises(SettingsError, match="is not complete: finish it first"):
        await ran(again(tmp_path / "half", tmp_path / "new", "answer"))
    await ran(replace(unfinished, stop_after=""))
    data.write_bytes(data.read_bytes() + b"\n")
    with pytest.raises(SettingsError, match="has changed since"):
        await ran(again(tmp_path / "half", tmp_path / "new", "answer"))
    assert not (tmp_path / "new").exists()
