"""The suite bites: each fault of a small system is told by the cases that are about it, and the sound one passes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from memdock.conformance.catalogue import choose
from memdock.conformance.run import Verdict, conforms
from support import conformance_mutants as mutants
from support.conformance import failed, target_of, verdicts
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
