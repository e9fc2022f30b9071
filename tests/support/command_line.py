"""The protocol spoken by programs that know nothing of it: `buf curl` over gRPC, `curl` over HTTP."""

import base64
import json
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.rpc import error_details_pb2

from memdock.errors import REASONS
from memdock.service import Method
from support.processes import clean_environment, command_path

PROTO = Path(__file__).parents[2] / "proto"
TIMEOUT_S = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a program got: `status` is its exit code (buf) or the HTTP status (curl)."""

    status: int
    body: str
    errors: str = ""
    headers: Mapping[str, str]

    @property
    def content(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


@dataclass(frozen=True, slots=True, kw_only=True)
class BufCurl:
    """`address`: host:port of a gRPC face. `reflect`: it learns the calls from the server, else from our .proto."""

    address: str
    key: str = ""
    reflect: bool = False
    schema: Path = PROTO

    def call(self, method: Method, request: Mapping[str, Any]) -> Said:
        """One call; the request as ProtoJSON."""
        schema = ["--reflect"] if self.reflect else ["--reflect=false", "--schema", str(self.schema)]
        words = [command_path("buf"), "curl", "--protocol", "grpc", "--http2-prior-knowledge", *schema]
        words += ["--header", f"Authorization: Bearer {self.key}"] if self.key else []
        done = _run([*words, "--data", "@-", f"http://{self.address}{method.grpc_path}"], json.dumps(request))
        return Said(status=done.returncode, body=done.stdout, errors=done.stderr, headers={})


@dataclass(frozen=True, slots=True, kw_only=True)
class Curl:
    """`url`: of an HTTP face. curl must be installed: see `curl_missing`."""

    url: str
    key: str = ""

    def call(self, method: Method, request: Mapping[str, Any]) -> Said:
        """One call: names into the path, the rest into the body."""
        path = method.path.format(**request)
        body = {name: value for name, value in request.items() if name not in method.path_fields}
        return self.send(method.verb, path, json.dumps(body) if method.verb == "POST" else "")

    def send(self, verb: str, path: str, body: str = "") -> Said:
        """Any request."""
        words = ["curl", "--silent", "--show-error", "--max-time", str(TIMEOUT_S), "--request", verb]
        words += ["--dump-header", "-", "--header", "Expect:"]
        words += ["--header", f"Authorization: Bearer {self.key}"] if self.key else []
        words += ["--header", "Content-Type: application/json", "--data-binary", "@-"] if body else []
        done = _run([*words, f"{self.url}{path}"], body)
        assert done.returncode == 0, done.stderr
        head, _, content = done.stdout.replace("\r\n", "\n").partition("\n\n")
        first, *lines = head.split("\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        return Said(status=int(first.split()[1]), body=content, headers=headers)


def refusal(said: Said) -> tuple[str, str]:
    """Reason and sentence of an error, which must have the one gRPC code or HTTP status that the reason has."""
    problem = json.loads(said.errors or said.body)
    if "details" not in problem:
        reason, sentence = problem["reason"], problem["detail"]
        assert said.headers["content-type"] == "application/problem+json"
        assert said.status == problem["status"] == REASONS[reason].http_status
        return reason, sentence
    infos = [detail for detail in problem["details"] if detail["type"] == "google.rpc.ErrorInfo"]
    info = error_details_pb2.ErrorInfo()
    info.ParseFromString(base64.b64decode(infos[0]["value"] + "=="))
    assert said.status == 8 * REASONS[info.reason].code  # how buf makes an exit code of a gRPC code
    return info.reason, problem["message"]


def curl_missing() -> bool:
    """Whether there is no curl on this machine."""
    return shutil.which("curl") is None


def _run(words: list[str], body: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        words, input=body, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, env=clean_environment()
    )
