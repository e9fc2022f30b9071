"""The steps of gateway/README.md from nothing, one after another, as they stand but for the ports."""

import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from support.processes import clean_environment, free_port, wait_until

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
SNIPPETS = re.findall(r"<!-- tested -->\n```sh\n(.*?)```", (ROOT / "gateway/README.md").read_text(), re.DOTALL)
SYSTEM, GRPC, HTTP = "7470", "7450", "7451"
START_S = 60.0


class Shell:
    """Types into a shell in `folder`, with the README's ports exchanged for free ones."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ports = {port: str(free_port()) for port in (SYSTEM, GRPC, HTTP)}
        self._environment = clean_environment({"PATH": f"{BIN}:/usr/bin:/bin"})

    def with_free_ports(self, text: str) -> str:
        return re.sub("|".join(self.ports), lambda found: self.ports[found[0]], text)

    def run(self, commands: str) -> str:
        """Runs commands to their end; their standard output."""
        done = subprocess.run(
            ["bash", "-e", "-c", self.with_free_ports(commands)],
            cwd=self.folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @contextmanager
    def serving(self, command: str, port: str) -> Iterator[None]:
        """Runs a command that listens at a port of the README until the block ends."""
        log = self.folder / f"{port}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                ["bash", "-c", f"exec {self.with_free_ports(command)}"],
                cwd=self.folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

        def listens() -> bool:
            assert process.poll() is None, log.read_text()
            with suppress(OSError), socket.create_connection(("127.0.0.1", int(self.ports[port]))):
                return True
            return False

        try:
            wait_until(listens, START_S, f"{command} listens")
            yield
        finally:
            process.terminate()
            assert process.wait(30) == 0, log.read_text()


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.timeout(240)
def test_the_steps_work_one_after_another() -> None:
    system, gateway, caller, in_one_line = SNIPPETS
    init, serve = gateway.splitlines()
    # Not in a folder of pytest's, which another pytest would close to the user that PostgreSQL runs as.
    with tempfile.TemporaryDirectory(prefix="memdock-readme-") as folder:
        shell = Shell(Path(folder))
        with shell.serving(system, SYSTEM):
            assert "memdock-gateway serve --config gw/gateway.yaml" in shell.run(init)
            config = shell.folder / "gw/gateway.yaml"
            config.write_text(shell.with_free_ports(config.read_text()))
            with shell.serving(serve, HTTP):
                told = shell.run(caller)
                assert "We moved to Kazan in May." in told
                assert '{"systems":[{"system":"rag-dense","ready":true}]}' in told
                assert (shell.folder / "gw/team.key").read_text().startswith("mdk_")
            listening = f"--grpc 127.0.0.1:{GRPC} --http 127.0.0.1:{HTTP}"
            with shell.serving(f"{in_one_line.strip()} {listening}", HTTP):
                assert "rag-dense" in shell.run(f"memdock --url grpc://127.0.0.1:{GRPC} --system rag-dense ping")
