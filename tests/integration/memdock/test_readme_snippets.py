"""The snippets of proto/README.md, run as they stand but for the ports."""

import asyncio
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from memdock.client import AsyncClient, connect_async
from memdock.errors import UnavailableError

README = Path(__file__).parents[3] / "proto/README.md"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


def snippets(language: str, ports: dict[str, str]) -> list[str]:
    found = re.findall(rf"^```{language}\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL)
    for name, port in ports.items():
        found = [text.replace(name, port) for text in found]
    return found


async def typed(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MEMDOCK_")}
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    return await asyncio.to_thread(
        subprocess.run, command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


async def test_a_system_is_served_and_spoken_to_as_the_readme_says(tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("needs curl, as the README does")
    ports = {"7470": str(free_port()), "7471": str(free_port())}
    served, asked = snippets("python", ports)
    (shell,) = snippets("sh", ports)
    (tmp_path / "words.py").write_text(served)
    (tmp_path / "asked.py").write_text(asked)
    with (tmp_path / "log").open("wb") as log:
        server = subprocess.Popen([sys.executable, "words.py"], cwd=tmp_path, stderr=log)  # noqa: ASYNC220
    try:
        async with asyncio.timeout(30), connect_async(f"grpc://127.0.0.1:{ports['7470']}") as client:
            await until_it_answers(client, server)
        python = await typed(tmp_path, sys.executable, "asked.py")
        assert python.stdout.splitlines() == [
            "2024-05-01 09:30:00+00:00 I live in Kazan now.",
            "VALIDATION_FAILED ['top_k']",
        ], python.stderr
        commands = await typed(tmp_path, "sh", "-e", "-c", shell)
        assert commands.returncode == 0, commands.stderr
        assert "1. I live in Kazan now." in commands.stdout
        assert '"text":"I live in Kazan now."' in commands.stdout
        assert "erased 1 memory and 1 turn\n" in commands.stdout
    finally:
        server.terminate()
        await asyncio.to_thread(server.wait, 20)
    assert server.returncode == 0


async def until_it_answers(client: AsyncClient, server: subprocess.Popen[bytes]) -> None:
    while True:
        assert server.poll() is None
        try:
            await client.describe()
        except UnavailableError:
            await asyncio.sleep(0.05)
        else:
            return
