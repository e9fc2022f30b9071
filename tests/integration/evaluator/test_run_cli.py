"""The command as a user meets it: what each wrong thing says, its exit code, and never a trace."""

import json
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from memdock_evaluator.cli import main
from memdock_evaluator.run.command import run
from memdock_evaluator.run.given import without_secrets
from support.evaluation import served_url, write_data
from support.model_server import ModelServer, serve_models
from support.toys import ToySystem


def invoke(*words: object, env: Mapping[str, str] | None = None) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words], env=dict(env or {}))


def run_on(data: Path, out: Path, *words: object, env: Mapping[str, str] | None = None) -> Result:
    return invoke("run", "--data", data, "--out", out, *words, env=env)


def command(words: Sequence[object]) -> subprocess.CompletedProcess[str]:
    program = str(Path(sys.executable).with_name("memdock-eval"))
    return subprocess.run([program, *map(str, words)], capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_data(tmp_path / "d.jsonl")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "run"


def test_a_complete_run_prints_its_summary_and_ends_with_0(data: Path, out: Path) -> None:
    done = command(["run", "--data", data, "--out", out, "--baseline", "oracle", "--baseline", "refusal"])
    assert done.returncode == 0, done.stderr
    assert "baseline:oracle" in done.stdout
    assert f"open {out}/report.html" in done.stdout
    assert "16/16 questions answered" in done.stderr
    names = {"manifest.json", "outcomes.jsonl", "timings.jsonl", "summary.json", "statistics.json", "report.html"}
    assert names <= {path.name for path in out.iterdir()}


def test_the_report_is_made_again_from_the_rows(data: Path, out: Path) -> None:
    assert run_on(data, out, "--baseline", "oracle").exit_code == 0
    before = (out / "summary.json").read_bytes()
    for name in ("summary.json", "statistics.json", "report.html"):
        (out / name).unlink()
    again = invoke("report", out)
    assert again.exit_code == 0, again.output
    assert (out / "summary.json").read_bytes() == before
    assert (out / "report.html").exists()


def test_a_folder_without_a_run_has_no_report(tmp_path: Path) -> None:
    result = invoke("report", tmp_path)
    assert result.exit_code == 1
    assert "manifest.json is not there: finish the run first" in result.output


@pytest.mark.parametrize(
    "words", [["report"], ["verify"], ["merge", "out"], ["label", "export"], ["judge", "agreement"]], ids=str
)
def test_a_file_in_place_of_a_runs_folder(data: Path, words: Sequence[str]) -> None:
    result = invoke(*words, data)
    assert (result.exit_code, "Traceback" in result.output) == (1, False), result.output
    assert f"{data} is a file; name a folder" in " ".join(result.output.split())


@pytest.mark.parametrize("inside", ["", "/run"])
def test_a_file_in_place_of_out(data: Path, inside: str) -> None:
    result = run_on(data, Path(f"{data}{inside}"), "--baseline", "oracle")
    assert (result.exit_code, f"{data} is a file; name a folder" in result.output) == (1, True), result.output


@pytest.mark.parametrize(
    "words",
    [["run", "--baseline", "oracle", "--data", "own"], ["leaks", "--url", "grpc://127.0.0.1:9", "--system", "toy"]],
)
def test_a_folder_of_something_else_is_left_alone(out: Path, words: Sequence[str]) -> None:
    out.mkdir()
    (out / "letter.txt").write_text("dear")
    result = invoke(*words, "--out", out)
    assert result.exit_code == 2, result.output
    assert "holds something else" in result.output
    assert [path.name for path in out.iterdir()] == ["letter.txt"]


def test_a_run_needs_a_folder(data: Path) -> None:
    result = invoke("run", "--data", data, "--baseline", "oracle")
    assert (result.exit_code, "--out is missing: name the folder" in result.output) == (2, True), result.output


@pytest.mark.parametrize(
    "words",
    [
        ["run", "--data", "own", "--baseline", "oracle", "--out", "memory://run"],
        ["reanswer", "run", "--out", "memory://run"],
        ["rejudge", "run", "--out", "memory://run"],
        ["merge", "memory://run", "a", "b"],
        ["forgetting", "--system", "toy", "--data", "own", "--out", "memory://run"],
        ["leaks", "--system", "toy", "--out", "simplecache::memory://run"],
        ["serve", "--insecure-dev", "--results", "memory://runs"],
    ],
)
def test_results_that_would_be_gone_with_the_process_are_refused(words: Sequence[str]) -> None:
    result = invoke(*words)
    assert result.exit_code == 2, result.output
    assert "is gone when the command ends: give a folder" in " ".join(result.output.split())


def test_a_finished_run_says_so_when_it_is_given_again(data: Path, out: Path) -> None:
    words = ["run", "--data", data, "--out", out, "--baseline", "oracle"]
    assert command(words).returncode == 0
    again = command(words)
    assert again.returncode == 0, again.stderr
    assert again.stderr.startswith(f"the run in {out} is finished already; its figures and report are made again")


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["--systm", "x"], 2, "No such option '--systm'. Did you mean '--system'?"),
        (["--baseline", "oracel"], 2, "'oracel' is not one of"),
        ([], 2, "name a --system or a --baseline"),
        (["--system", "toy"], 2, "give --url"),
        (["--system", "toy", "--url", "localhost:80"], 2, "must be grpc://host:port"),
        (
            ["--system", "toy", "--url", "grpc://127.0.0.1:9", "--call-timeout", "2"],
            1,
            "toy at grpc://127.0.0.1:9 cannot",
        ),
        (["--baseline", "oracle", "--ingest-unit", "batch"], 2, "batch:N such as batch:50"),
        (["--baseline", "oracle", "--language", "r1"], 2, "language codes such as ru"),
        (["--baseline", "oracle", "--language", "fr"], 2, "no dialogue in 'fr'"),
        (["--baseline", "oracle", "--data", "own", "--language", "fr"], 2, "no dialogue in 'fr'"),
        (["--baseline", "oracle", "--k", "0"], 2, "--k"),
        (["--baseline", "oracle", "--patience", "nan"], 2, "'--patience': 'nan' is no number"),
        (["--baseline", "oracle", "--call-timeout", "0"], 2, "0.0 is not in the range 0<x<=604800"),
        (["--baseline", "oracle", "--allow-failed-turns", "101"], 2, "101.0 is not in the range 0<=x<=100"),
        (["--baseline", "oracle", "--zone", "Mars/Olympus"], 2, "'Mars/Olympus' is no IANA time zone"),
        (["--baseline", "oracle", "--answer-url", "http://x/v1"], 2, "--answer-model is missing"),
        (
            ["--baseline", "oracle", "--answer-model", "m"],
            2,
            "--answer-url is missing: give the address of the endpoint of m",
        ),
        (["--baseline", "oracle", "--answer-url", "x", "--answer-model", "m"], 2, "'x': give the endpoint's address"),
        (["--baseline", "oracle", "--answer-prompt", "no.txt"], 2, "--answer-prompt is for the one model of"),
        (["--baseline", "oracle", "--rubric", "README.md"], 2, "none was given: give --judge-url and --judge-model"),
        (["--baseline", "oracle", "--judge-key", "k"], 2, "--judge-key is for the one model of --judge-url"),
        (["--baseline", "oracle", "--judges", "j", "--judge-form", "json"], 2, "write it into the file of --judges"),
        (["--baseline", "oracle", "--judge-form", "xml"], 2, "'xml' is not one of"),
        (["--baseline", "oracle", "--key-file", "/nowhere/key"], 2, "/nowhere/key: the key cannot be read"),
        (["--baseline", "oracle", "--data", "/nowhere.jsonl"], 2, "there is no file /nowhere.jsonl"),
        (["--baseline", "oracle", "--data", "ru=/nowhere.jsonl"], 2, "there is no file /nowhere.jsonl"),
    ],
)
def test_a_command_line_that_cannot_be_meant(
    data: Path, out: Path, words: Sequence[str], code: int, sentence: str
) -> None:
    result = run_on(data, out, *words)
    assert (result.exit_code, "Traceback" in result.output) == (code, False), result.output
    assert sentence in " ".join(result.output.split())
    assert not out.exists(), "a run that is refused leaves nothing"


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "the file is empty"),
        (b"<html>", "neither JSON nor Parquet"),
        (b'{"a": 1}\n', "no known format"),
        (b'{"dialogue_id": "0", "language": "en", "sessions": [], "questions": []}\n', "record 1, field sessions"),
        (
            b'{"dialogue_id": "0", "langage": "en", "sessions": [1], "questions": []}\n',
            "Field required (and there is no field 'langage')",
        ),
    ],
)
def test_a_bad_data_file_is_named_with_its_place(tmp_path: Path, out: Path, content: bytes, sentence: str) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_bytes(content)
    result = run_on(bad, out, "--baseline", "oracle")
    assert (result.exit_code, "Traceback" in result.output) == (1, False)
    assert str(bad) in "".join(result.output.split("\n"))
    assert sentence in " ".join(result.output.split())


