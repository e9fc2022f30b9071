"""Our console commands as processes of a test: started, killed, started again on the same ports and data."""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

READY_S = 60.0
END_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A command that has ended. `output` and `errors` are its standard output and standard error."""

    code: int
    output: str
    errors: str

    @property
    def words(self) -> str:
        """Everything that it said, on one line, as one space between two words."""
        return " ".join(f"{self.output} {self.errors}".split())


def command_path(name: str) -> str:
    """A console command of the environment that runs the tests; a path stays as it is."""
    return name if "/" in name else str(Path(sys.executable).with_name(name))


def clean_environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment without settings of ours, and plain text at a fixed width from everything that draws."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MEMDOCK_")}
    return {**kept, "COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb", **(more or {})}


def run_command(
    name: str, *arguments: str | Path, timeout_s: float = 60.0, environment: Mapping[str, str] | None = None
) -> Finished:
    """Runs a command to its end; one that takes longer is killed and fails the test."""
    done = subprocess.run(
        [command_path(name), *map(str, arguments)],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        env=clean_environment(environment),
        timeout=timeout_s,
        check=False,
        text=True,
    )
    return Finished(code=done.returncode, output=done.stdout, errors=done.stderr)


def free_port() -> int:
    """A port that nobody listens on now, and that the kernel gives to nobody by itself.

    Ports of outgoing connections come from another range, so a server that is down for a moment finds its port again.
    """
    while True:
        port = random.randrange(15_000, 30_000)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with suppress(OSError):
                probe.bind(("127.0.0.1", port))
                return port


class Daemon:
    """A serving command whose flags and ports stay the same from one start to the next; its log is one file."""

    def __init__(self, name: str, command: str, flags: Sequence[str | Path], folder: Path) -> None:
        self.name = name
        self.log_file = folder / f"{name}.log"
        self._port_file = folder / f"{name}.ports.json"
        self._words = [command_path(command), *map(str, flags), "--port-file", str(self._port_file)]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> str:
        """What it wrote, all starts together."""
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    def start(self) -> None:
        """Starts it and waits until it serves."""
        self.launch()
        self.wait_ready()

    def launch(self) -> None:
        """Starts it."""
        self._port_file.unlink(missing_ok=True)
        with self.log_file.open("ab") as output:
            self._process = subprocess.Popen(
                self._words,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=clean_environment(),
                start_new_session=True,
            )

    def wait_ready(self) -> None:
        """Returns when it serves; an end before that is an AssertionError with its last words."""
        process = self._process
        assert process is not None

        def ready() -> bool:
            assert process.poll() is None, f"{self.name} ended while starting: {self.log[-1500:]}"
            return self._port_file.exists()

        wait_until(ready, READY_S, f"{self.name} serves: {self.log[-500:]}")

    def kill(self) -> None:
        """SIGKILL; harmless when it has ended."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(END_S)

    def stop(self) -> int:
        """SIGTERM; the exit code. Killed when it does not end in time, which is an AssertionError."""
        assert self._process is not None
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(END_S)
            except subprocess.TimeoutExpired:
                self.kill()
                raise AssertionError(f"{self.name} did not end after SIGTERM: {self.log[-1500:]}") from None
        return self._process.returncode

    def ports(self) -> dict[str, int]:
        """What its port file says."""
        ports: dict[str, int] = json.loads(self._port_file.read_text())
        return ports


def wait_until(condition: Callable[[], bool], within_s: float, what: str) -> None:
    """Waits for a condition; a time-out is an AssertionError."""
    ends = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < ends, f"not within {within_s:g} s: {what}"
        time.sleep(0.02)


def kill_process(pid: int, within_s: float = END_S) -> None:
    """SIGKILL to a process that a part of the test started, and waits until it is gone."""
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: _gone(pid), within_s, f"process {pid} is gone")


def _gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True
