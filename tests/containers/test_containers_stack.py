"""What the containers are: small, bounded, without rights; and the evaluation in them gives what it gives outside."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from containers.checks import check_bounds, check_image
from containers.conftest import Outside
from memdock_embedder.choose import open_embedder
from support.compose import PYTHON, Stack, docker

CORE = ["embedder", "evaluator", "gateway", "postgres", "rag-dense", "rag-hybrid"]
MOST_IDLE_MB = 700
MOST_GATEWAY_MB = 250
MIB = 1 << 20


def test_the_core_stack_is_up_and_idles_in_little_memory(up: Stack, figure: Callable[[str], None]) -> None:
    assert up.services == sorted([*CORE, "meter"])
    used = {}
    for service in CORE:
        lines = docker("exec", "--user", "0", up.container(service), "cat", _memory_file(up, service))
        used[service] = int(lines) / MIB
    figure(f"from `up` to all healthy: {up.started_s:.1f} s, at most 60 wanted")
    figure(
        f"idle, MB: {sum(used.values()):.0f} of {MOST_IDLE_MB}: { ({name: round(mb) for name, mb in used.items()}) }"
    )
    assert sum(used.values()) <= MOST_IDLE_MB, used


def _memory_file(up: Stack, service: str) -> str:
    files = ("/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory/memory.usage_in_bytes")
    found = docker("exec", up.container(service), "sh", "-c", f"ls {' '.join(files)} 2>/dev/null || true").split()
    return found[0]


def test_every_container_is_bounded_and_without_rights(up: Stack) -> None:
    for service in up.services:
        check_bounds(up, service)


def test_no_secret_stands_in_the_environment(up: Stack) -> None:
    password = docker("exec", up.container("postgres"), "cat", "/stores/password")
    key = docker("exec", up.container("gateway"), "cat", "/keys/first.key")
    for service in up.services:
        said = json.dumps(up.inspect(service))
        assert password not in said, service
        assert key not in said, service


def test_images_have_labels_a_fixed_entry_and_no_tools(up: Stack, figure: Callable[[str], None]) -> None:
    megabytes = {service: check_image(up, service) for service in sorted(set(up.services) - {"postgres"})}
    figure(f"images, MB beside the base: {megabytes}")
    assert megabytes["gateway"] <= MOST_GATEWAY_MB


def test_the_embedder_gives_the_vectors_of_outside(up: Stack) -> None:
    text = "Наша кошка Муся родила котят, and nobody has embedded this yet."

    async def embed() -> Any:
        embedder = await open_embedder()
        try:
            return (await embedder.embed([text], "passage")).vectors[0]
        finally:
            await embedder.close()

    ask = (
        "import json, sys, urllib.request as r\n"
        "head = {'content-type': 'application/json'}\n"
        "q = r.Request('http://127.0.0.1:7460/v1/embeddings', sys.stdin.buffer.read(), head)\n"
        "print(r.urlopen(q).read().decode())\n"
    )
    body = json.dumps({"input": [text], "input_type": "passage"})
    said = json.loads(docker("exec", "-i", up.container("embedder"), PYTHON, "-c", ask, given=body))
    inside = np.array(said["data"][0]["embedding"], dtype=np.float32)
    assert np.allclose(inside, asyncio.run(embed()), atol=1e-5)


def test_the_evaluation_gives_the_outcomes_of_outside(up: Stack, outside: Outside, tmp_path: Path) -> None:
    up.must("run", "--rm", "-T", "evaluator", "run", "--data", "own", "--system", "rag-dense", "--system", "rag-hybrid",
            "--baseline", "oracle", "--baseline", "refusal", "--out", "same", timeout_s=400)  # fmt: skip
    up.must("cp", "evaluator:/results/same/outcomes.jsonl", str(tmp_path))
    assert (tmp_path / "outcomes.jsonl").read_bytes() == outside.rows
    up.must("exec", "-T", "evaluator", "memdock-eval", "verify", "same")
