"""The gate: results against each of their baselines."""

from collections.abc import Iterator, Sequence

from memdock_evaluator.gate.checks import Pair, cost_checks, latency_checks, score_checks
from memdock_evaluator.gate.measured import measured
from memdock_evaluator.gate.sameness import refuse_other
from memdock_evaluator.gate.shape import Check, Gate, GateSettings
from memdock_evaluator.gate.suites import suite_checks
from memdock_evaluator.results.plan import differences


def hold(results: str, baselines: Sequence[str], settings: GateSettings) -> Gate:
    """Holds the run at the address `results` against each of those at `baselines`.

    Raises `GateError` where they cannot be compared, and `RunFilesError`, `ManifestError`, `FolderError` or `PartError`
    for what cannot be read.
    """
    new = measured(results)
    plan: list[str] = []
    checks: list[Check] = []
    for address in baselines:
        old = measured(address)
        refuse_other((results, new.manifest), (address, old.manifest))
        plan += [
            f"{address}: {each}"
            for each in differences(old.manifest.plan, new.manifest.plan, words=("baseline", "results"))
        ]
        checks += _checks(Pair(baseline=old, results=new, settings=settings))
    return Gate(
        results=results, baselines=tuple(baselines), alpha=settings.alpha, plan=tuple(plan), checks=tuple(checks)
    )


def _checks(pair: Pair) -> Iterator[Check]:
    yield from score_checks(pair)
    if pair.holds("latency"):
        yield from latency_checks(pair)
    if pair.holds("cost"):
        yield from cost_checks(pair)
    yield from suite_checks(pair)
