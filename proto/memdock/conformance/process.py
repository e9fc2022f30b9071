"""The system as a process of the suite: started, killed, told to end, started again over the same data."""

import asyncio
import os
import random
import shlex
import signal
import socket
import subprocess
from contextlib import suppress
from pathlib import Path

READY_S = 90.0
END_S = 30.0


class CannotRunError(Exception):
    """The suite cannot do its work: the target does not start, or cannot be reached."""


def free_port() -> int:
    """A port that nobody listens on, outside the range of outgoing connections, so that it is free after a kill."""
    while True:
        port = random.randrange(15_000, 30_000)  # noqa: S311 - not a secret
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


class Launched:
    """One command line, in a process group that is the suite's to kill. Standard output and error go to `log`."""

    def __init__(self, command: str, log: Path) -> None:
        self._words = shlex.split(command)
        self.log = log
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Starts it; that it serves is asked of its faces."""
        with self.log.open("ab") as output:
            try:
                self._process = await asyncio.create_subprocess_exec(
                    *self._words,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            except OSError as problem:
                raise CannotRunError(f"--launch: {self._words[0]} cannot be started: {problem.strerror}") from None

    @property
    def ended(self) -> bool:
        """It is not running."""
        return self._process is None or self._process.returncode is not None

    @property
    def code(self) -> int | None:
        """Its exit code; `None`: it is running, or was never started."""
        return self._process.returncode if self._process is not None else None

    @property
    def last_words(self) -> str:
        """The end of its log."""
        return self.log.read_text(errors="replace")[-1500:] if self.log.exists() else ""

    async def kill(self) -> None:
        """SIGKILL to its process group."""
        await self._end(signal.SIGKILL, END_S)

    def terminate(self) -> None:
        """SIGTERM to the process alone, which is to see to its children."""
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(signal.SIGTERM)

    async def wait(self, within_s: float) -> bool:
        """Whether it has ended within the time."""
        if self._process is None:
            return True
        try:
            async with asyncio.timeout(within_s):
                await self._process.wait()
        except TimeoutError:
            return False
        return True

    async def stop(self) -> None:
        """SIGTERM, and then SIGKILL to what is left of its group."""
        self.terminate()
        await self.wait(END_S)
        await self.kill()  # what it has left of its group

    async def _end(self, number: signal.Signals, within_s: float) -> None:
        if self._process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)
        await self.wait(within_s)


async def run_command(command: str, within_s: float = 60.0) -> tuple[int, str]:
    """Runs a command line to its end; its exit code and what it said."""
    process = await asyncio.create_subprocess_exec(
        *shlex.split(command),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(within_s):
            said, _ = await process.communicate()
    except TimeoutError:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        raise CannotRunError(f"{command} did not end within {within_s:g} s") from None
    return process.returncode or 0, said.decode(errors="replace")