def test_a_prompt_that_lacks_its_question(data: Path, out: Path, tmp_path: Path) -> None:
    (tmp_path / "p.txt").write_text("{memories} {date} {refusal}")
    words = ["--answer-url", "http://127.0.0.1:9/v1", "--answer-model", "m", "--answer-prompt", tmp_path / "p.txt"]
    result = run_on(data, out, "--baseline", "oracle", *words)
    assert result.exit_code == 2
    assert "the prompt lacks {question}" in result.output


def test_a_variable_that_is_misspelt(data: Path, out: Path) -> None:
    result = run_on(data, out, "--baseline", "oracle", env={"MEMDOCK_EVAL_ANSWER_MODLE": "m"})
    assert result.exit_code == 2
    assert "there is no setting MEMDOCK_EVAL_ANSWER_MODLE" in result.output
    assert "MEMDOCK_EVAL_ANSWER_MODEL" in result.output


async def test_a_model_that_refuses_the_key_ends_the_run_before_it_begins_with_one_sentence(
    data: Path, out: Path
) -> None:
    from aiohttp import web

    async with serve_models(ModelServer(chat=lambda body: "Bublik")) as server:
        import asyncio

        server.faults = [web.json_response({"error": {"message": "bad key"}}, status=401)]
        words = ["--baseline", "oracle", "--answer-url", server.url, "--answer-model", "m", "--answer-key", "k-secret"]
        stopped = await asyncio.to_thread(command, ["run", "--data", data, "--out", out, *words])
        assert stopped.returncode == 1
        assert stopped.stderr.startswith("Error: the answer model m at 127.0.0.1:")
        assert stopped.stderr.endswith("refuses the key (401): check MEMDOCK_EVAL_ANSWER_KEY\n")
        assert stopped.stderr.count("\n") == 1
        assert not out.exists()
        done = await asyncio.to_thread(command, ["run", "--data", data, "--out", out, *words])
        assert done.returncode == 0, done.stderr
    assert "k-secret" not in stopped.stderr + stopped.stdout + done.stderr + (out / "manifest.json").read_text()
    assert json.loads((out / "manifest.json").read_bytes())["command"][-1] == "***"


