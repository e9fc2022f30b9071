"""How far a run's verdicts can be trusted: several judges, people's labels, an audit by known verdicts."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from memdock_evaluator.results.plan import Plan
from memdock_evaluator.results.rows import Row
from memdock_evaluator.summary.shape import AuditFigures, Corrected, JudgeAgreement, JudgePair, Judges, People

if TYPE_CHECKING:  # they load numpy, and a command line that is refused should not wait for it
    from memdock_evaluator.judging.agreement import Agreement, Labels
    from memdock_evaluator.judging.audit import Audit
    from memdock_evaluator.judging.people import PeoplesView


def judges(rows: Sequence[Row], plan: Plan, people: "PeoplesView | None", audit: "Audit | None") -> Judges:
    """All that is known of them."""
    return Judges(
        agreement=_of_judges(rows, plan),
        people=None if people is None else _people(people),
        audits={} if audit is None else _audits(audit),
    )


def _of_judges(rows: Sequence[Row], plan: Plan) -> dict[str, JudgeAgreement]:
    languages = sorted({row.language for row in rows if row.verdicts})
    if not languages:
        return {}
    from memdock_evaluator.judging.agreement import agreement
    from memdock_evaluator.judging.rows import labels_of_judges

    labels = {language: labels_of_judges(rows, plan, language) for language in languages}
    return {language: _agreement(agreement(found), found) for language, found in labels.items()}


def _agreement(found: "Agreement", labels: "Mapping[str, Labels]") -> JudgeAgreement:
    of_things = zip(*labels.values(), strict=True)
    return JudgeAgreement(
        n=sum(len([label for label in given if label is not None]) > 1 for given in of_things),
        alpha=found.alpha,
        pairs=[
            JudgePair(first=pair.first, second=pair.second, both=pair.both, same=pair.same, kappa=pair.kappa)
            for pair in found.pairs
        ],
    )


def _people(view: "PeoplesView") -> People:
    labels = {rater: [item.labels.get(rater) for item in view.items] for rater in view.raters}
    return People(
        raters=list(view.raters),
        agreement=_agreement(view.agreement, labels),
        kappa=view.judge_kappa,
        corrected={
            system: {
                language: Corrected(
                    judged=each.judged,
                    accuracy=each.accuracy,
                    low=each.low,
                    high=each.high,
                    labelled=each.labelled,
                    too_kind=each.too_kind,
                    too_strict=each.too_strict,
                    cut=each.cut,
                )
                for language, each in languages.items()
                if each is not None
            }
            for system, languages in view.corrected.items()
        },
    )


def _audits(audit: "Audit") -> dict[str, dict[str, AuditFigures]]:
    return {
        name: {
            language: AuditFigures(
                probes=each.probes,
                unscored=each.unscored,
                same_label=each.same_label,
                same_side=each.same_side,
                too_strict=each.too_strict,
                too_kind=each.too_kind,
            )
            for language, each in found.languages.items()
        }
        for name, found in audit.judges.items()
        if found.languages
    }
