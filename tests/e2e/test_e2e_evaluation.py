"""`memdock-eval run` against the whole stack: what goes wrong is told, and the same command completes the run."""

import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from memdock_evaluator.dataset.shipped import own_dataset_path
from support.model_server import ModelServer
from support.model_thread import models_in_thread
from support.processes import Finished, clean_environment, command_path, free_port, run_command, wait_until
from support.whole_stack import HYBRID, WholeStack

DATA = ["--data", "own", "--language", "ru", "--dialogue", "0"]


def answer_words(body: dict[str, Any]) -> str:
    """An answer that depends on the prompt alone."""
    return f"in {sum(len(message['content']) for message in body['messages'])} characters"


class Runs:
    """Runs of one plan into folders of their own."""

    def __init__(self, stack: WholeStack, folder: Path, flags: list[str]) -> None:
        self._folder = folder
        where = ["--url", stack.grpc_url, "--key-file", str(stack.key_file), "--system", HYBRID]
        self._words = ["run", *where, *DATA, "--patience", "2", *flags]

    def words(self, name: str) -> list[str]:
        return [*self._words, "--out", str(self._folder / name)]

    def run(self, name: str) -> Finished:
        return run_command("memdock-eval", *self.words(name), timeout_s=110)

    def begun(self, name: str) -> bool:
        return (self._folder / name).exists()

    def outcomes(self, name: str) -> bytes:
        return (self._folder / name / "outcomes.jsonl").read_bytes()


def refused(done: Finished, code: int, *words: str) -> None:
    assert done.code == code, done.words
    assert "Traceback" not in done.words
    for word in words:
        assert word in done.words


@pytest.fixture(scope="module")
def chat() -> Iterator[ModelServer]:
    with models_in_thread(ModelServer(chat=answer_words)) as server:
        yield server


@pytest.fixture(scope="module")
def with_model(stack: WholeStack, chat: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Runs answered by a scripted model; `undisturbed` is done."""
    flags = ["--answer-url", chat.url, "--answer-model", "m", "--model-timeout", "1", "--answer-key", "k-secret"]
    runs = Runs(stack, tmp_path_factory.mktemp("runs"), flags)
    done = runs.run("undisturbed")
    assert done.code == 0, done.words
    return runs


@pytest.fixture(scope="module")
def offline(stack: WholeStack, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Runs by the offline pair; `undisturbed` is done."""
    runs = Runs(stack, tmp_path_factory.mktemp("runs"), [])
    done = runs.run("undisturbed")
    assert done.code == 0, done.words
    return runs


def faults_of(name: str) -> list[web.Response | str]:
    match name:
        case "401" | "500":
            return [web.Response(status=int(name)) for _ in range(300)]
        case "429":
            return [web.Response(status=429, headers={"Retry-After": "600"}) for _ in range(300)]
        case "garbage":
            return [web.Response(text="<html>") for _ in range(300)]
        case _:
            return ["hang"] * 300


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("401", "refuses the key (401): check MEMDOCK_EVAL_ANSWER_KEY"),
        pytest.param("429", "answers 429", marks=pytest.mark.slow),
        pytest.param("500", "answers 500", marks=pytest.mark.slow),
        pytest.param("garbage", "answered with something that is no chat completion", marks=pytest.mark.slow),
        pytest.param("never", "did not answer within 1 s", marks=pytest.mark.slow),
    ],
)
def test_the_answer_model_fails(with_model: Runs, chat: ModelServer, fault: str, sentence: str) -> None:
    chat.faults[:] = faults_of(fault)
    try:
        done = with_model.run(fault)
    finally:
        chat.faults.clear()
    refused(done, 1, "the answer model m at 127.0.0.1", sentence)
    assert "k-secret" not in done.words
    assert not with_model.begun(fault), "it was told before anything was stored"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "sentence"),
    [("401", "refuses the key (401)"), ("500", "answers 500"), ("never", "did not answer within")],
)
def test_the_answer_model_fails_on_the_way(with_model: Runs, chat: ModelServer, fault: str, sentence: str) -> None:
    def fails_then(body: dict[str, Any]) -> str:
        chat.faults[:] = faults_of(fault)
        return answer_words(body)

    name = f"on-the-way-{fault}"
    chat.chat = fails_then
    try:
        done = with_model.run(name)
    finally:
        chat.chat = answer_words
        chat.faults.clear()
    refused(done, 1, "the answer model m at 127.0.0.1", sentence, "19 of 19 questions have no outcome yet", "goes on")
    again = with_model.run(name)
    refused(again, 0, "going on with the run")
    assert with_model.outcomes(name) == with_model.outcomes("undisturbed")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "sentence"),
    [("401", "refused the key (HTTP 401) (PROVIDER_AUTH_FAILED)"), ("500", "failed (HTTP 500) (PROVIDER_UNREACHABLE)")],
)
def test_the_systems_own_model_fails(stack: WholeStack, offline: Runs, fault: str, sentence: str) -> None:
    stack.models.faults[:] = faults_of(fault) * 10
    try:
        done = offline.run(f"embedder-{fault}")
    finally:
        stack.models.faults.clear()
    refused(done, 1, "could not be stored: the embedding endpoint", sentence, "want of infrastructure", "goes on")
    refused(offline.run(f"embedder-{fault}"), 0)
    assert offline.outcomes(f"embedder-{fault}") == offline.outcomes("undisturbed")


