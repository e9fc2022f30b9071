"""The tutorial of a server in another language: its steps, run as they stand, on a copy of what they need."""

import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from support.processes import clean_environment, free_port

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "adapters/examples"
STEPS = re.findall(r"<!-- tested -->\n```sh\n(.*?)```", (EXAMPLES / "README.md").read_text(), re.DOTALL)

pytestmark = [
    pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed"),
    pytest.mark.timeout(300),
]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A folder with the examples, as they are in the repository, and the contract."""
    shutil.copytree(EXAMPLES, tmp_path / "adapters/examples", ignore=shutil.ignore_patterns("node_modules"))
    (tmp_path / "proto/memdock/v1").mkdir(parents=True)
    shutil.copy(ROOT / "proto/memdock/v1/memory.proto", tmp_path / "proto/memdock/v1")
    return tmp_path


def run(folder: Path, script: str) -> str:
    """What a script says; it must succeed, and what it has started is ended with it."""
    port = free_port()
    path = f"{Path(sys.executable).parent}:{clean_environment()['PATH']}"
    trap = "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n"
    done = subprocess.run(
        ["bash", "-e", "-c", trap + script.replace("7471", str(port))],
        cwd=folder,
        env=clean_environment({"PYTHONPATH": ":".join(sys.path), "PATH": path}),
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_the_memory_system_itself(clone: Path) -> None:
    said = run(clone / "adapters/examples", "node --test")
    assert "# pass 6\n# fail 0" in said


@pytest.mark.parametrize(
    ("flags", "code", "said"),
    [
        ("--listen nowhere", 2, "--listen must be HOST:PORT"),
        ("--system No", 2, "--system must be"),
        ("--colour red", 2, "usage: node server.mjs"),
        ("--data taken", 1, "cannot serve: "),
    ],
)
def test_what_cannot_be_started_is_told_in_a_sentence(clone: Path, flags: str, code: int, said: str) -> None:
    folder = clone / "adapters/examples"
    (folder / "taken").touch()
    told = run(folder, f"node node-http/server.mjs {flags} 2>&1 || echo ended with $?")
    assert f"ended with {code}" in told
    assert said in told
    assert "    at " not in told


def test_a_port_in_use_is_told_in_a_sentence(clone: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        told = run(
            clone / "adapters/examples", f"node node-http/server.mjs --listen {address} 2>&1 || echo ended with $?"
        )
    assert "cannot serve: listen EADDRINUSE" in told
    assert "ended with 1" in told
    assert "    at " not in told


@pytest.mark.slow
def test_the_steps_of_the_tutorial_over_http(clone: Path) -> None:
    over_http = [step for step in STEPS if "node-grpc" not in step]
    said = run(clone, "\n".join(over_http))
    assert len(over_http) == 8
    assert said.count("node-http conforms:") == 6


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
def test_the_step_of_the_tutorial_over_grpc(clone: Path) -> None:
    (over_grpc,) = (step for step in STEPS if "node-grpc" in step)
    said = run(clone, over_grpc)
    assert said.count("node-grpc conforms:") == 2


def test_the_lock_file_names_no_registry() -> None:
    lock = (EXAMPLES / "node-grpc/package-lock.json").read_text()
    assert '"resolved"' not in lock
    assert "registry" not in lock
    assert lock.count('"integrity"') > 20
