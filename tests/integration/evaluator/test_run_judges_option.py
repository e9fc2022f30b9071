"""`--judges` beside the options of one judge: what goes before what, and what is the run's to say."""

from asyncio import to_thread
from collections.abc import Mapping
from pathlib import Path

from click.testing import CliRunner, Result

from memdock_evaluator.cli import main
from memdock_evaluator.results.manifest import Manifest
from support.evaluation import QUESTIONS, rows, write_data
from support.model_server import ModelServer, serve_models

ELSEWHERE = {"MEMDOCK_EVAL_JUDGE_URL": "http://127.0.0.1:9/v1", "MEMDOCK_EVAL_JUDGE_MODEL": "one"}


async def invoke(*words: object, env: Mapping[str, str] | None = None) -> Result:
    return await to_thread(CliRunner().invoke, main, [str(word) for word in words], env=dict(env or {}))


def judges_file(folder: Path, server: ModelServer) -> Path:
    path = folder / "judges.yaml"
    path.write_text(
        "".join(f"- {{name: {name}, url: '{server.url}', model: {name}}}\n" for name in ("first", "second"))
    )
    return path


def judges_of(out: Path) -> list[str]:
    return list(Manifest.from_json((out / "manifest.json").read_bytes(), place=str(out)).plan.judges)


async def test_each_of_several_judges_judges_as_often_as_was_asked(tmp_path: Path) -> None:
    data, out = write_data(tmp_path / "d.jsonl"), tmp_path / "run"
    async with serve_models(ModelServer(chat=lambda _: '{"verdict": 2}')) as server:
        judges = judges_file(tmp_path, server)
        run = await invoke(
            *("run", "--data", data, "--out", out, "--baseline", "oracle", "--no-trial"),
            *("--judges", judges, "--judge-repeats", 2),
        )
        assert run.exit_code == 0, run.output
        assert len(server.requests) == 2 * len(QUESTIONS) * 2 * 2
        assert [row.judging for row in rows(out)] == [0, 1] * 2 * len(QUESTIONS)
        again = await invoke("rejudge", out, "--out", tmp_path / "again", "--judges", judges, "--judge-repeats", 3)
        assert again.exit_code == 0, again.output
    assert len(rows(tmp_path / "again")) == 2 * len(QUESTIONS) * 3
    assert judges_of(tmp_path / "again") == ["first", "second"]


async def test_judges_that_are_typed_go_before_the_variables_of_one(tmp_path: Path) -> None:
    data, out = write_data(tmp_path / "d.jsonl"), tmp_path / "run"
    async with serve_models(ModelServer(chat=lambda _: '{"verdict": 2}')) as server:
        judges = judges_file(tmp_path, server)
        words = ("run", "--data", data, "--out", out, "--baseline", "oracle", "--no-trial")
        run = await invoke(*words, "--judges", judges, env=ELSEWHERE)
        assert run.exit_code == 0, run.output
        assert judges_of(out) == ["first", "second"]
        both = await invoke(*words, "--judges", judges, "--judge-url", server.url, "--judge-model", "m")
        assert (both.exit_code, "--judge-url and --judge-model, not both" in both.output) == (2, True), both.output
        tries = await invoke(*words, "--judges", judges, "--judge-tries", 2, env=ELSEWHERE)
        assert (tries.exit_code, "--judge-tries is for the one model" in tries.output) == (2, True), tries.output


async def test_the_one_judge_goes_before_judges_of_a_plan(tmp_path: Path) -> None:
    data, plan = write_data(tmp_path / "d.jsonl"), tmp_path / "plan.yaml"
    async with serve_models(ModelServer(chat=lambda _: '{"verdict": 2}')) as server:
        plan.write_text(f"judges: {judges_file(tmp_path, server)}\n")
        words = ("run", "--plan", plan, "--data", data, "--baseline", "oracle", "--no-trial")
        one = {"MEMDOCK_EVAL_JUDGE_URL": server.url, "MEMDOCK_EVAL_JUDGE_MODEL": "one"}
        run = await invoke(*words, "--out", tmp_path / "one", env=one)
        assert run.exit_code == 0, run.output
        assert {body["model"] for _, body in server.requests} == {"one"}
        run = await invoke(*words, "--out", tmp_path / "several")
    assert run.exit_code == 0, run.output
    assert judges_of(tmp_path / "several") == ["first", "second"]
