"""What the suites found on the systems of a run, as tables."""

from collections.abc import Iterator

from memdock_evaluator.forgetting.summary import ModeSummary, in_order
from memdock_evaluator.leaks.rows import Moment
from memdock_evaluator.suites.attached import Attached
from memdock_evaluator.suites.shares import Share
from memdock_evaluator.tables.shape import Cell, Table, percent


def forgetting_table(suites: Attached) -> Table:
    """A row a system, language and way of forgetting."""
    return Table(
        name="forgetting",
        title="Forgetting",
        columns=(
            *("system", "language", "forgotten by", "questions", "retrievable before", "unmeasured", "Forget failed"),
            *("left at k", "of at k", "residual recall at k", "left deep", "of deep", "listed", "of listed"),
            *("questions with a sign", "dialogues with a sign", "of dialogues", "95% bound of dialogues", "came back"),
            *("neighbours", "recall before", "recall after", "lost", "lost 95% low", "lost 95% high", "taken"),
            *("left by", "differs in"),
        ),
        rows=tuple(
            (name, language, mode, *_forgotten(each), ", ".join(result.differs[name]))
            for result in suites.forgetting
            for name, language, mode, each in in_order(result.summary)
            if name in result.differs
        ),
        notes=(
            "Left: of the forgotten evidence that was there before Forget, what is retrieved or listed after it; "
            "turns, or words where memories name no sources. Lost: of what neighbours retrieved before, what they do "
            "not after; taken: turns of theirs that are gone. The bound is exact, of the share of dialogues.",
            *(
                f"{name} declares no Forget by {', '.join(modes)}."
                for result in suites.forgetting
                for name, modes in result.summary["unsupported"].items()
                if name in result.differs
            ),
        )
        if suites.forgetting
        else (),
    )


def _forgotten(each: ModeSummary) -> tuple[Cell, ...]:
    near, residue = each["neighbours"], each["residue"]
    return (
        *(each["n_targets"], each["n_retrievable"], each["n_unmeasured"], each["n_forget_failed"]),
        *(*_counts(each["left_at_k"]), percent(each["left_at_k"]["share"]), *_counts(each["left_deep"])),
        *(_counts(each["left_listed"]) if each["left_listed"] else (None, None)),
        *(residue["events"], residue["clusters_with_events"], residue["clusters"], percent(residue["cluster_bound"])),
        *(each["revived"]["events"], near["n"], percent(near["recall_before"]), percent(near["recall_after"])),
        *(percent(near["lost"]["share"]), percent(near["lost"]["low"]), percent(near["lost"]["high"])),
        *(near["taken"], each["by"]),
    )


def _counts(share: Share) -> tuple[int, int]:
    return share["events"], share["of"]


def leaks_table(suites: Attached) -> Table:
    """A row a system and moment."""
    return Table(
        name="leaks",
        title="Leaks",
        columns=(
            *("system", "asked", "trials", "void", "failed", "leaks", "of", "95% bound of trials"),
            *("pairs with a leak", "of pairs", "95% bound of pairs", "taken", "differs in"),
        ),
        rows=tuple(_leaks(suites)),
        notes=(
            "A leak: a canary of another user that was seen. Bounds are exact, of trials as if they were independent, "
            "and of pairs of users. Void trials, whose canary its own user does not find, are in neither.",
            *(
                f"{name} {moment}: not asked, {why}."
                for result in suites.leaks
                for name, found in result.summary["skipped"].items()
                for moment, why in found.items()
                if name in result.differs
            ),
        )
        if suites.leaks
        else (),
    )


def _leaks(suites: Attached) -> Iterator[tuple[Cell, ...]]:
    for result in suites.leaks:
        for name, moments in result.summary["systems"].items():
            for moment in [moment for moment in Moment if moment in moments] if name in result.differs else ():
                each = moments[moment]
                leaks = each["leaks"]
                yield (
                    *(name, moment.value, each["n_trials"], each["n_void"], each["n_unmeasured"], *_counts(leaks)),
                    *(percent(leaks["bound"]), leaks["clusters_with_events"], leaks["clusters"]),
                    *(percent(leaks["cluster_bound"]), each["taken"], ", ".join(result.differs[name])),
                )
