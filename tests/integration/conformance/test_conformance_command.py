"""The command as a vendor's CI runs it: its exit codes, its files, and what it says when it cannot be run."""

import json
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from memdock.conformance.cli import command
from support.model_server import ModelServer
from support.model_thread import models_in_thread
from support.processes import Finished, clean_environment, wait_until

ROOT = Path(__file__).parents[3]
SERVER = (
    f"{sys.executable} -m support.remembering_process --grpc 127.0.0.1:{{port}} --http 127.0.0.1:{{http_port}}"
    " --data {data} --model {model_url}"
)
KNOWN = """\
[[known-failure]]
id = "T8"
reason = "memories are kept in memory"
[[known-failure]]
id = "P8"
reason = "memories are kept in memory"
[[known-failure]]
id = "F1.restart"
face = "grpc"
reason = "memories are kept in memory"
"""


def conformance(*arguments: str | Path) -> Finished:
    done = subprocess.run(
        [sys.executable, "-m", "memdock.conformance", *map(str, arguments)],
        env=clean_environment({"PYTHONPATH": f"{ROOT / 'tests'}:{':'.join(sys.path)}"}),
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert "Traceback" not in done.stdout + done.stderr, done.stderr
    return Finished(code=done.returncode, output=done.stdout, errors=done.stderr)


def test_a_launched_system_conforms(tmp_path: Path) -> None:
    report = tmp_path / "cases.json"
    done = conformance("--launch", SERVER, "--only", "T1,E3", "--json", report)
    assert done.code == 0, done.words
    assert "remembering conforms: 4 passed, in" in done.words
    assert {one["face"] for one in json.loads(report.read_text())["results"]} == {"grpc", "http"}


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_system_that_loses_memories_in_a_kill_does_not_conform_until_that_is_known(tmp_path: Path) -> None:
    report, junit, known = tmp_path / "report.json", tmp_path / "junit.xml", tmp_path / "known.toml"
    flags = ("--launch", SERVER, "--only", "T1,T8,F1,P8,E4", "--seed", "3", "--json", report, "--junit", junit)
    done = conformance(*flags)
    assert done.code == 1, done.words
    assert "remembering does not conform: 6 passed, 3 failed, in" in done.words
    document = json.loads(report.read_text())
    assert {one["id"] for one in document["results"] if one["verdict"] == "failed"} == {"T8", "F1.restart", "P8"}
    assert document["system"]["adapter"] == "remembering 1"
    assert document["given"] == ["launch", "models"]
    suite = ElementTree.parse(junit).getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("9", "3")
    assert len(suite.findall("testcase/failure")) == 3

    known.write_text(KNOWN)
    done = conformance(*flags, "--known-failures", known)
    assert done.code == 0, done.words
    assert "remembering conforms: 6 passed, 3 known failures, in" in done.words

    known.write_text(f'{KNOWN}\n[[known-failure]]\nid = "T1"\nface = "http"\nreason = "it was so once"\n')
    done = conformance(*flags, "--known-failures", known)
    assert done.code == 1
    assert "passes, but is listed to fail: it was so once" in done.words


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "give the address of a face"),
        (["grpc://127.0.0.1:1", "--only", "Z9"], "--only Z9: there is no such case"),
        (["grpc://127.0.0.1:1", "--known-failures", "/nowhere.toml"], "/nowhere.toml"),
        (["grpc://127.0.0.1:1", "http://127.0.0.1:1", "http://127.0.0.1:2"], "one gRPC address and one HTTP address"),
        (["tcp://127.0.0.1:1"], "must be grpc://host:port"),
        (["--launch", "my-server"], "needs {port} or {http_port}"),
        (["grpc://127.0.0.1:1", "--model-listen", "nowhere"], "--model-listen"),
        (["grpc://127.0.0.1:1", "--responders", "/nowhere.toml", "--model-listen", "127.0.0.1:0"], "/nowhere.toml"),
        (["--launch", "'my-server {port}"], "--launch"),
        (["grpc://127.0.0.1:1", "--junit", "/nowhere/a.xml"], "--junit /nowhere/a.xml: there is no folder /nowhere"),
        (["--list", "--json", "/nowhere/a.json"], "--json /nowhere/a.json: there is no folder /nowhere"),
        (["grpc://127.0.0.1:1", "--junit", "/tmp/a", "--json", "/tmp/a"], "--junit and --json name one file"),
    ],
)
def test_what_was_typed_wrongly_is_told(arguments: list[str], sentence: str) -> None:
    done = CliRunner().invoke(command, arguments)
    assert done.exit_code == 2, done.output
    assert sentence in " ".join(done.output.split())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["grpc://127.0.0.1:1"], "the system does not describe itself"),
        (["http://127.0.0.1:1"], "the system does not describe itself"),
        (["--launch", "no-such-command {port}"], "cannot be started"),
        (
            ["--launch", "echo no_luck {port}"],
            "the system has ended (exit code 0); its last words: no_luck",
        ),
        (["--launch", "false {port}"], "the system has ended (exit code 1); its last words: none"),
        (["grpc://127.0.0.1:1", "--model-listen", "203.0.113.1:1"], "--model-listen 203.0.113.1:1"),
    ],
)
def test_what_cannot_be_run_is_told(arguments: list[str], sentence: str) -> None:
    done = conformance(*arguments)
    assert done.code == 3, done.words
    assert sentence in done.words


def test_the_address_of_another_face_is_told() -> None:
    with models_in_thread(ModelServer()) as server:
        done = conformance(f"grpc://127.0.0.1:{urlsplit(server.url).port}")
    assert done.code == 3, done.words
    assert "what answers there speaks no gRPC; HTTP has an address http://host:port" in done.words


def test_results_that_cannot_be_written_are_no_verdict() -> None:
    done = conformance("--launch", SERVER, "--only", "T1", "--json", "/dev/full")
    assert done.code == 3, done.words
    assert "conforms: 2 passed" in done.words
    assert "the results above cannot be written to /dev/full: No space left on device" in done.words


def test_the_cases_are_listed_and_a_misspelt_variable_is_refused() -> None:
    done = CliRunner().invoke(command, ["--list", "--only", "T1"])
    assert done.exit_code == 0
    assert "T1 MUST a turn is found after Flush After AddTurns and Flush" in " ".join(done.output.split())
    assert "T2" not in done.output
    done = CliRunner().invoke(command, ["--list"], env={"MEMDOCK_KEI": "x"})
    assert done.exit_code == 2
    assert "MEMDOCK_KEI, which means nothing here" in " ".join(done.output.split())


def test_without_its_extra_the_command_says_what_is_missing() -> None:
    missing = "import sys; sys.modules['rich'] = None; from memdock.conformance.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", missing], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, "Traceback" in done.stderr) == (3, False)
    assert 'needs rich: pip install "memdock[conformance]"' in done.stderr


def test_a_suite_that_is_stopped_stops_what_it_has_launched(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    launch = f"sh -c 'echo $$ > {pid_file}; exec {SERVER}'"
    with subprocess.Popen(
        [sys.executable, "-m", "memdock.conformance", "--launch", launch, "--only", "X2"],
        env=clean_environment({"PYTHONPATH": f"{ROOT / 'tests'}:{':'.join(sys.path)}"}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as suite:
        wait_until(lambda: pid_file.exists() and pid_file.read_text().strip() != "", 30, "the system is launched")
        suite.terminate()
        _, errors = suite.communicate(timeout=60)
    assert (suite.returncode, "memdock-conformance: stopped" in errors) == (3, True), errors
    assert not Path(f"/proc/{pid_file.read_text().strip()}").exists()
