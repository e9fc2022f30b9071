"""The local stack is told to end at any moment of its start: it ends in order, and nothing that it started is left."""

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from memdock_evaluator.demo import write_environment
from support.processes import clean_environment, command_path, run_command, wait_until

END_S = 90.0


def left(folder: Path) -> list[str]:
    """The command lines of processes that work in the folder, or were given it."""
    found = []
    for process in psutil.process_iter():
        try:
            words = " ".join(process.cmdline())
            if process.pid != os.getpid() and (str(folder) in words or str(folder) in process.cwd()):
                found.append(words)
        except psutil.Error:
            continue
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "stack"
    assert left(tmp_path) == []


MISLEADING = {"MEMDOCK_EVAL_KEY": "of another gateway", "MEMDOCK_EVAL_ANSWER_URL": "http://127.0.0.1:9/v1"}
"""Settings of a run, which are none of a demo's."""


def started(folder: Path, command: str = "stack") -> "subprocess.Popen[str]":
    flags = ["--work", str(folder)]
    flags += ["--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"] if command == "stack" else ["--out", f"{folder}-run"]
    return subprocess.Popen(
        [command_path("memdock-eval"), command, *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=clean_environment(MISLEADING),
        start_new_session=True,
        text=True,
    )


def ended(process: "subprocess.Popen[str]") -> tuple[int, str]:
    said, _ = process.communicate(timeout=END_S)
    return process.returncode, said


MOMENTS = {
    "the embedder starts": "embedder.log",
    "a memory starts": "rag-dense.log",
    "its PostgreSQL is made": "postgres/postgres.partial",
    "its PostgreSQL runs": "postgres/postgres/postmaster.pid",
    "the second memory starts": "rag-hybrid.log",
    "the gateway starts": "gateway.log",
}


@pytest.mark.timeout(240)
@pytest.mark.parametrize("file", [pytest.param(file, id=moment) for moment, file in MOMENTS.items()])
@pytest.mark.slow
def test_a_stack_that_is_told_to_end_while_it_starts_leaves_nothing(folder: Path, file: str) -> None:
    process = started(folder)
    wait_until(lambda: (folder / file).exists(), END_S, f"{file} is there")
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGINT)
    code, said = ended(process)
    assert (code, said) == (1, "Error: interrupted while starting; what was started has ended\n")


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone tells a process that its parent has ended")
@pytest.mark.timeout(240)
@pytest.mark.parametrize("file", ["rag-dense.log", "postgres/postgres/postmaster.pid", "env"])
@pytest.mark.slow
def test_a_stack_that_is_killed_takes_its_parts_along(folder: Path, file: str) -> None:
    process = started(folder)
    wait_until(lambda: (folder / file).exists(), END_S, f"{file} is there")
    process.kill()
    process.communicate(timeout=END_S)
    with (folder.parent / f".{folder.name}.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # free once the last part has ended, so that no other start meets it
        assert left(folder) == []
    process = started(folder)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("ready: ")
    process.send_signal(signal.SIGTERM)
    assert ended(process)[0] == 0


@pytest.mark.timeout(240)
@pytest.mark.slow
def test_a_demo_that_is_told_to_end_on_the_way_leaves_nothing(folder: Path) -> None:
    process = started(folder, "demo")
    wait_until(lambda: Path(f"{folder}-run/manifest.json").exists(), END_S, "the evaluation has begun")
    process.send_signal(signal.SIGTERM)
    code, said = ended(process)
    assert code == 1
    assert said.endswith("Error: interrupted; what was started has ended\n")
    assert "Traceback" not in said


def test_a_demo_removes_results_and_nothing_else(tmp_path: Path) -> None:
    letter = tmp_path / "out" / "letter.txt"
    letter.parent.mkdir()
    letter.write_text("dear")
    done = run_command("memdock-eval", "demo", "--out", letter.parent, "--work", tmp_path / "work")
    assert done.code == 2
    assert f"--out {letter.parent} holds something else than a run" in done.words
    assert letter.read_text() == "dear"


def test_a_demo_of_a_dialogue_that_there_is_not_deletes_and_starts_nothing(tmp_path: Path) -> None:
    manifest = tmp_path / "out" / "manifest.json"
    manifest.parent.mkdir()
    manifest.write_text("of an earlier demo")
    done = run_command(
        "memdock-eval", "demo", "--out", manifest.parent, "--work", tmp_path / "work", "--dialogue", "77"
    )
    assert (done.code, manifest.exists(), (tmp_path / "work").exists()) == (2, True, False), done.words
    assert "the data holds no dialogue '77'" in done.words


@pytest.mark.parametrize("command", ["demo", "stack"])
def test_a_second_stack_in_a_folder_is_kept_out(tmp_path: Path, command: str) -> None:
    data = tmp_path / "demo"
    data.mkdir()
    (data / "postgres").touch()
    with (tmp_path / f".{data.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = run_command("memdock-eval", command, "--work", tmp_path if command == "demo" else data)
    said = f"Error: another stack runs in {data}, or still ends: end it, wait for it, or give another --work\n"
    assert (done.code, done.errors) == (1, said)
    assert (data / "postgres").exists(), "a demo makes its folder anew, but not under another"


def test_a_stack_that_cannot_start_says_so_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = run_command("memdock-eval", "stack", "--work", tmp_path / "file" / "stack")
    assert done.code == 1
    assert done.errors.startswith(f"Error: {tmp_path / 'file'} cannot be written to")
    assert done.errors.count("\n") == 1


def test_a_shell_that_sources_the_environment_finds_the_commands_and_the_settings(tmp_path: Path) -> None:
    folder = tmp_path / "it's here"
    folder.mkdir()
    (folder / "first.key").write_text("mdk_1\n")
    write_environment(folder / "env", "grpc://127.0.0.1:7", "http://127.0.0.1:8", folder / "first.key")
    script = '. "$1"; . "$1"; command -v memdock; echo "$MEMDOCK_URL $GRPC_ADDRESS $HTTP_URL $KEY"; echo "$PATH"'
    plain = {"PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        ["/bin/sh", "-ec", script, "sh", str(folder / "env")], env=plain, capture_output=True, text=True, check=True
    )
    commands = Path(command_path("memdock"))
    assert done.stdout.splitlines() == [
        str(commands),
        "grpc://127.0.0.1:7 127.0.0.1:7 http://127.0.0.1:8 mdk_1",
        f"{commands.parent}:{plain['PATH']}",
    ]


@pytest.mark.timeout(240)
@pytest.mark.slow
def test_a_part_that_does_not_start_is_named_with_its_own_sentence(folder: Path) -> None:
    done = run_command("memdock-eval", "stack", "--work", folder, "--grpc", "nowhere", timeout_s=END_S)
    assert done.code == 1
    assert done.errors.startswith(f"Error: gateway ended while starting: {folder}/gateway.yaml:")
    assert done.errors.count("\n") == 1
