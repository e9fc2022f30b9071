"""What a reader of the figures must know, in sentences."""

from collections.abc import Iterator

from memdock_evaluator.results.manifest import Manifest
from memdock_evaluator.summary.axes import VALUES, slice_name
from memdock_evaluator.summary.ranking import RANKING_COVERAGE, Systems, each, languages_of, offline
from memdock_evaluator.summary.shape import Caveat, LanguageSummary
from memdock_evaluator.words.sentence import said, said_n

ABOUT = ("answers", "coverage", "intervals", "slices", "retrieval", "data", "ingest")
"""The parts of a report that a caveat can stand beside."""

FEW_DIALOGUES = 20
FEW_QUESTIONS = 10

Sentences = Iterator[tuple[str, str]]


def caveats(systems: Systems, manifest: Manifest) -> list[Caveat]:
    """All that apply, in the order of `ABOUT`."""
    sentences = [
        *_answers(manifest),
        *_unfinished(manifest),
        *_asked_again(manifest),
        *_coverage(systems),
        *_intervals(systems),
        *_slices(systems),
        *_retrieval(systems),
        *_data(manifest),
        *_ingest(systems, manifest),
    ]
    return [Caveat(about=about, text=text) for about, text in sorted(sentences, key=lambda s: ABOUT.index(s[0]))]


def _answers(manifest: Manifest) -> Sentences:
    answerer, judge = manifest.plan.answerer, manifest.plan.judge
    if "answerer" in offline(manifest):
        yield (
            "answers",
            said(
                "The answerer ({kind}) is a fixed rule and no language model: accuracy and F1 show that the "
                "pipeline works and are no measure of answer quality. Retrieval figures are real.",
                kind=answerer.kind,
            ),
        )
    if "judge" in offline(manifest):
        yield (
            "answers",
            said(
                "The judge ({kind}) is a fixed rule and no language model: its verdicts must not be compared with "
                "those of a model or of the paper.",
                kind=judge.kind,
            ),
        )


def _unfinished(manifest: Manifest) -> Sentences:
    for name, totals in sorted(manifest.totals.items()):
        coverage = totals.coverage
        seen = coverage.answered + coverage.refused + coverage.system_error + coverage.infrastructure_error
        if seen < coverage.expected:
            yield (
                "coverage",
                said(
                    "{name}: the run is not finished, {seen} of {expected} questions were asked.",
                    name=name,
                    seen=seen,
                    expected=coverage.expected,
                ),
            )


def _asked_again(manifest: Manifest) -> Sentences:
    for demand in manifest.again:
        yield (
            "coverage",
            said(
                "Questions that were asked again on demand, because of their outcome ({outcomes}): {asked}; with "
                "another outcome or verdict now: {changed}; right now and not before: {right}. Compare this run "
                "only with runs that were given as many chances.",
                asked=demand.asked,
                outcomes=demand.outcomes,
                changed=demand.changed,
                right=demand.right,
            ),
        )


def _coverage(systems: Systems) -> Sentences:
    for name, language, found in each(systems):
        missing = found["n_questions"] - found["n_scored"]
        if missing:
            bounds = found["judge_accuracy_bounds"]
            yield (
                "coverage",
                said(
                    "{name} ({language}): {missing} of {questions} questions have no score ({reasons}); were all of "
                    "them wrong or all right, accuracy would be {low:.1%} or {high:.1%}.",
                    name=name,
                    language=language,
                    missing=missing,
                    questions=found["n_questions"],
                    reasons=_reasons(found),
                    low=bounds["low"],
                    high=bounds["high"],
                ),
            )
        if errors := found["outcomes"]["system_error"]:
            yield (
                "coverage",
                said_n(
                    "{name} ({language}): {n} error of the system's own, counted as wrong.",
                    "{name} ({language}): {n} errors of the system's own, counted as wrong.",
                    errors,
                    name=name,
                    language=language,
                ),
            )
        if found["coverage"] < RANKING_COVERAGE and not systems[name]["baseline"]:
            yield (
                "coverage",
                said(
                    "{name} ({language}) has scores for {coverage:.1%} of its questions; below {needed:.0%} the "
                    "systems of a language are not put in order.",
                    name=name,
                    language=language,
                    coverage=found["coverage"],
                    needed=RANKING_COVERAGE,
                ),
            )


def _reasons(found: LanguageSummary) -> list[str]:
    counts = (
        (said("infrastructure errors"), found["outcomes"]["infrastructure_error"]),
        (said("refused by a provider"), found["outcomes"]["refused"]),
        (said("verdict unreadable"), found["unscored"]),
    )
    return [said("{reason} {count}", reason=reason, count=count) for reason, count in counts if count]


