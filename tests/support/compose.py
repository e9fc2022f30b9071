"""The stack of docker-compose.yml as containers of a test: brought up under a name of its own, asked, broken, gone."""

import json
import os
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.processes import free_port

ROOT = Path(__file__).parents[2]
PYTHON = "/opt/memdock/bin/python"


def docker(*words: str, timeout_s: float = 120, given: str | None = None) -> str:
    """What a command of the engine's client prints; a failure shows all that it said."""
    done = subprocess.run(
        ["docker", *words], input=given, capture_output=True, text=True, timeout=timeout_s, check=False
    )
    assert done.returncode == 0, f"docker {' '.join(words)}: {done.stdout}{done.stderr}"
    return done.stdout.strip()


class Stack:
    """A stack that is up. `started_s`: how long it took from the command to all parts healthy."""

    def __init__(self, project: str, environment: Mapping[str, str]) -> None:
        self.project, self.environment = project, environment
        self.started_s = 0.0

    def compose(self, *words: str, timeout_s: float = 300) -> subprocess.CompletedProcess[str]:
        """A command of Compose to its end, whatever its exit code."""
        return subprocess.run(
            ["docker", "compose", "--project-name", self.project, *words],
            cwd=ROOT, env={**os.environ, **self.environment}, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=timeout_s, check=False,
        )  # fmt: skip

    def must(self, *words: str, timeout_s: float = 300) -> str:
        """A command of Compose that goes well; what it prints."""
        done = self.compose(*words, timeout_s=timeout_s)
        assert done.returncode == 0, f"docker compose {' '.join(words)}: {done.stdout[-2000:]}{done.stderr[-4000:]}"
        return done.stdout

    def container(self, service: str) -> str:
        """Its name."""
        return f"{self.project}-{service}-1"

    def inspect(self, service: str) -> dict[str, Any]:
        """What the engine knows of its container."""
        found: dict[str, Any] = json.loads(docker("inspect", self.container(service)))[0]
        return found

    @property
    def services(self) -> list[str]:
        """Those that run."""
        return sorted(self.must("ps", "--services", "--status", "running").split())

    def await_healthy(self, service: str, timeout_s: float = 90) -> None:
        """Waits, by the engine's own checks."""
        until = time.monotonic() + timeout_s
        while (state := self.inspect(service)["State"])["Health"]["Status"] != "healthy" or not state["Running"]:
            assert time.monotonic() < until, f"{service} is not healthy: {state}"
            time.sleep(0.5)

    def await_restart(self, service: str, restarts: int, timeout_s: float = 60) -> None:
        """Waits until the engine has started the container again, which it had done `restarts` times before."""
        until = time.monotonic() + timeout_s
        while (now := self.inspect(service))["RestartCount"] == restarts:
            assert time.monotonic() < until, f"{service} was not started again: {now['State']}"
            time.sleep(0.2)

    def left(self) -> list[str]:
        """Containers, networks and volumes of the stack that are there."""
        label = f"label=com.docker.compose.project={self.project}"
        return [
            line
            for listing in (["ps", "-aq"], ["network", "ls", "-q"], ["volume", "ls", "-q"])
            for line in docker(*listing, "--filter", label).splitlines()
        ]


def _copy_into_volume(file: Path, volume: str, image: str) -> None:
    """As the image's user, who can write there then."""
    into = ["--volume", f"{volume}:/data", "--entrypoint", "sh", image, "-c", f"cat > /data/{file.name}"]
    with file.open("rb") as content:
        subprocess.run(["docker", "run", "--rm", "-i", "--network", "none", *into], stdin=content, check=True)


@contextmanager
def stack(
    project: str, profiles: Sequence[str], embeddings: Path | None, settings: Mapping[str, str] | None = None
) -> Iterator[Stack]:
    """The stack until the end of the block; nothing of it is left then.

    `embeddings`: a cache for its embedder; `settings`: more of those of `.env.example`.
    """
    ports = {name: str(free_port()) for name in ("GATEWAY_GRPC_PORT", "GATEWAY_HTTP_PORT", "EVALUATOR_PORT")}
    up = Stack(project, {**ports, "COMPOSE_PROFILES": ",".join(profiles), **(settings or {})})
    try:
        up.must("create", "--quiet-pull", "embedder")
        if embeddings is not None:
            _copy_into_volume(embeddings, f"{project}_embeddings", up.inspect("embedder")["Config"]["Image"])
        began = time.monotonic()
        up.must("up", "--detach", "--wait", "--no-build")
        up.started_s = time.monotonic() - began
        yield up
    finally:
        down = up.compose("down", "--volumes", "--timeout", "20")
        left = up.left()
    assert down.returncode == 0, down.stderr
    assert not left, f"`down -v` leaves {left}"
