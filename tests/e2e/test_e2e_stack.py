"""`memdock-eval stack` when one of its parts ends."""

import signal
import subprocess
from pathlib import Path

import psutil
import pytest

from support.processes import clean_environment, command_path


@pytest.mark.slow
def test_a_part_that_is_killed_ends_the_stack_with_a_word(tmp_path: Path) -> None:
    flags = ["--work", str(tmp_path / "work"), "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"]
    with subprocess.Popen(
        [command_path("memdock-eval"), "stack", *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=clean_environment(),
        text=True,
    ) as stack:
        try:
            assert stack.stdout is not None
            assert stack.stdout.readline().startswith("ready: ")
            parts = psutil.Process(stack.pid).children()
            (embedder,) = [part for part in parts if any("memdock-embedder" in word for word in part.cmdline())]
            embedder.send_signal(signal.SIGKILL)
            said, _ = stack.communicate(timeout=90)
        finally:
            stack.kill()
    assert stack.returncode == 1
    assert "embedder has ended (killed by SIGKILL); its log: " in said
    assert "Traceback" not in said
    assert not [part for part in parts if part.is_running()]