async def test_settings_may_come_from_the_environment(data: Path, out: Path, tmp_path: Path) -> None:
    import asyncio

    (tmp_path / "key.txt").write_text("right\n")
    async with (
        serve_models(ModelServer(chat=lambda body: "Bublik")) as server,
        served_url(ToySystem(), tmp_path / "toy", token="right") as url,
    ):
        env = {
            "MEMDOCK_EVAL_URL": url,
            "MEMDOCK_EVAL_KEY_FILE": str(tmp_path / "key.txt"),
            "MEMDOCK_EVAL_ANSWER_URL": server.url,
            "MEMDOCK_EVAL_ANSWER_MODEL": "from-env",
        }
        result = await asyncio.to_thread(run_on, data, out, "--system", "toy", env=env)
        assert result.exit_code == 0, result.output
        assert {body["model"] for _, body in server.requests} == {"from-env"}


async def test_a_key_file_that_is_typed_goes_before_a_key_of_the_environment(data: Path, out: Path) -> None:
    import asyncio

    key_file = data.with_name("key.txt")
    key_file.write_text("right\n")
    async with served_url(ToySystem(), data.with_name("toy"), token="right") as url:
        words = ("--url", url, "--system", "toy")
        env = {"MEMDOCK_EVAL_KEY": "wrong"}
        result = await asyncio.to_thread(run_on, data, out, *words, "--key-file", key_file, env=env)
        assert result.exit_code == 0, result.output
        env = {"MEMDOCK_EVAL_KEY_FILE": str(key_file)}
        result = await asyncio.to_thread(run_on, data, out.with_name("b"), *words, "--key", "wrong", env=env)
        assert "refuses the key" in result.output


def test_keys_are_taken_out_of_the_command_line() -> None:
    typed = ["run", "--key", "mdk_1", "--key-file", "k.txt", "--answer-key=sk", "--judge-key", "jk", "--k", "5"]
    assert without_secrets(typed) == (
        *("run", "--key", "***", "--key-file", "k.txt", "--answer-key=***", "--judge-key", "***", "--k", "5"),
    )


@pytest.mark.parametrize("words", [["--help"], ["run", "--help"], ["report", "--help"], ["dataset", "--help"]])
def test_help_teaches(words: list[str]) -> None:
    result = invoke(*words)
    assert result.exit_code == 0
    assert "Usage: " in result.output


def test_the_examples_of_the_help_are_commands_that_parse() -> None:
    lines = str(getattr(run.callback, "__doc__", "")).replace("\\\n", " ").splitlines()
    examples = [shlex.split(line) for line in lines if line.strip().startswith("memdock-eval run")]
    assert len(examples) == 4
    for _, _, *words in examples:
        run.make_context("run", list(words))