def _intervals(systems: Systems) -> Sentences:
    for language in languages_of(systems):
        dialogues = max(found["n_dialogues"] for _, its, found in each(systems) if its == language)
        if dialogues == 1:
            yield (
                "intervals",
                said(
                    "{language}: one dialogue says nothing of others, so no accuracy has an interval.",
                    language=language,
                ),
            )
        elif dialogues < FEW_DIALOGUES:
            yield (
                "intervals",
                said_n(
                    "{language}: {n} dialogue only. Intervals use Student's t on {freedom} degrees of freedom; they "
                    "are wide and, with so few clusters, approximate.",
                    "{language}: {n} dialogues only. Intervals use Student's t on {freedom} degrees of freedom; they "
                    "are wide and, with so few clusters, approximate.",
                    dialogues,
                    language=language,
                    freedom=dialogues - 1,
                ),
            )
    alike = [
        f"{name} ({language})"
        for name, language, found in each(systems)
        if found["n_dialogues"] > 1 and found["n_scored"] and not found["judge_accuracy_interval"]
    ]
    if alike:
        yield (
            "intervals",
            said(
                "No interval for {systems}: accuracy is the same in every dialogue that has scores, which leaves no "
                "spread to estimate from.",
                systems=alike,
            ),
        )


def _slices(systems: Systems) -> Sentences:
    for language in languages_of(systems):
        slices = [found["slices"] for _, its, found in each(systems) if its == language]
        if not any("semantic" in axes for axes in slices):
            continue
        missing = [
            slice_name(axis, value)
            for axis, values in VALUES.items()
            for value in values
            if not any(value in axes.get(axis, {}) for axes in slices)
        ]
        if missing:
            yield (
                "slices",
                said(
                    "{language}: no question of {slices}; overall figures leave these out.",
                    language=language,
                    slices=list(dict.fromkeys(missing)),
                ),
            )
        sizes = {(a, v): f["n_questions"] for axes in slices for a, values in axes.items() for v, f in values.items()}
        few = sum(size < FEW_QUESTIONS for size in sizes.values())
        if few:
            yield (
                "slices",
                said(
                    "{language}: {few} of {all} slices have fewer than {least} questions; one question moves such a "
                    "figure by {step:.0%} or more.",
                    language=language,
                    few=few,
                    all=len(sizes),
                    least=FEW_QUESTIONS,
                    step=1 / FEW_QUESTIONS,
                ),
            )


def _retrieval(systems: Systems) -> Sentences:
    silent = [
        f"{name} ({language})"
        for name, language, found in each(systems)
        if not systems[name]["baseline"] and not found["n_retrieval"]
    ]
    if silent:
        yield (
            "retrieval",
            said(
                "No retrieval figures for {systems}: no evidence is known, or the memories do not say which turns they "
                "come from.",
                systems=silent,
            ),
        )
    for name, language, found in each(systems):
        if 0 < found["n_retrieval"] < found["n_evidence"]:
            yield (
                "retrieval",
                said(
                    "{name} ({language}): retrieval figures are over {measured} of {known} questions with known "
                    "evidence; the others failed for want of infrastructure, or their memories do not say which turns "
                    "they come from.",
                    name=name,
                    language=language,
                    measured=found["n_retrieval"],
                    known=found["n_evidence"],
                ),
            )


def _data(manifest: Manifest) -> Sentences:
    oddities = manifest.plan.data.oddities
    if oddities:
        kinds = [said("{reason} {count}", reason=kind, count=count) for kind, count in sorted(oddities.items())]
        yield (
            "data",
            said_n(
                "The data has {n} oddity ({kinds}).",
                "The data has {n} oddities ({kinds}).",
                sum(oddities.values()),
                kinds=kinds,
            ),
        )


def _ingest(systems: Systems, manifest: Manifest) -> Sentences:
    for name, totals in sorted(manifest.totals.items()):
        ingest = totals.ingest
        if ingest.failed:
            touched = (
                [found["failed_turns"] for found in systems[name]["languages"].values()] if name in systems else []
            )
            dialogues, questions = (sum(each[key] for each in touched) for key in ("n_dialogues", "n_questions"))
            reasons = [said("{reason} {count}", reason=reason, count=n) for reason, n in totals.failed_turns.items()]
            yield (
                "ingest",
                said(
                    "{name}: {failed} of {read} turns could not be stored ({reasons}), {in_dialogues}; they are "
                    "evidence {of_questions}, which are scored as they stand.",
                    name=name,
                    failed=ingest.failed,
                    read=ingest.turns_read,
                    reasons=reasons,
                    in_dialogues=said_n("in {n} dialogue", "in {n} dialogues", dialogues),
                    of_questions=said_n("of {n} question", "of {n} questions", questions),
                ),
            )
        if ingest.turns_listed and ingest.turns_listed != ingest.turns_read:
            yield (
                "ingest",
                said(
                    "{name}: {sent} turns were sent and {listed} are listed by the system.",
                    name=name,
                    sent=ingest.turns_read,
                    listed=ingest.turns_listed,
                ),
            )
        if ingest.stale_reads:
            yield (
                "ingest",
                said_n(
                    "{name}: {n} answer of Retrieve still named turns as pending after the barrier.",
                    "{name}: {n} answers of Retrieve still named turns as pending after the barrier.",
                    ingest.stale_reads,
                    name=name,
                ),
            )
