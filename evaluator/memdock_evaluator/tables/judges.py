"""How far verdicts can be trusted, as tables: agreement, people's corrections, audits."""

from collections.abc import Iterator

from memdock_evaluator.summary.ranking import display_name
from memdock_evaluator.summary.shape import JudgeAgreement, Summary
from memdock_evaluator.tables.shape import Cell, Table, coefficient, percent

ALL_LANGUAGES = "all"


def agreement_table(summary: Summary) -> Table:
    """A row for each two judges of a language and each two people; alpha is that of all of them."""
    found = summary["judges"]
    rows = [row for language, each in found["agreement"].items() for row in _pairs("judges", language, each)]
    if people := found["people"]:
        rows += _pairs("people", ALL_LANGUAGES, people["agreement"])
        n = sum(each["labelled"] for languages in people["corrected"].values() for each in languages.values())
        rows.append(
            (
                "judge and people",
                ALL_LANGUAGES,
                "judge",
                "most people",
                n,
                None,
                coefficient(people["kappa"]),
                None,
                None,
            )
        )
    return Table(
        name="agreement",
        title="Agreement of judges",
        columns=(
            *("between", "language", "first", "second", "answers", "same label"),
            *("kappa", "alpha of all", "answers of alpha"),
        ),
        rows=tuple(rows),
        notes=("Kappa is Cohen's, of right and wrong; alpha Krippendorff's, nominal, over the labels 0 to 3.",),
    )


def _pairs(between: str, language: str, found: JudgeAgreement) -> Iterator[tuple[Cell, ...]]:
    for pair in found["pairs"]:
        same = percent(pair["same"] / pair["both"]) if pair["both"] else None
        yield (
            *(between, language, pair["first"], pair["second"], pair["both"], same),
            *(coefficient(pair["kappa"]), coefficient(found["alpha"]), found["n"]),
        )


def corrected_table(summary: Summary) -> Table:
    """Accuracy as people would have judged it, where they labelled answers."""
    people = summary["judges"]["people"]
    corrected = people["corrected"] if people else {}
    return Table(
        name="corrected",
        title="Accuracy corrected by people's labels",
        columns=(
            *("system", "language", "judged", "corrected", "95% low", "95% high", "cut"),
            *("labels", "judge too kind", "judge too strict"),
        ),
        rows=tuple(
            (
                *(display_name(system), language, percent(each["judged"]), percent(each["accuracy"])),
                *(percent(each["low"]), percent(each["high"]), each["cut"]),
                *(each["labelled"], each["too_kind"], each["too_strict"]),
            )
            for system, languages in corrected.items()
            for language, each in languages.items()
        ),
        notes=(
            "The judge's accuracy less its mean error on a random sample that people labelled; cut: that estimate lay "
            "beyond 0 or 100.",
        ),
    )


def audit_table(summary: Summary) -> Table:
    """Judges on answers whose verdict is known, where the run's folder has an audit."""
    return Table(
        name="audit",
        title="Audit of judges",
        columns=("judge", "language", "answers", "right side", "same label", "too strict", "too kind", "unscored"),
        rows=tuple(
            (
                *(judge, language, each["probes"]),
                *(percent(each["same_side"] / each["probes"]), percent(each["same_label"] / each["probes"])),
                *(each["too_strict"], each["too_kind"], each["unscored"]),
            )
            for judge, languages in summary["judges"]["audits"].items()
            for language, each in languages.items()
        ),
        notes=("Answers whose verdict is known; too strict: right ones that it called wrong.",),
    )
