"""What a reader of the figures must know, in sentences."""

from collections.abc import Iterator

from memdock_evaluator.results.manifest import Manifest
from memdock_evaluator.summary.axes import VALUES
from memdock_evaluator.summary.ranking import RANKING_COVERAGE, Systems, each, languages_of, offline
from memdock_evaluator.summary.shape import Caveat, LanguageSummary
from memdock_evaluator.words import counted

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
            f"The answerer ({answerer.kind}) is a fixed rule and no language model: accuracy and F1 show that the "
            "pipeline works and are no measure of answer quality. Retrieval figures are real.",
        )
    if "judge" in offline(manifest):
        yield (
            "answers",
            f"The judge ({judge.kind}) is a fixed rule and no language model: its verdicts must not be compared with "
            "those of a model or of the paper.",
        )


def _unfinished(manifest: Manifest) -> Sentences:
    for name, totals in sorted(manifest.totals.items()):
        coverage = totals.coverage
        seen = coverage.answered + coverage.refused + coverage.system_error + coverage.infrastructure_error
        if seen < coverage.expected:
            yield "coverage", f"{name}: the run is not finished, {seen} of {coverage.expected} questions were asked."


def _coverage(systems: Systems) -> Sentences:
    for name, language, found in each(systems):
        missing = found["n_questions"] - found["n_scored"]
        if missing:
            bounds = found["judge_accuracy_bounds"]
            yield (
                "coverage",
                f"{name} ({language}): {missing} of {found['n_questions']} questions have no score "
                f"({_reasons(found)}); were all of them wrong or all right, accuracy would be "
                f"{bounds['low']:.1%} or {bounds['high']:.1%}.",
            )
        if errors := found["outcomes"]["system_error"]:
            yield (
                "coverage",
                f"{name} ({language}): {counted(errors, 'error')} of the system's own, counted as wrong.",
            )
        if found["coverage"] < RANKING_COVERAGE and not systems[name]["baseline"]:
            yield (
                "coverage",
                f"{name} ({language}) has scores for {found['coverage']:.1%} of its questions; below "
                f"{RANKING_COVERAGE:.0%} the systems of a language are not put in order.",
            )


def _reasons(found: LanguageSummary) -> str:
    counts = {
        "infrastructure errors": found["outcomes"]["infrastructure_error"],
        "refused by a provider": found["outcomes"]["refused"],
        "verdict unreadable": found["unscored"],
    }
    return ", ".join(f"{reason} {count}" for reason, count in counts.items() if count)


def _intervals(systems: Systems) -> Sentences:
    for language in languages_of(systems):
        dialogues = max(found["n_dialogues"] for _, its, found in each(systems) if its == language)
        if dialogues == 1:
            yield "intervals", f"{language}: one dialogue says nothing of others, so no accuracy has an interval."
        elif dialogues < FEW_DIALOGUES:
            yield (
                "intervals",
                f"{language}: {dialogues} dialogues only. Intervals use Student's t on {dialogues - 1} degrees of "
                "freedom; they are wide and, with so few clusters, approximate.",
            )
    alike = [
        f"{name} ({language})"
        for name, language, found in each(systems)
        if found["n_dialogues"] > 1 and found["n_scored"] and not found["judge_accuracy_interval"]
    ]
    if alike:
        yield (
            "intervals",
            f"No interval for {', '.join(alike)}: accuracy is the same in every dialogue that has scores, which leaves "
            "no spread to estimate from.",
        )


def _slices(systems: Systems) -> Sentences:
    for language in languages_of(systems):
        slices = [found["slices"] for _, its, found in each(systems) if its == language]
        if not any("semantic" in axes for axes in slices):
            continue
        missing = [
            value
            for axis, values in VALUES.items()
            for value in values
            if not any(value in axes.get(axis, {}) for axes in slices)
        ]
        if missing:
            yield "slices", f"{language}: no question of {', '.join(missing)}; overall figures leave these out."
        sizes = {(a, v): f["n_questions"] for axes in slices for a, values in axes.items() for v, f in values.items()}
        few = sum(size < FEW_QUESTIONS for size in sizes.values())
        if few:
            yield (
                "slices",
                f"{language}: {few} of {len(sizes)} slices have fewer than {FEW_QUESTIONS} questions; one question "
                f"moves such a figure by {1 / FEW_QUESTIONS:.0%} or more.",
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
            f"No retrieval figures for {', '.join(silent)}: no evidence is known, or the memories do not say which "
            "turns they come from.",
        )
    for name, language, found in each(systems):
        if 0 < found["n_retrieval"] < found["n_evidence"]:
            yield (
                "retrieval",
                f"{name} ({language}): retrieval figures are over {found['n_retrieval']} of {found['n_evidence']} "
                "questions with known evidence; the others failed for want of infrastructure, or their memories do not "
                "say which turns they come from.",
            )


def _data(manifest: Manifest) -> Sentences:
    oddities = manifest.plan.data.oddities
    if oddities:
        counts = ", ".join(f"{kind} {count}" for kind, count in sorted(oddities.items()))
        yield "data", f"The data has {counted(sum(oddities.values()), 'oddity', 'oddities')} ({counts})."


def _ingest(systems: Systems, manifest: Manifest) -> Sentences:
    for name, totals in sorted(manifest.totals.items()):
        ingest = totals.ingest
        if ingest.failed:
            touched = (
                [found["failed_turns"] for found in systems[name]["languages"].values()] if name in systems else []
            )
            dialogues, questions = (sum(each[key] for each in touched) for key in ("n_dialogues", "n_questions"))
            reasons = ", ".join(f"{reason} {count}" for reason, count in totals.failed_turns.items())
            yield (
                "ingest",
                f"{name}: {ingest.failed} of {ingest.turns_read} turns could not be stored ({reasons}), in "
                f"{counted(dialogues, 'dialogue')}; they are evidence of {counted(questions, 'question')}, which are "
                "scored as they stand.",
            )
        if ingest.turns_listed and ingest.turns_listed != ingest.turns_read:
            yield (
                "ingest",
                f"{name}: {ingest.turns_read} turns were sent and {ingest.turns_listed} are listed by the system.",
            )
        if ingest.stale_reads:
            yield (
                "ingest",
                f"{name}: {counted(ingest.stale_reads, 'answer')} of Retrieve still named turns as pending after the "
                "barrier.",
            )