@pytest.mark.slow
def test_the_systems_own_model_answers_garbage(stack: WholeStack, offline: Runs) -> None:
    stack.models.faults[:] = faults_of("garbage") * 10
    try:
        done = offline.run("garbage")
    finally:
        stack.models.faults.clear()
    refused(done, 3, "turns failed (PROVIDER_PROTOCOL_ERROR", "the same command sends them again")
    refused(offline.run("garbage"), 0)
    assert offline.outcomes("garbage") == offline.outcomes("undisturbed")


@contextmanager
def half_way(stack: WholeStack, words: list[str], requests: int) -> Iterator[subprocess.Popen[str]]:
    """The command that has come so far that the embedder was asked `requests` times, or that has ended.

    A request is answered after a while only: so there is a middle on any machine.
    """
    stack.models.requests.clear()
    stack.models.latency_s = 0.25
    with subprocess.Popen(
        [command_path("memdock-eval"), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=clean_environment(),
        text=True,
    ) as process:
        try:
            wait_until(
                lambda: len(stack.models.requests) >= requests or process.poll() is not None,
                60,
                f"{requests} requests to the embedder, {len(stack.models.requests)} came",
            )
            yield process
        finally:
            stack.models.latency_s = 0.0
            process.kill()


@pytest.mark.slow
def test_the_gateway_dies_for_good_in_the_middle(stack: WholeStack, offline: Runs) -> None:
    try:
        with half_way(stack, offline.words("gateway"), 3) as process:
            stack.gateway.kill()
            said, _ = process.communicate(timeout=100)
    finally:
        stack.gateway.kill()
        stack.gateway.start()
    assert process.returncode == 1
    assert "nothing answers there" in said
    assert "Traceback" not in said
    refused(offline.run("gateway"), 0)
    assert offline.outcomes("gateway") == offline.outcomes("undisturbed")


def run_by(stack: WholeStack, out: Path, *words: str, key: bool = True, system: str = HYBRID) -> Finished:
    flags = ["--url", stack.grpc_url, "--system", system, "--out", str(out / "run")]
    flags += ["--key-file", str(stack.key_file)] if key else []
    return run_command("memdock-eval", "run", *flags, *words)


def test_an_unknown_system(stack: WholeStack, tmp_path: Path) -> None:
    done = run_by(stack, tmp_path, *DATA, system="no-such")
    refused(done, 2, "has no memory system 'no-such': it has rag-hybrid, rag-dense")


@pytest.mark.slow
def test_a_missing_key(stack: WholeStack, tmp_path: Path) -> None:
    refused(run_by(stack, tmp_path, *DATA, key=False), 2, "asks for a key and none was given: --key-file")


@pytest.mark.slow
def test_a_misspelt_flag_and_variable(stack: WholeStack, tmp_path: Path) -> None:
    refused(run_by(stack, tmp_path, *DATA, "--repeat", "2"), 2, "No such option '--repeat'", "--repeats")
    misspelt = {"MEMDOCK_EVAL_ULR": stack.grpc_url}
    done = run_command("memdock-eval", "run", *DATA, "--out", tmp_path / "run", environment=misspelt)
    refused(done, 2, "there is no setting MEMDOCK_EVAL_ULR")


@pytest.mark.slow
def test_a_dead_gateway(tmp_path: Path) -> None:
    url = f"grpc://127.0.0.1:{free_port()}"
    done = run_command("memdock-eval", "run", "--url", url, "--system", "a", *DATA, "--out", tmp_path / "run")
    refused(done, 1, f"memory system a at {url} cannot be used", "nothing answers there")


@pytest.mark.parametrize("damage", ["cut", pytest.param("unknown", marks=pytest.mark.slow)])
def test_a_bad_data_file(stack: WholeStack, tmp_path: Path, damage: str) -> None:
    file = tmp_path / "rows.jsonl"
    if damage == "unknown":
        file.write_text('{"a": 1}\n')
        refused(run_by(stack, tmp_path, "--data", str(file)), 1, f"{file}, record 1: no known format", "dataset schema")
        return
    whole = own_dataset_path("ru").with_name("rumba_rows_ru.jsonl").read_text().splitlines(keepends=True)[:3]
    file.write_text("".join([*whole[:2], whole[2][:500]]))
    refused(run_by(stack, tmp_path, "--data", f"ru={file}"), 1, f"{file}, record 3: cannot be read on")
    file.write_text("".join(whole))
    refused(run_by(stack, tmp_path, "--data", f"ru={file}"), 0, "3 rows")


def run_under_kills(stack: WholeStack, runs: Runs, name: str, *, kills: int, seed: int) -> None:
    """SIGKILL at random moments, the same command after each; the last one is let be."""
    rng = random.Random(seed)
    killed = 0
    for _ in range(kills):
        with half_way(stack, runs.words(name), rng.randint(1, 4)) as process:
            killed += process.poll() is None
    assert killed
    done = runs.run(name)
    assert done.code == 0, done.words
    assert runs.outcomes(name) == runs.outcomes("undisturbed")


def test_a_killed_run_goes_on(stack: WholeStack, offline: Runs) -> None:
    run_under_kills(stack, offline, "killed-twice", kills=2, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", [2, 3, 4])
def test_a_run_that_is_killed_often_goes_on(stack: WholeStack, offline: Runs, seed: int) -> None:
    run_under_kills(stack, offline, f"killed-{seed}", kills=8, seed=seed)
