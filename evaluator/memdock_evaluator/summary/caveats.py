"""What a reader of the figures must know, in sentences."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from memdock_evaluator.results.manifest import Manifest
from memdock_evaluator.results.plan import CONTROLLED_MODELS, Track
from memdock_evaluator.results.records import ANSWER
from memdock_evaluator.summary.axes import VALUES, slice_name
from memdock_evaluator.summary.ranking import RANKING_COVERAGE, Systems, each, languages_of, offline
from memdock_evaluator.summary.shape import Caveat, LanguageSummary
from memdock_evaluator.words.sentence import said, said_n

TITLES: Mapping[str, str] = {
    "answers": said("Answers and verdicts"),
    "coverage": said("Coverage"),
    "intervals": said("Intervals"),
    "tracks": said("Comparability"),
    "slices": said("Slices"),
    "retrieval": said("Retrieval"),
    "data": said("Data"),
    "ingest": said("Storing"),
}
"""What a caveat can be about, in the order in which they are told, and its heading."""

ABOUT = tuple(TITLES)

FEW_DIALOGUES = 20
FEW_QUESTIONS = 10
CONTEXT_RATIO = 2
"""Times the smallest context of a memory system that the largest may be before it must be told."""

_MOST_NAMED = 4
"""Systems that a sentence names; the tables have all of them."""

Sentences = Iterator[tuple[str, str]]


def caveats(systems: Systems, manifest: Manifest) -> list[Caveat]:
    """All that apply, in the order of `ABOUT`."""
    sentences = [
        *_answers(manifest),
        *_taken_over(manifest),
        *_unfinished(manifest),
        *_asked_again(manifest),
        *_coverage(systems),
        *_intervals(systems),
        *_tracks(systems, manifest),
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


def _taken_over(manifest: Manifest) -> Sentences:
    reused = manifest.plan.reused
    if reused is None:
        return
    if reused.only_unscored:
        yield (
            "answers",
            said(
                "Memories, answers and verdicts are those of the run {run}; only what it had left without a verdict "
                "was judged again.",
                run=reused.run_id,
            ),
        )
    elif reused.through == ANSWER.name:
        yield "answers", said("Memories and answers are those of the run {run}, judged again.", run=reused.run_id)
    else:
        yield "answers", said("Memories are those of the run {run}, answered and judged again.", run=reused.run_id)


def _tracks(systems: Systems, manifest: Manifest) -> Sentences:
    """Whether the memory systems were alike but for their memory, as far as the manifest and the rows tell."""
    models: defaultdict[str, dict[str, set[str]]] = defaultdict(dict)
    for system in manifest.plan.systems:
        for model in system.models if not system.baseline else ():
            models[model.purpose].setdefault(system.name, set()).add(model.name)
    differing = [
        said("{purpose}: {models}", purpose=purpose, models=sorted(set.union(*found.values())))
        for purpose, found in sorted(models.items())
        if len({frozenset(names) for names in found.values()}) > 1
    ]
    if differing:
        yield (
            "tracks",
            said(
                "The memory systems do not share their models ({purposes}): what differs between them is due to these, "
                "too.",
                purposes=differing,
            ),
        )
    yield from _of_controlled(manifest)
    if len({system.track for system in manifest.plan.systems if not system.baseline}) > 1:
        yield "tracks", said("Systems of different tracks stand in blocks of their own and are not ranked together.")
    for language in languages_of(systems):
        sizes = [
            found["tokens"]["context_mean"]
            for name, its, found in each(systems)
            if its == language and not systems[name]["baseline"]
        ]
        if sizes and max(sizes) > CONTEXT_RATIO * max(1.0, min(sizes)):
            yield (
                "tracks",
                said(
                    "{language}: the memory systems give the answer model from {least} to {most} tokens of context a "
                    "question: accuracy is to be read beside it.",
                    language=language,
                    least=round(min(sizes)),
                    most=round(max(sizes)),
                ),
            )
    if manifest.plan.differs:
        yield (
            "tracks",
            said(
                "Not as in the profile {profile}: {fields}.",
                profile=manifest.plan.profile,
                fields=[each.field for each in manifest.plan.differs],
            ),
        )


def _of_controlled(manifest: Manifest) -> Sentences:
    """Where nobody can tell whether the systems of the controlled track share a model."""
    controlled = [system for system in manifest.plan.systems if system.track is Track.CONTROLLED]
    for purpose in CONTROLLED_MODELS:
        silent = {each.system for each in controlled if not any(model.purpose == purpose for model in each.models)}
        if 0 < len(silent) < len({each.system for each in controlled}):
            yield (
                "tracks",
                said(
                    "Controlled track: {systems} declare no {purpose} model, so that it cannot be checked against that "
                    "of the others.",
                    systems=sorted(silent),
                    purpose=purpose,
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
        if demand.finished is None:
            yield (
                "coverage",
                said(
                    "The run is not complete: questions are still being asked again on demand, because of their "
                    "outcome ({outcomes}): {asked}. The figures will change; the command that asked again goes on.",
                    asked=demand.asked,
                    outcomes=demand.outcomes,
                ),
            )
            continue
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
    unscored = [
        said(
            "{name} ({language}) {missing} of {questions} ({reasons}), accuracy {low:.1%} to {high:.1%}",
            name=name,
            language=language,
            missing=found["n_questions"] - found["n_scored"],
            questions=found["n_questions"],
            reasons=_reasons(found),
            low=found["judge_accuracy_bounds"]["low"],
            high=found["judge_accuracy_bounds"]["high"],
        )
        for name, language, found in _by_coverage(systems)
        if found["n_scored"] < found["n_questions"]
    ]
    if unscored:
        yield (
            "coverage",
            said(
                "Questions without a score, and where accuracy would be were all of them wrong or all right: "
                "{systems}.",
                systems=_named(unscored),
            ),
        )
    errors = [
        said("{name} ({language}) {n}", name=name, language=language, n=found["outcomes"]["system_error"])
        for name, language, found in each(systems)
        if found["outcomes"]["system_error"]
    ]
    if errors:
        yield "coverage", said("Errors of the systems' own, counted as wrong: {systems}.", systems=_named(errors))
    poor = [
        said("{name} ({language}) {coverage:.1%}", name=name, language=language, coverage=found["coverage"])
        for name, language, found in _by_coverage(systems)
        if found["coverage"] < RANKING_COVERAGE and not systems[name]["baseline"]
    ]
    if poor:
        yield (
            "coverage",
            said(
                "Scores for fewer than {needed:.0%} of the questions: {systems}; the systems of such a language are "
                "not put in order.",
                needed=RANKING_COVERAGE,
                systems=_named(poor),
            ),
        )


def _by_coverage(systems: Systems) -> list[tuple[str, str, LanguageSummary]]:
    """Those first that miss the most."""
    return sorted(each(systems), key=lambda found: found[2]["coverage"])


def _named(items: Sequence[str]) -> list[str]:
    """The first of them, and how many more there are."""
    more = len(items) - _MOST_NAMED
    return list(items) if more <= 0 else [*items[:_MOST_NAMED], said_n("{n} more", "{n} more", more)]


def _reasons(found: LanguageSummary) -> list[str]:
    counts = (
        (said("infrastructure errors"), found["outcomes"]["infrastructure_error"]),
        (said("refused by a provider"), found["outcomes"]["refused"]),
        (said("verdict unreadable"), found["unscored"]),
    )
    return [said("{reason} {count}", reason=reason, count=count) for reason, count in counts if count]


def _intervals(systems: Systems) -> Sentences:
    of_size: defaultdict[int, list[str]] = defaultdict(list)
    for language in languages_of(systems):
        of_size[max(found["n_dialogues"] for _, its, found in each(systems) if its == language)].append(language)
    for dialogues, languages in of_size.items():
        if dialogues == 1:
            yield (
                "intervals",
                said(
                    "{language}: one dialogue says nothing of others, so no accuracy has an interval.",
                    language=languages,
                ),
            )
        elif dialogues < FEW_DIALOGUES:
            yield (
                "intervals",
                said_n(
                    "{language}: {n} dialogue only. Intervals use Student's t (degrees of freedom: {freedom}); they "
                    "are wide and, with so few clusters, approximate.",
                    "{language}: {n} dialogues only. Intervals use Student's t (degrees of freedom: {freedom}); they "
                    "are wide and, with so few clusters, approximate.",
                    dialogues,
                    language=languages,
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
    missing: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    small: defaultdict[tuple[int, int], list[str]] = defaultdict(list)
    for language in languages_of(systems):
        slices = [found["slices"] for _, its, found in each(systems) if its == language]
        if not any("semantic" in axes for axes in slices):
            continue
        lacking = (
            slice_name(axis, value)
            for axis, values in VALUES.items()
            for value in values
            if not any(value in axes.get(axis, {}) for axes in slices)
        )
        missing[tuple(dict.fromkeys(lacking))].append(language)
        sizes = {(a, v): f["n_questions"] for axes in slices for a, values in axes.items() for v, f in values.items()}
        small[sum(size < FEW_QUESTIONS for size in sizes.values()), len(sizes)].append(language)
    for names, languages in missing.items():
        if names:
            yield (
                "slices",
                said(
                    "{language}: no question of {slices}; overall figures leave these out.",
                    language=languages,
                    slices=names,
                ),
            )
    for (few, of_all), languages in small.items():
        if few:
            yield (
                "slices",
                said(
                    "{language}: {few} of {all} slices have fewer than {least} questions; one question moves such a "
                    "figure by {step:.0%} or more.",
                    language=languages,
                    few=few,
                    all=of_all,
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
    again = [
        said("{name} {n}", name=name, n=totals.ingest.retried)
        for name, totals in sorted(manifest.totals.items())
        if totals.ingest.retried
    ]
    if again:
        yield "ingest", said("Turns that had failed and were sent again: {systems}.", systems=_named(again))
    for name, totals in sorted(manifest.totals.items()):
        ingest = totals.ingest
        if ingest.failed:
            asked = next((found["languages"].values() for found in systems.values() if found["system"] == name), ())
            touched = [found["failed_turns"] for found in asked]
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
