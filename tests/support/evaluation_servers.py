"""Evaluation servers as processes of a test, and what a caller of theirs does."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.processes import Daemon, run_command, wait_until

RUN_S = 90.0
TERMINAL = ("completed", "incomplete", "failed", "cancelled")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What came back. `headers` by their names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body."""
        return json.loads(self.body)


@dataclass(slots=True, kw_only=True)
class EvaluationServer:
    """A replica. `key`: what calls are made with, "" for none."""

    process: Daemon
    key: str = ""

    @property
    def url(self) -> str:
        """Its address; the port is another one after each start."""
        return f"http://127.0.0.1:{self.process.ports()['http']}"

    def ask(
        self,
        verb: str,
        path: str,
        body: object = None,
        *,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answered:
        """One call; `body` is bytes, or what becomes JSON."""
        credential = self.key if key is None else key
        sent = dict(headers or {})
        if credential:
            sent["Authorization"] = f"Bearer {credential}"
        content = None
        if body is not None:
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            sent.setdefault("Content-Type", "application/json")
        request = urllib.request.Request(self.url + path, data=content, headers=sent, method=verb)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return _answered(answer.status, answer.headers, answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return _answered(error.code, error.headers, error.read())

    def start_run(self, plan: Mapping[str, object], request_id: str = "") -> str:
        """Starts a run; its id."""
        headers = {"Idempotency-Key": request_id} if request_id else {}
        answer = self.ask("POST", "/v1/runs", plan, headers=headers)
        assert answer.status == 201, answer.body
        return str(answer.json["run_id"])

    def run(self, run_id: str) -> Any:
        """What is known of a run."""
        answer = self.ask("GET", f"/v1/runs/{run_id}")
        assert answer.status == 200, answer.body
        return answer.json

    def ended(self, run_id: str, within_s: float = RUN_S) -> Any:
        """Waits for a run's end; what is known of it then."""
        wait_until(lambda: self.run(run_id)["state"] in TERMINAL, within_s, f"{run_id} ends: {self.run(run_id)}")
        return self.run(run_id)

    def metric(self, name: str) -> float:
        """A metric without labels."""
        lines = self.ask("GET", "/metrics").body.decode().splitlines()
        return float(next(line for line in lines if line.startswith(f"{name} ")).split()[1])


def _answered(status: int, headers: Any, body: bytes) -> Answered:
    return Answered(status=status, headers={name.lower(): value for name, value in headers.items()}, body=body)


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The folders of a service: results, data, keys."""

    folder: Path
    results: str
    flags: tuple[str, ...] = ()
    keys: dict[str, str] = field(default_factory=dict)

    @property
    def data(self) -> Path:
        """The data folder, made where it is missing."""
        path = self.folder / "data"
        path.mkdir(exist_ok=True)
        return path

    @property
    def keys_file(self) -> Path:
        """The file of keys."""
        return self.folder / "keys.json"

    def key(self, tenant: str, *flags: str) -> str:
        """A new key, made by the command."""
        done = run_command("memdock", "keys", "create", "--file", self.keys_file, "--tenant", tenant, *flags)
        assert done.code == 0, done.words
        return done.output.strip()

    @contextmanager
    def replicas(self, *names: str, flags: tuple[str, ...] = (), key: str = "") -> Iterator[list[EvaluationServer]]:
        """Replicas over the one results address, each ended with the block."""
        own = ("--keys", str(self.keys_file)) if self.keys_file.exists() else ("--insecure-dev",)
        where = ("--results", self.results, "--data", str(self.data), "--listen", "127.0.0.1:0")
        words = ["serve", *where, *own, "--beat", "0.3", "--lease", "2", *self.flags, *flags]
        with ExitStack() as ends:
            found = []
            for name in names:
                process = Daemon(name, "memdock-eval", words, self.folder)
                ends.callback(process.kill)
                process.launch()
                found.append(EvaluationServer(process=process, key=key))
            for each in found:
                each.process.wait_ready()
            yield found
