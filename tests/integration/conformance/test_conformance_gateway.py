"""The cases of gateways bite: each fault is told by the case that is about it, and the sound gateway passes."""

import shlex
import sys
from pathlib import Path

import pytest

from memdock.conformance.catalogue import choose
from memdock.conformance.run import Verdict, run_cases
from support.conformance import QUICK, failed, target_of
from support.gateway_mutants import FAULTS
from support.processes import command_path

TESTS = Path(__file__).parents[2]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_of_a_gateway_is_told(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", ":".join((str(TESTS), *sys.path)))
    async with target_of(tmp_path) as target:
        target.gateway = f"{shlex.quote(sys.executable)} -m support.gateway_mutants {fault}"
        results = await run_cases(choose([FAULTS[fault][1]]), target, QUICK)
    assert [*failed(results)] == [FAULTS[fault][1]]
    assert "did not end" not in failed(results)[FAULTS[fault][1]], "told by what it does, not by a time-out"


async def test_the_sound_gateway_passes(tmp_path: Path) -> None:
    async with target_of(tmp_path) as target:
        target.gateway = shlex.quote(command_path("memdock-gateway"))
        results = await run_cases(choose(["G*"]), target, QUICK)
    assert {result.verdict for result in results} == {Verdict.PASSED}, failed(results)
