"""What happens to containers while dialogues are stored costs time, and no outcome."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from containers.conftest import Outside
from memdock_evaluator.cli import main as memdock_eval
from support.compose import PYTHON, ROOT, Stack, docker

LANGUAGE, DIALOGUES = "en", ("0", "1")


def kill(up: Stack, service: str) -> None:
    """Its process dies as by a crash; the engine starts it again."""
    os.kill(up.inspect(service)["State"]["Pid"], signal.SIGKILL)


def an_adapter_is_killed(up: Stack) -> None:
    kill(up, "rag-dense")


def an_adapter_stands_still(up: Stack) -> None:
    docker("pause", up.container("rag-dense"))
    time.sleep(6)  # what it takes that calls wait
    docker("unpause", up.container("rag-dense"))


def an_adapter_loses_its_gateway(up: Stack) -> None:
    network = f"{up.project}_rag-dense"
    docker("network", "disconnect", network, up.container("gateway"))
    time.sleep(4)  # what it takes that calls fail
    docker("network", "connect", network, up.container("gateway"))


def an_adapter_loses_its_store(up: Stack) -> None:
    network = f"{up.project}_postgres"
    docker("network", "disconnect", network, up.container("rag-dense"))
    time.sleep(4)  # what it takes that statements fail
    docker("network", "connect", network, up.container("rag-dense"))


def an_adapter_is_out_of_memory(up: Stack) -> None:
    """Something in its container takes all memory; the kernel ends the adapter, which is marked to be the first."""
    before = up.inspect("rag-dense")
    Path(f"/proc/{before['State']['Pid']}/oom_score_adj").write_text("1000")
    hog = "b = []\nwhile True: b.append(bytearray(1 << 24))"
    subprocess.run(["docker", "exec", up.container("rag-dense"), PYTHON, "-c", hog], capture_output=True, check=False)
    up.await_restart("rag-dense", before["RestartCount"])


def the_store_is_killed(up: Stack) -> None:
    kill(up, "postgres")


FAULTS: list[Callable[[Stack], None]] = [
    an_adapter_is_killed,
    an_adapter_stands_still,
    an_adapter_loses_its_gateway,
    an_adapter_loses_its_store,
    an_adapter_is_out_of_memory,
    the_store_is_killed,
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_run_ends_complete_and_right(
    up: Stack, outside: Outside, tmp_path: Path, fault: Callable[[Stack], None]
) -> None:
    for service in ("postgres", "rag-dense", "rag-hybrid", "gateway"):
        up.await_healthy(service)
    out = fault.__name__
    command = [
        *("docker", "compose", "--project-name", up.project, "exec", "-T", "evaluator", "memdock-eval", "run"),
        *("--data", "own", "--language", LANGUAGE, "--out", out, "--progress", "json", "--concurrency", "1"),
        *("--system", "rag-dense", "--system", "rag-hybrid"),
        *(word for dialogue in DIALOGUES for word in ("--dialogue", dialogue)),
    ]
    happened, log = False, []
    with subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, **up.environment}, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    ) as run:  # fmt: skip
        assert run.stderr is not None
        for line in run.stderr:
            log.append(line)
            if not happened and _is_storing(line):
                happened = True
                fault(up)
    said = "".join(log)[-4000:]
    assert happened, said
    assert run.returncode == 0, said
    up.must("cp", f"evaluator:/results/{out}", str(tmp_path))
    assert (tmp_path / out / "outcomes.jsonl").read_bytes().splitlines() == outside.of_systems(LANGUAGE, DIALOGUES)
    verified = CliRunner().invoke(memdock_eval, ["verify", str(tmp_path / out)])
    assert verified.exit_code == 0, verified.output


def _is_storing(line: str) -> bool:
    """Whether some turns are stored, and some are not."""
    if not line.startswith('{"done"'):
        return False
    accepted, all_of_them = json.loads(line)["done"]["turns accepted"]
    return bool(0 < accepted < all_of_them)
