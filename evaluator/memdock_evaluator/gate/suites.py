"""Leaks and what forgetting leaves, as the suites beside two runs counted them (`report --with`)."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from memdock_evaluator.gate.checks import Pair, judged
from memdock_evaluator.gate.shape import Check, GateError, Verdict
from memdock_evaluator.results.folder import Folder
from memdock_evaluator.results.plan import Plan
from memdock_evaluator.statistics.no_worse import Worse, event_is_no_more_frequent
from memdock_evaluator.suites.attached import Attached, AttachError, attached
from memdock_evaluator.suites.shares import Share
from memdock_evaluator.words import counted

Counted = tuple[Share, str]
"""A share, and why it was not measured whole; "": it was."""
Moments = Mapping[tuple[str, str, str], Counted]
"""By system, language ("" for all) and what it is a share of."""


def suite_checks(pair: Pair) -> Iterator[Check]:
    """Of each system of the baseline that a suite of it knows. Raises `GateError` for suites over other data."""
    runs = pair.baseline, pair.results
    before, after = (_attached(run.folder, run.manifest.plan) for run in runs)
    _refuse_other_data(pair, before, after)
    held = {pair.baseline.manifest.plan.stores[name] for name in pair.systems}
    margins = pair.settings.margins
    for measure, found, margin in (("leaks", _leaks, margins.leaks), ("residue", _residue, margins.residue)):
        if not pair.holds(measure):
            continue
        first, second = found(before), found(after)
        for system, language, of in sorted(first):
            if system in held:
                check = pair.check((system, language), measure, margin, of)
                yield _check(pair, check, first[system, language, of], second.get((system, language, of)))


def _check(pair: Pair, check: Check, first: Counted, second: Counted | None) -> Check:
    """One cluster more in which it happens is a regression: there is no margin for what was seen."""
    if second is None:
        return replace(check, why="the results have no such suite: take it in with report --with")
    (before, lacking_before), (after, lacking) = first, second
    if not before["clusters"] or not after["clusters"]:
        return replace(check, why=lacking_before or lacking or "nothing was measured")
    worse = event_is_no_more_frequent(_events(before), _events(after), alpha=pair.settings.alpha)
    done = judged(check, worse)
    if worse.by > 0:
        return replace(done, verdict=Verdict.REGRESSION, why=_seen(after, worse))
    if lacking and done.verdict is Verdict.PASSED:
        return replace(done, verdict=Verdict.INCONCLUSIVE, why=lacking)
    return done


def _events(share: Share) -> tuple[int, int]:
    return share["clusters_with_events"], share["clusters"]


def _seen(after: Share, worse: Worse) -> str:
    of = f"{after['clusters_with_events']} of {after['clusters']}"
    return f"it happened in {of}, and a share of {worse.first:.3g} of the baseline's"


def _leaks(found: Attached) -> Moments:
    """Share of the pairs of users of which one was shown what is the other's."""
    return {
        (system, "", moment): (each["leaks"], _unmeasured(each["n_unmeasured"], "trial"))
        for result in reversed(found.leaks)
        for system, moments in result.summary["systems"].items()
        if system in result.differs
        for moment, each in moments.items()
    }


def _residue(found: Attached) -> Moments:
    """Share of the dialogues in which anything is left of what was forgotten, or comes back."""
    return {
        (system, language, f"by {mode}"): (each["residue"], _unmeasured(each["n_unmeasured"], "question"))
        for result in reversed(found.forgetting)
        for system, languages in result.summary["systems"].items()
        if system in result.differs
        for language, modes in languages.items()
        for mode, each in modes.items()
    }


def _unmeasured(n: int, what: str) -> str:
    return f"{counted(n, what)} could not be measured" if n else ""


def _attached(folder: Folder, plan: Plan) -> Attached:
    try:
        return attached(folder, plan)
    except AttachError as error:
        raise GateError(str(error)) from error


def _refuse_other_data(pair: Pair, before: Attached, after: Attached) -> None:
    hashes = [
        {file.sha256 for result in found.forgetting for file in result.manifest.plan.data.files}
        for found in (before, after)
    ]
    if all(hashes) and hashes[0] != hashes[1]:
        raise GateError(
            f"the suites on forgetting of {pair.baseline.folder.address} and {pair.results.folder.address} are over "
            "different data: run one of them again on the other's"
        )
