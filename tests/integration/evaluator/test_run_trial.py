"""What cannot work is told before anything is stored: a small question to each model endpoint begins a run."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from memdock_evaluator.answer import models
from memdock_evaluator.answer.endpoint import ModelEndpoint, ModelSettings
from memdock_evaluator.faults import RunStoppedError
from memdock_evaluator.run import trial
from memdock_evaluator.run.settings import RunSettings
from support.evaluation import ran, served_url, settings, write_data
from support.model_server import ModelServer, serve_models
from support.processes import free_port
from support.toys import ToySystem

VERDICT = '{"verdict": 2, "reason": "same"}'


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "_FIRST_WAIT_S", 0.001)


def told(status: int, message: str) -> web.Response:
    return web.json_response({"error": {"message": message}}, status=status)


def answered_by(url: str, **fields: Any) -> ModelSettings:
    return ModelSettings(endpoint=ModelEndpoint(purpose="answer", url=url, model="m", **fields))


def judged_by(url: str, **fields: Any) -> ModelSettings:
    return ModelSettings(endpoint=ModelEndpoint(purpose="judge", url=url, model="m"), **fields)


def run_of(folder: Path, **fields: Any) -> RunSettings:
    return settings(write_data(folder / "d.jsonl"), folder / "run", baselines=("oracle",), trial=True, **fields)


async def stopped(run: RunSettings) -> str:
    """What it says, having left no folder behind."""
    with pytest.raises(RunStoppedError) as caught:
        await ran(run)
    assert not Path(run.out).exists()
    return str(caught.value)


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        (lambda: told(401, "no"), "refuses the key (401): check MEMDOCK_EVAL_ANSWER_KEY"),
        (
            lambda: told(404, "model 'm' not found"),
            "was not found (404): check the address and the model's name (model 'm' not found)",
        ),
        (lambda: told(400, "temperature is not supported"), "answers 400: temperature is not supported"),
        (lambda: told(503, "loading the model"), "answers 503: loading the model"),
        (lambda: web.Response(text="<html>It works!</html>"), "answered with something that is no chat completion"),
    ],
    ids=["key", "model", "parameter", "loading", "garbage"],
)
async def test_a_model_that_cannot_answer_ends_the_run_before_it_begins(
    tmp_path: Path, fault: Any, sentence: str
) -> None:
    toy = ToySystem()
    async with serve_models(ModelServer()) as server, served_url(toy, tmp_path / "toy") as url:
        server.faults = [fault() for _ in range(9)]
        run = run_of(tmp_path, url=url, systems=("toy",), answerer=answered_by(server.url))
        said = await stopped(run)
    assert said.startswith(f"the answer model m at {server.url[7:-3]} {sentence}")
    assert toy.log == [], "nothing was stored"


async def test_an_endpoint_that_is_not_there(tmp_path: Path) -> None:
    said = await stopped(run_of(tmp_path, answerer=answered_by(f"http://127.0.0.1:{free_port()}/v1")))
    assert said.endswith("cannot be reached: check the address and that it is up")


async def test_an_endpoint_that_hangs_is_not_tried_again_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial, "_SPARE_S", 0.1)
    async with serve_models(ModelServer(faults=["hang"] * 9)) as server:
        said = await stopped(run_of(tmp_path, answerer=answered_by(server.url, timeout_s=0.2)))
        assert len(server.requests) < 4
    assert said.endswith("did not answer within 0.2 s")


async def test_what_may_pass_is_waited_for(tmp_path: Path) -> None:
    async with serve_models(ModelServer(faults=[told(503, "loading"), told(429, "slowly")])) as server:
        end, _ = await ran(run_of(tmp_path, answerer=answered_by(server.url)))
    assert end.complete


@pytest.mark.parametrize("form", ["json", "pollux"])
async def test_a_judge_whose_verdict_cannot_be_read(tmp_path: Path, form: str) -> None:
    async with serve_models(ModelServer(chat=lambda body: "It is\n quite right.")) as server:
        said = await stopped(run_of(tmp_path, judge=judged_by(server.url, form=form)))
    assert "cannot judge: the judge's reply held no verdict of the rubric, 3 times" in said
    assert said.endswith("it was: It is quite right. (--judge-form, --judge-prompt)")


async def test_a_provider_that_declines_the_trial_may_take_the_questions(tmp_path: Path) -> None:
    declined = web.json_response({"error": {"message": "no", "code": "content_filter"}}, status=400)
    async with serve_models(ModelServer(chat=lambda body: VERDICT, faults=[declined])) as server:
        end, _ = await ran(run_of(tmp_path, answerer=answered_by(server.url)))
    assert end.complete


async def test_the_trial_is_one_call_a_model_and_a_complete_run_needs_none(tmp_path: Path) -> None:
    async with serve_models(ModelServer(chat=lambda body: VERDICT)) as server:
        run = run_of(tmp_path, answerer=answered_by(server.url), judge=judged_by(server.url))
        assert (await ran(run))[0].complete
        assert len(server.requests) == 2 + 2 * 8
        without = await ran(replace(run, out=f"{run.out}-2", trial=False))
        assert len(server.requests) == 2 + 2 * 8 + 2 * 8
    assert without[0].complete
    first, second = (Path(out, "outcomes.jsonl").read_bytes() for out in (run.out, f"{run.out}-2"))
    assert first == second
    assert (await ran(run))[0].complete, "although nobody answers any more"
