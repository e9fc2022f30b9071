"""Runs cases: each over each face, many at once, those that disturb others alone and last."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from memdock.conformance.case import HOW, Case, CheckFailedError, Level, Need, UnprovenError
from memdock.conformance.faces import Face
from memdock.conformance.known import KnownFailure, known_failure
from memdock.conformance.probe import Probe
from memdock.conformance.process import CannotRunError
from memdock.conformance.target import Settings, Target
from memdock.conformance.undeclared import refuses
from memdock.errors import MemdockError

_LONG_FIRST = ("X2", "F7", "F3", "P4", "S1", "R7")
"""Cases that take long, started first so that the others run beside them."""


class Verdict(StrEnum):
    """What a case has shown."""

    PASSED = "passed"
    FAILED = "failed"
    KNOWN = "known failure"
    UNEXPECTED = "unexpected pass"
    """It is listed as a known failure, and passes."""
    UNPROVEN = "unproven"
    """It could not be looked at here."""
    SKIPPED = "skipped"
    """It concerns what the system does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A case over a face. `reason`: why it did not pass; `seconds`: what it took."""

    case: Case
    face: str
    verdict: Verdict
    reason: str = ""
    seconds: float = 0.0


def conforms(results: Sequence[Result]) -> bool:
    """Nothing fails that is not known to, and nothing that is known to fail passes."""
    return not any(result.verdict in (Verdict.FAILED, Verdict.UNEXPECTED) for result in results)


async def run_cases(
    cases: Sequence[Case],
    target: Target,
    settings: Settings,
    *,
    known: Sequence[KnownFailure] = (),
    told: Callable[[Result], None] = lambda _: None,
) -> list[Result]:
    """Runs them all; `told` hears of each as it ends. The results are in the order of the cases."""
    places = asyncio.Semaphore(settings.parallel)
    jobs = [(case, face) for case in cases for face in (target.faces[:1] if case.once else target.faces)]
    results: dict[tuple[str, str], Result] = {}

    async def run(case: Case, face: Face) -> None:
        async with places:
            result = await run_case(case, target, face, settings)
        result = _as_known(result, known_failure(known, case, face.name))
        results[case.id, face.name] = result
        told(result)

    together = [job for job in jobs if not job[0].alone]
    together.sort(key=lambda job: _LONG_FIRST.index(job[0].id) if job[0].id in _LONG_FIRST else len(_LONG_FIRST))
    await asyncio.gather(*(run(case, face) for case, face in together))
    for case, face in jobs:
        if case.alone:
            await run(case, face)
    return [results[case.id, face.name] for case, face in jobs]


async def run_case(case: Case, target: Target, face: Face, settings: Settings) -> Result:
    """One case over one face."""
    started = time.perf_counter()

    def result(verdict: Verdict, reason: str = "") -> Result:
        return Result(case=case, face=face.name, verdict=verdict, reason=reason, seconds=time.perf_counter() - started)

    if (idle := _not_for(case, target)) is not None:
        return result(*idle)
    probe = Probe(case, target, face, settings)
    try:
        async with asyncio.timeout(settings.timeout_s):
            return result(*await _look(probe))
    except CheckFailedError as failed:
        return result(Verdict.FAILED, str(failed))
    except UnprovenError as unproven:
        return result(Verdict.UNPROVEN, str(unproven))
    except TimeoutError:
        return result(Verdict.FAILED, f"did not end within {settings.timeout_s:g} s")
    except MemdockError as error:
        return result(Verdict.FAILED, f"an unexpected error: {error.reason}: {error.message}")
    except CannotRunError as problem:  # what was to be started, or to come back, did not
        return result(Verdict.FAILED, str(problem))
    except Exception as fault:  # noqa: BLE001 - one case that cannot cope with an answer must not hide the others
        return result(Verdict.FAILED, f"the check itself failed: {type(fault).__name__}: {fault}")
    finally:
        await probe.clean()


async def _look(probe: Probe) -> tuple[Verdict, str]:
    case = probe.case
    missing = [feature for feature in case.features if not probe.declares(feature)]
    if not missing:
        await case.check(probe)
        return Verdict.PASSED, ""
    refusals = [await refuses(probe, feature) for feature in missing]
    names = ", ".join(missing)
    if all(refusals):
        return Verdict.PASSED, f"{names} is not declared, and refused as it must be"
    return Verdict.SKIPPED, f"{names} is not declared"


def _not_for(case: Case, target: Target) -> tuple[Verdict, str] | None:
    unmet = [need for need in case.needs if need not in target.given()]
    declared = all(target.declares(feature) for feature in case.features)
    if case.level is Level.GATEWAY and Need.GATEWAY in unmet:
        return Verdict.SKIPPED, f"for gateways: {HOW[Need.GATEWAY]}"
    if unmet and declared:
        return Verdict.UNPROVEN, "; ".join(HOW[need] for need in unmet)
    return None


def _as_known(result: Result, entry: KnownFailure | None) -> Result:
    if entry is None or result.verdict not in (Verdict.FAILED, Verdict.PASSED):
        return result
    failed = result.verdict is Verdict.FAILED
    return Result(
        case=result.case,
        face=result.face,
        verdict=Verdict.KNOWN if failed else Verdict.UNEXPECTED,
        reason=f"{entry.reason} ({result.reason})" if failed else f"passes, but is listed to fail: {entry.reason}",
        seconds=result.seconds,
    )
