"""`summary.json` of the suite: leaks of trials, at each moment, with exact bounds."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from typing_extensions import TypedDict

from memdock_evaluator.leaks.rows import Moment, TrialRow
from memdock_evaluator.suites.ending import SuiteEnd
from memdock_evaluator.suites.shares import Share, share_of
from memdock_evaluator.words import counted


class MomentSummary(TypedDict):
    """One system at one moment, all languages together.

    `leaks`: of the trials that show something, those that leaked; a pair of twins is a cluster. `n_void` trials show
    nothing, `n_unmeasured` failed. `by` counts leaks by way, `taken` canaries that went with another's Forget or Reset.
    """

    n_trials: int
    n_void: int
    n_unmeasured: int
    leaks: Share
    by: dict[str, int]
    taken: int


class Summary(TypedDict):
    """The file. `systems`: system -> moment. `skipped`: system -> moment -> why nothing was asked then.

    `stopped`: why the suite could not go on; "": it went through all that there is.
    """

    systems: dict[str, dict[str, MomentSummary]]
    skipped: dict[str, dict[str, str]]
    stopped: str


def summarise(
    rows: Iterable[TrialRow], systems: Sequence[str], skipped: Mapping[str, Mapping[Moment, str]], stopped: str = ""
) -> Summary:
    """The figures; rows may come in any order."""
    of: defaultdict[tuple[str, Moment], list[TrialRow]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row.key):
        of[row.system, row.moment].append(row)
    return Summary(
        systems={
            name: {moment.value: _moment(of[name, moment]) for moment in Moment if (name, moment) in of}
            for name in systems
        },
        skipped={name: {moment.value: why for moment, why in found.items()} for name, found in skipped.items()},
        stopped=stopped,
    )


def conclusion(summary: Summary, spaces_not_reset: Sequence[str]) -> SuiteEnd:
    """What was found, and what cannot be said."""
    found, unmeasured = [], [summary["stopped"]] if summary["stopped"] else []
    for name, moments in summary["systems"].items():
        for moment, each in moments.items():
            if each["leaks"]["events"]:
                ways = ", ".join(f"{way} {count}" for way, count in each["by"].items())
                of = counted(each["leaks"]["of"], "trial")
                found.append(f"{name} {moment}: {each['leaks']['events']} of {of} leaked ({ways})")
            if each["taken"]:
                found.append(f"{name} {moment}: {counted(each['taken'], 'canary', 'canaries')} of another user went")
            if each["n_unmeasured"]:
                of = counted(each["n_trials"], "trial")
                unmeasured.append(f"{name} {moment}: {each['n_unmeasured']} of {of} failed, their rows say why")
            elif not each["leaks"]["of"]:
                unmeasured.append(f"{name} {moment}: no user finds its own canaries, so that no trial shows anything")
    if spaces_not_reset:
        unmeasured.append(f"{counted(len(spaces_not_reset), 'space')} not reset ({', '.join(spaces_not_reset[:3])})")
    return SuiteEnd(found=tuple(found), unmeasured=tuple(unmeasured))


def _moment(rows: Sequence[TrialRow]) -> MomentSummary:
    """A leak counts whatever else a trial is; without one only what was asked, and could be found, does."""
    valid = [row for row in rows if row.leaked_by or (row.void is None and row.blame is None)]
    ways = sorted({way for row in rows for way in row.leaked_by})
    return MomentSummary(
        n_trials=len(rows),
        n_void=sum(row.void is not None for row in rows),
        n_unmeasured=sum(row.blame is not None for row in rows),
        leaks=share_of((f"{row.language}/{row.pair}", bool(row.leaked_by), 1) for row in valid),
        by={way: sum(way in row.leaked_by for row in rows) for way in ways},
        taken=sum(row.taken for row in rows),
    )
