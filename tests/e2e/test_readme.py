"""The README's snippets, run as they stand against a stack that the README's own command started."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
SNIPPETS = re.findall(r"<!-- tested -->\n```(\w+)\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a running `memdock-eval stack`, and what the snippets name by a relative path."""
    folder = tmp_path_factory.mktemp("readme")
    (folder / "proto").symlink_to(ROOT / "proto")
    flags = ["stack", "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"]
    with (folder / "stack.log").open("wb") as log:
        stack = subprocess.Popen([BIN / "memdock-eval", *flags], cwd=folder, env=environment(), stdout=log, stderr=log)
    try:
        until = time.monotonic() + 60
        while not (folder / ".memdock/stack/env").exists():
            assert stack.poll() is None, (folder / "stack.log").read_text()
            assert time.monotonic() < until, (folder / "stack.log").read_text()
            time.sleep(0.05)
        yield folder
    finally:
        stack.send_signal(signal.SIGTERM)
        stack.wait(30)


def environment() -> dict[str, str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("MEMDOCK_")}
    return {**plain, "PATH": f"{BIN}:{plain['PATH']}"}


def run(folder: Path, command: list[str], script: str) -> str:
    done = subprocess.run(
        command, input=script, cwd=folder, env=environment(), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_there_are_snippets() -> None:
    assert [language for language, _ in SNIPPETS] == ["sh", "sh", "python"]


@pytest.mark.timeout(120)
def test_the_command_line(folder: Path) -> None:
    shown = run(folder, ["bash", "-e"], SNIPPETS[0][1])
    assert "We moved to Kazan in May." in shown
    assert "FORGOTTEN" in shown


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.timeout(120)
def test_http_and_grpc(folder: Path) -> None:
    shown = run(folder, ["bash", "-e"], ". .memdock/stack/env\n" + SNIPPETS[1][1])
    assert shown.count("Наша кошка Муся родила котят") == 2


@pytest.mark.timeout(120)
def test_python(folder: Path) -> None:
    script = f". .memdock/stack/env\npython - <<'PYTHON'\n{SNIPPETS[2][1]}PYTHON\n"
    shown = run(folder, ["bash", "-e"], script)
    assert "I sold the Lada yesterday." in shown
    assert "turn_id='t1'" in shown
