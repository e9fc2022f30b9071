"""The suite bites: each fault of a small system is told by the cases that are about it, and the sound one passes."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from memdock import check
from memdock.conformance.catalogue import choose
from memdock.conformance.run import Verdict, conforms
from memdock.v1 import memory_pb2 as pb
from support import conformance_mutants as mutants
from support.conformance import failed, target_of, verdicts
from support.conformance_more_mutants import MORE_FAULTS
from support.conformance_switches import SWITCHED, WithSwitches, commands
from support.gateway_mutants import FAULTS as GATEWAY_FAULTS
from support.mutants import LedgerWithoutTombstones

FAULTS: dict[str, tuple[dict[str, Any], Sequence[str]]] = {
    "drops every tenth turn": ({"make_system": mutants.DropsEveryTenth}, ["T1", "O1", "R6.memories"]),
    "says done while turns are pending": ({"wrap": mutants.DoneWhilePending}, ["T2", "T5"]),
    "answers nothing when its model fails": ({"make_system": mutants.AnswersNothingOnFailure}, ["P1.models"]),
    "stores twice on a retry": ({"wrap": mutants.StoresTwiceOnRetry}, ["I1", "I2"]),
    "forgets in one index only": ({"make_system": mutants.ForgetsOneIndexOnly}, ["F1", "F2", "F3", "I6"]),
    "leaks across spaces": ({"make_system": mutants.LeaksAcrossSpaces}, ["S1", "S2", "I5", "X1"]),
    "ignores filters": ({"make_system": mutants.IgnoresFilters}, ["R3.sessions", "R3.time"]),
    "replaces times by now": ({"make_system": mutants.TimesByNow}, ["E1", "E2", "E3", "R3.time"]),
    "gives one memory too many": ({"wrap": mutants.OneTooMany}, ["R2"]),
    "revives a forgotten turn": ({"make_ledger": LedgerWithoutTombstones}, ["I6"]),
    "repeats a turn in an error": ({"wrap": mutants.TellsTexts}, ["P2", "I3"]),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_is_told_by_the_cases_that_are_about_it(fault: str, tmp_path: Path) -> None:
    options, expected = FAULTS[fault]
    async with target_of(tmp_path, **options) as target:
        results = await verdicts([case for case in choose() if case.id in expected], target)
    assert set(failed(results)) == set(expected), {result.case.id: result.verdict for result in results}
    assert not conforms(results)


UNCHECKED = {
    "takes impossible times": ("memdock.check._check_time", lambda *_: None, "E5"),
    "takes no selector for one": ("memdock.check._check_forget", lambda *_: None, "F4"),
    "knows no deadlines": ("memdock.face_http.deadline_of", lambda _: None, "P5"),
    "passes over unknown fields": ("memdock.face_grpc.from_bytes", lambda kind, body: kind.FromString(body), "P3"),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", UNCHECKED)
async def test_a_check_that_the_server_lacks_is_told(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, lenient, expected = UNCHECKED[fault]
    monkeypatch.setattr(name, lenient)
    if expected == "F4":
        monkeypatch.setitem(check._CHECKS, pb.ForgetRequest, lenient)
    async with target_of(tmp_path) as target:
        assert expected in failed(await verdicts(choose([expected]), target))


@pytest.mark.slow
@pytest.mark.parametrize("fault", MORE_FAULTS)
async def test_more_faults_are_told(fault: str, tmp_path: Path) -> None:
    options, expected = MORE_FAULTS[fault]
    async with target_of(tmp_path, **options) as target:
        results = await verdicts([case for case in choose() if case.id in expected], target)
    assert set(failed(results)) == set(expected), {result.case.id: result.reason for result in results}


@pytest.mark.slow
@pytest.mark.parametrize("fault", SWITCHED)
async def test_a_fault_under_faults_is_told(fault: str, tmp_path: Path) -> None:
    make, expected = SWITCHED[fault]
    for system, failing in ((WithSwitches, set()), (make, {expected})):
        folder = tmp_path / system.__name__
        folder.mkdir()
        async with target_of(folder, partial(system, folder=folder)) as target:
            target.commands = commands(folder)
            results = await verdicts([case for case in choose() if case.id == expected], target)
        assert set(failed(results)) == failing
        assert conforms(results) != bool(failing)


async def test_one_space_for_two_tenants_is_told(tmp_path: Path) -> None:
    async with target_of(tmp_path) as target:
        target.other = target.faces
        assert set(failed(await verdicts(choose(["I5.tenant"]), target))) == {"I5.tenant"}


def test_there_is_a_fault_for_every_case() -> None:
    told = {case_id for _, cases in (*FAULTS.values(), *MORE_FAULTS.values()) for case_id in cases}
    told |= {expected for _, _, expected in UNCHECKED.values()} | {case_id for _, case_id in GATEWAY_FAULTS.values()}
    told |= {expected for _, expected in SWITCHED.values()} | {"I5.tenant"}
    told |= {"T8", "F1.restart", "P8"}  # a process that loses its memories: test_conformance_command
    assert {case.id for case in choose()} == told


@pytest.mark.slow
async def test_the_sound_system_passes_all_that_applies(tmp_path: Path) -> None:
    async with target_of(tmp_path) as target:
        results = await verdicts(choose(), target)
    assert failed(results) == {}
    assert conforms(results)
    unlooked = {result.case.id for result in results if result.verdict is not Verdict.PASSED}
    needy = {case.id for case in choose() if case.needs and case.needs != ("models",)}
    assert unlooked == needy


async def test_the_sound_system_passes_the_cases_that_tell_the_faults(tmp_path: Path) -> None:
    expected = {case_id for _, cases in FAULTS.values() for case_id in cases}
    async with target_of(tmp_path) as target:
        results = await verdicts([case for case in choose() if case.id in expected], target)
    assert {result.verdict for result in results} == {Verdict.PASSED}, failed(results)
