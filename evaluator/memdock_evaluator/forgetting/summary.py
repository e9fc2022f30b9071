"""`summary.json` of the suite: what is left of what was there, what came back, what else went."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from typing_extensions import TypedDict

from memdock.types import Description, Feature, Support
from memdock_evaluator.forgetting.modes import Mode
from memdock_evaluator.forgetting.rows import Claim, Look, NeighbourRow, TargetRow
from memdock_evaluator.forgetting.traces import Trace, together
from memdock_evaluator.suites.ending import SuiteEnd
from memdock_evaluator.suites.shares import Share, share_of
from memdock_evaluator.suites.system import DEEP_K
from memdock_evaluator.words import counted

LISTED = "absent from ListMemories"


class Neighbours(TypedDict):
    """Questions of whose evidence nothing was to be forgotten; recall is over all of their evidence, at k.

    Those that failed, `n_unmeasured` of `n`, have no recall.
    `lost`: of what was retrieved at k before, what is not after. A loss at k may be one of rank alone; `taken` counts
    turns that the system no longer holds though nobody selected them.
    """

    n: int
    n_unmeasured: int
    recall_before: float | None
    recall_after: float | None
    lost: Share
    taken: int


class Replies(TypedDict):
    """Answers before and after, where both were judged. Of those right before: abstained after, and right still."""

    n: int
    right_before: int
    abstained_after: Share
    right_after: Share


class ModeSummary(TypedDict):
    """One system, language and mode. Shares are by dialogue; what was not retrievable before counts nowhere.

    `by`: what the shares count, "turns" that memories name or, without sources, "words" of the evidence. `residue`:
    of the targets that were retrievable, those that left any sign; `signs` counts them by sign. `revived`: those of
    which a sign came with the late retry. `left_listed` is `None`, and `proof` says so, where nothing lists memories.
    `left_words`: the evidence's own words; `left_answers`: questions of whose answer all own words are left. `claims`:
    what the answers to Forget said is left, by component: the most items, and whether always verified.
    """

    n_dialogues: int
    n_targets: int
    n_unmeasured: int
    n_retrievable: int
    n_forget_failed: int
    by: str
    proof: str
    left_at_k: Share
    left_deep: Share
    left_listed: Share | None
    left_words: Share
    left_answers: Share
    residue: Share
    revived: Share
    signs: dict[str, int]
    claims: dict[str, dict[str, object]]
    neighbours: Neighbours
    replies: Replies | None


class Summary(TypedDict):
    """The file. `systems`: system -> language -> mode. `unsupported`: system -> modes that it does not declare.

    `stopped`: why the suite could not go on; "": it went through all that there is.
    """

    k: int
    systems: dict[str, dict[str, dict[str, ModeSummary]]]
    unsupported: dict[str, list[str]]
    stopped: str


def summarise(
    targets: Iterable[TargetRow],
    neighbours: Iterable[NeighbourRow],
    *,
    k: int,
    systems: Mapping[str, Description],
    modes: Sequence[Mode],
    stopped: str = "",
) -> Summary:
    """The figures; rows may come in any order."""
    of: defaultdict[tuple[str, str, Mode], list[TargetRow]] = defaultdict(list)
    beside: defaultdict[tuple[str, str, Mode], list[NeighbourRow]] = defaultdict(list)
    for row in sorted(targets, key=lambda row: row.key):
        of[row.system, row.language, row.mode].append(row)
    for near in sorted(neighbours, key=lambda row: row.key):
        beside[near.system, near.language, near.mode].append(near)
    figures: dict[str, dict[str, dict[str, ModeSummary]]] = {name: {} for name in systems}
    for place, found in sorted(of.items()):
        name, language, mode = place
        figures[name].setdefault(language, {})[mode.value] = _mode(found, beside[place], systems[name])
    return Summary(
        k=k,
        systems=figures,
        unsupported={
            name: lacking
            for name, told in systems.items()
            if (lacking := [str(mode) for mode in modes if not _declares(told, mode.feature)])
        },
        stopped=stopped,
    )


def conclusion(summary: Summary, spaces_not_reset: Sequence[str]) -> SuiteEnd:
    """What was found, and what cannot be said."""
    found, unmeasured = [], [summary["stopped"]] if summary["stopped"] else []
    for name, language, mode, each in in_order(summary):
        place = f"{name} ({language}) by {mode}"
        if each["residue"]["events"]:
            signs = ", ".join(f"{sign} {count}" for sign, count in each["signs"].items())
            of = counted(each["residue"]["of"], "question")
            found.append(f"{place}: {each['residue']['events']} of {of} left something behind ({signs})")
        if each["revived"]["events"]:
            found.append(f"{place}: {counted(each['revived']['events'], 'question')} came back with a late retry")
        if each["neighbours"]["taken"]:
            found.append(f"{place}: {counted(each['neighbours']['taken'], 'turn')} of neighbours went as well")
        if each["n_unmeasured"]:
            of = counted(each["n_targets"], "question")
            unmeasured.append(f"{place}: {each['n_unmeasured']} of {of} could not be measured, their rows say why")
        if lost := each["neighbours"]["n_unmeasured"]:
            of = counted(each["neighbours"]["n"], "neighbour")
            unmeasured.append(f"{place}: {lost} of {of} could not be asked, their rows say why")
        if not each["n_retrievable"]:
            unmeasured.append(f"{place}: nothing was retrievable before, so that nothing was shown to be forgotten")
    unmeasured += [f"{name} declares no Forget by {' or '.join(modes)}" for name, modes in _without_any(summary)]
    if spaces_not_reset:
        unmeasured.append(f"{counted(len(spaces_not_reset), 'space')} not reset ({', '.join(spaces_not_reset[:3])})")
    return SuiteEnd(found=tuple(found), unmeasured=tuple(unmeasured))


def in_order(summary: Summary) -> Iterable[tuple[str, str, str, ModeSummary]]:
    """Every system, language and mode with its figures."""
    for name, languages in summary["systems"].items():
        for language, modes in languages.items():
            for mode, each in modes.items():
                yield name, language, mode, each


def _without_any(summary: Summary) -> Iterable[tuple[str, list[str]]]:
    return ((name, modes) for name, modes in summary["unsupported"].items() if not summary["systems"][name])


def _mode(rows: Sequence[TargetRow], neighbours: Sequence[NeighbourRow], told: Description) -> ModeSummary:
    by = "turns" if _declares(told, Feature.SOURCES) else "words"
    measured = [row for row in rows if row.blame is None]
    there = [row for row in rows if _stood(row)]
    lists = _declares(told, Feature.LIST_MEMORIES)
    signs = sorted({sign for row in there for sign in (*row.left, *row.revived)})
    deep_k = min(DEEP_K, told.limits.max_top_k)
    return ModeSummary(
        n_dialogues=len({row.dialogue_id for row in rows}),
        n_targets=len(rows),
        n_unmeasured=len(rows) - len(measured),
        n_retrievable=len(there),
        n_forget_failed=sum(row.forget_blame is not None for row in rows),
        by=by,
        proof=LISTED if lists else f"not retrievable at k = {deep_k}",
        left_at_k=_left(measured, by, lambda look: look.at_k, lambda look: look.at_k),
        left_deep=_left(measured, by, _retrieved, _retrieved),
        left_listed=_left(measured, by, _anywhere, lambda look: look.listed or Trace()) if lists else None,
        left_words=_left(measured, "words", _anywhere, _anywhere),
        left_answers=share_of(
            (row.dialogue_id, "answer" in row.left, bool(_anywhere(row.before).answer)) for row in measured
        ),
        residue=share_of((row.dialogue_id, bool(row.left), 1) for row in there),
        revived=share_of((row.dialogue_id, bool(row.revived), 1) for row in there),
        signs={sign: sum(sign in (*row.left, *row.revived) for row in there) for sign in signs},
        claims=_claims(claim for row in rows for claim in row.claims),
        neighbours=_neighbours(neighbours, by),
        replies=_replies(measured),
    )


def _stood(row: TargetRow) -> bool:
    """Whether anything was there before that could be left; a sign after is a sign whatever was seen before."""
    before = _anywhere(row.before)
    return bool(row.left or row.revived or before.turns or before.words)


def _retrieved(look: Look) -> Trace:
    return together((look.at_k, look.deep))


def _anywhere(look: Look) -> Trace:
    return together(trace for trace in (look.at_k, look.deep, look.listed) if trace is not None)


def _left(rows: Iterable[TargetRow], by: str, before: Callable[[Look], Trace], after: Callable[[Look], Trace]) -> Share:
    """Of what was there before, what is there after."""
    pairs = [(row.dialogue_id, _pieces(before(row.before), by), _pieces(after(row.after), by)) for row in rows]
    return share_of((dialogue, len(was & still), len(was)) for dialogue, was, still in pairs)


def _pieces(trace: Trace, by: str) -> set[str]:
    return set(trace.turns if by == "turns" else trace.words)


def _claims(claims: Iterable[Claim]) -> dict[str, dict[str, object]]:
    by_component: defaultdict[str, list[Claim]] = defaultdict(list)
    for claim in claims:
        by_component[claim.component].append(claim)
    return {
        component: {"items": max(each.items for each in found), "verified": all(each.verified for each in found)}
        for component, found in sorted(by_component.items())
    }


def _neighbours(all_rows: Sequence[NeighbourRow], by: str) -> Neighbours:
    rows = [row for row in all_rows if row.blame is None]
    before = [_pieces(row.before_at_k, by) for row in rows]
    after = [_pieces(row.after_at_k, by) for row in rows]
    wanted = sum(len(_pieces(row.wanted, by)) for row in rows)
    return Neighbours(
        n=len(all_rows),
        n_unmeasured=len(all_rows) - len(rows),
        recall_before=sum(map(len, before)) / wanted if wanted else None,
        recall_after=sum(map(len, after)) / wanted if wanted else None,
        lost=share_of(
            (row.dialogue_id, len(was - still), len(was)) for row, was, still in zip(rows, before, after, strict=True)
        ),
        taken=sum(len(row.taken) for row in all_rows),
    )


def _replies(rows: Iterable[TargetRow]) -> Replies | None:
    replied = [(row.dialogue_id, *row.replies) for row in rows if row.replies is not None]
    if not replied:
        return None
    judged = [each for each in replied if each[1].correct is not None and each[2].correct is not None]
    right = [each for each in judged if each[1].correct]
    return Replies(
        n=len(judged),
        right_before=len(right),
        abstained_after=share_of((dialogue, after.abstained, 1) for dialogue, _, after in right),
        right_after=share_of((dialogue, bool(after.correct), 1) for dialogue, _, after in right),
    )


def _declares(told: Description, feature: Feature) -> bool:
    return told.features.get(feature, Support.UNSUPPORTED) in (Support.EMULATED, Support.NATIVE)
