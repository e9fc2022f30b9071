"""The reference memory and the gateway are held to the protocol by the suite, as a vendor would run it."""

import json
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from memdock.adapter.postgres import EmbeddedPostgres
from support.processes import clean_environment, command_path, run_command, wait_until
from support.whole_stack import HYBRID, WholeStack

ROOT = Path(__file__).parents[2]
PYTHON = shlex.quote(sys.executable)
KNOWN = ROOT / "adapters/pgvector/conformance.toml"
FACES = "--grpc 127.0.0.1:{port} --http 127.0.0.1:{http_port}"
MOST_S = 180.0

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that PostgreSQL's user may pass through."""
    with tempfile.TemporaryDirectory(prefix="memdock-test-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def conformance(folder: Path, *flags: str) -> dict[str, Any]:
    """Runs the command; its JSON."""
    report = folder / "report.json"
    done = subprocess.run(
        [sys.executable, "-m", "memdock.conformance", *flags, "--json", str(report)],
        env=clean_environment({"PYTHONPATH": f"{ROOT / 'tests'}:{':'.join(sys.path)}"}),
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert report.exists(), done.stdout[-2000:] + done.stderr[-2000:]
    document: dict[str, Any] = json.loads(report.read_text())
    bad = [one for one in document["results"] if one["verdict"] in ("failed", "unexpected pass")]
    assert (done.returncode, bad) == (0, []), done.stdout[-1500:]
    return document


def unlooked(document: dict[str, Any]) -> set[str]:
    """Ids of the cases that were not looked at."""
    return {one["id"] for one in document["results"] if one["verdict"] in ("unproven", "skipped")}


def serve(*flags: str) -> str:
    return shlex.join([command_path("memdock-pgvector"), "serve", *flags]) + f" --embedder {{model_url}}#words {FACES}"


def test_dense_on_a_database_that_goes_away(folder: Path) -> None:
    elsewhere = EmbeddedPostgres(folder / "elsewhere")
    elsewhere._join()
    switch = f"{PYTHON} -m support.postgres_switch"
    where = shlex.quote(str(folder / "elsewhere"))
    try:
        launch = serve("--system", "rag-dense", "--fusion", "dense", "--database", elsewhere.url)
        flags = ("--store-down", f"{switch} down {where}", "--store-up", f"{switch} up {where}")
        junit = folder / "junit.xml"
        document = conformance(
            folder, "--launch", launch, "--known-failures", str(KNOWN), "--junit", str(junit), *flags
        )
    finally:
        elsewhere._leave()
    assert document["seconds"] < MOST_S
    assert unlooked(document) == {"T4", "E4", "I5.tenant", "F8.fault", *(f"G{number}" for number in range(1, 9))}
    suite = ElementTree.parse(junit).getroot()
    assert (int(suite.get("tests", 0)), suite.get("failures")) == (len(document["results"]), "0")


def test_hybrid_and_the_gateway(folder: Path) -> None:
    gateway = ("--gateway", shlex.quote(command_path("memdock-gateway")))
    launch = serve("--data", "{data}", "--system", "rag-hybrid")
    document = conformance(folder, "--launch", launch, "--known-failures", str(KNOWN), *gateway)
    assert document["seconds"] < MOST_S
    assert unlooked(document) == {"T4", "E4", "I5.tenant", "F8.fault", "P6.store"}
    gateways = [one["verdict"] for one in document["results"] if one["level"] == "GATEWAY"]
    assert gateways == ["passed"] * 8
    assert document["system"]["features"]["TIME_ZONES"] == "UNSUPPORTED"


def test_the_reference_memory_behind_the_gateway(folder: Path) -> None:
    stack = f"{PYTHON} -m support.stack_behind_gateway --data {{data}} --model {{model_url}} {FACES}"
    document = conformance(folder, "--launch", stack, "--system", "rag-hybrid", "--settle", "5")
    expected = {"T4", "E4", "I5.tenant", "F8.fault", "P6.store", *(f"G{number}" for number in range(1, 9))}
    assert unlooked(document) == expected


def test_two_tenants_of_a_gateway_with_keys(stack: WholeStack, tmp_path: Path) -> None:
    other = stack.new_key(tenant="others")
    words = ("memdock", "--url", stack.grpc_url, "--system", HYBRID, "--key", other, "describe")
    wait_until(lambda: run_command(*words).code == 0, 20, "the gateway has read its new key")
    flags = ("--system", HYBRID, "--key", stack.key, "--other-key", other, "--only", "I5,S*,P1,P2,R*")
    document = conformance(tmp_path, stack.grpc_url, stack.http_url, *flags)
    verdicts = {one["id"]: one["verdict"] for one in document["results"]}
    assert verdicts["I5.tenant"] == "passed"
    assert {verdicts[one] for one in ("P1.models", "P2.models")} == {"unproven"}
