"""A run's figures as tables; each says what its columns hold by their names."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, cast

from memdock_evaluator.attribution import Failure
from memdock_evaluator.results.manifest import Manifest
from memdock_evaluator.suites.attached import Attached
from memdock_evaluator.summary import recall
from memdock_evaluator.summary.axes import in_order, values_in_order
from memdock_evaluator.summary.comparisons import Comparisons
from memdock_evaluator.summary.ranking import languages_of, systems_in_order
from memdock_evaluator.summary.shape import Figures, LanguageSummary, Summary
from memdock_evaluator.tables.comparing import comparing_tables
from memdock_evaluator.tables.context import context_table
from memdock_evaluator.tables.cost import cost_table
from memdock_evaluator.tables.judges import agreement_table, audit_table, corrected_table
from memdock_evaluator.tables.overview import overview_table
from memdock_evaluator.tables.published import SOURCE, published
from memdock_evaluator.tables.semantic import semantic_table
from memdock_evaluator.tables.shape import Cell, Table, percent, rounded
from memdock_evaluator.tables.suites import forgetting_table, leaks_table

_NO_SUITES = Attached()
_Found = Iterator[tuple[str, str, LanguageSummary]]

_BY: Sequence[tuple[Literal["sessions", "turns"], tuple[str, str]]] = (
    ("sessions", ("mrr", "ndcg")),
    ("turns", ("mrr_turns", "ndcg_turns")),
)


def tables(
    summary: Summary, comparisons: Comparisons, manifest: Manifest, suites: Attached = _NO_SUITES
) -> list[Table]:
    """All tables of a run, main table first."""
    return [
        _main(summary, comparisons),
        overview_table(summary, suites),
        _published(summary, manifest),
        context_table(summary),
        _slices(summary),
        semantic_table(summary, comparisons),
        *comparing_tables(comparisons),
        _retrieval(summary),
        _failures(summary),
        _outcomes(summary),
        forgetting_table(suites),
        leaks_table(suites),
        agreement_table(summary),
        corrected_table(summary),
        audit_table(summary),
        cost_table(summary),
        _tokens(summary),
        _times(summary),
    ]


def _each(summary: Summary) -> _Found:
    """Language by language, the systems in the order of the report."""
    for language in languages_of(summary["systems"]):
        for name, found in systems_in_order(summary, language):
            yield name, language, found


def _main(summary: Summary, comparisons: Comparisons) -> Table:
    ranks = {
        (rank.system, ranking.language): (rank.best, rank.worst)
        for ranking in comparisons.analysis.rankings
        for rank in ranking.ranks
    }
    k = summary["k"] or "k"
    return Table(
        name="main",
        title="Results",
        columns=(
            *(
                "system",
                "language",
                "questions",
                "dialogues",
                "accuracy",
                "SE",
                "SE by dialogue",
                "95% low",
                "95% high",
            ),
            *("rank best", "rank worst", "F1", "F1 SE", f"recall@{k}", "MRR", f"nDCG@{k}", "coverage"),
        ),
        rows=tuple(
            (
                *(name, language, found["n_questions"], found["n_dialogues"]),
                *(*_percents(found, "judge_accuracy", "judge_accuracy_se"), *_interval(found)),
                *ranks.get((name, language), (None, None)),
                *_percents(found, "f1", "f1_se", "recall_at_k", "mrr", "ndcg", "coverage"),
            )
            for name, language, found in _each(summary)
        ),
        notes=_notes(summary, "answers", "coverage", "intervals", "data", "ingest"),
    )


def _percents(found: Mapping[str, object], *keys: str) -> tuple[float | None, ...]:
    return tuple(percent(_share(found, key)) for key in keys)


def _share(found: Mapping[str, object], key: str) -> float | None:
    """A figure of a typed dictionary whose key is data."""
    return cast("float | None", found[key])


def _interval(found: LanguageSummary) -> tuple[Cell, Cell, Cell]:
    interval = found["judge_accuracy_interval"]
    if interval is None:
        return None, None, None
    return percent(interval["standard_error"]), percent(interval["low"]), percent(interval["high"])


def _published(summary: Summary, manifest: Manifest) -> Table:
    """The paper's rows, then the run's own, in each language."""
    of_paper = published(manifest)
    rows: list[tuple[Cell, ...]] = []
    for language in languages_of(summary["systems"]):
        rows += [
            (
                *(one.method, one.family, language, one.accuracy, one.accuracy_se, one.f1, one.f1_se),
                *(not one.differs, ", ".join(one.differs)),
            )
            for one in of_paper
            if one.language == language
        ]
        rows += [
            (
                *(name, "this run", language),
                *_percents(found, "judge_accuracy", "judge_accuracy_se", "f1", "f1_se"),
                *(None, None),
            )
            for name, found in systems_in_order(summary, language)
        ]
    return Table(
        name="published",
        title=f"Beside the published rows ({SOURCE})",
        columns=("method", "family", "language", "accuracy", "SE", "F1", "F1 SE", "comparable", "differs in"),
        rows=tuple(rows),
        notes=(
            "A published row may be compared with this run where nothing that the manifest tells differs; embedders, "
            "extraction models and the text of your own prompts are yours to check. A full-context row of the paper "
            "is comparable with the baseline full-context alone, of the same answer model.",
            *_notes(summary, "answers"),
        ),
    )


def _slices(summary: Summary) -> Table:
    return Table(
        name="slices",
        title="Slices",
        columns=(
            *("axis", "slice", "system", "language", "questions", "accuracy", "SE", "95% low", "95% high"),
            *("F1", f"recall@{summary['k'] or 'k'}", "MRR"),
        ),
        rows=tuple(
            (
                *(axis, value, name, language, figures["n_questions"]),
                *_percents(figures, "judge_accuracy", "judge_accuracy_se"),
                *_slice_interval(figures),
                *_percents(figures, "f1", "recall_at_k", "mrr"),
            )
            for name, language, found in _each(summary)
            for axis in in_order(found["slices"])
            for value in values_in_order(axis, found["slices"][axis])
            for figures in (found["slices"][axis][value],)
        ),
        notes=_notes(summary, "answers", "slices"),
    )


def _slice_interval(figures: Figures) -> tuple[Cell, Cell]:
    interval = figures["judge_accuracy_interval"]
    return (percent(interval["low"]), percent(interval["high"])) if interval else (None, None)


def _retrieval(summary: Summary) -> Table:
    cutoffs = recall.cutoffs(found for _, _, found in _each(summary))
    return Table(
        name="retrieval",
        title="Retrieval over k",
        columns=(
            *("system", "language", "by", "questions", *(f"recall@{cutoff}" for cutoff in cutoffs)),
            *("MRR", f"nDCG@{summary['k'] or 'k'}"),
        ),
        rows=tuple(
            (
                *(name, language, by, found["n_retrieval"]),
                *(percent(recall.recall(found, cutoff, by)) for cutoff in cutoffs),
                *_percents(found, *keys),
            )
            for name, language, found in _each(summary)
            if found["n_retrieval"]
            for by, keys in _BY
        ),
        notes=_notes(summary, "retrieval"),
    )


def _failures(summary: Summary) -> Table:
    return Table(
        name="failures",
        title="Where it failed",
        columns=(
            "system",
            "language",
            "wrong answers",
            *(failure.value for failure in Failure),
            "told by text",
            "maybe not stored",
        ),
        rows=tuple(
            (
                *(name, language, found["failures"]["n"]),
                *(found["failures"]["where"].get(failure.value, 0) for failure in Failure),
                *(found["failures"]["by_text"], found["failures"]["maybe_not_stored"]),
            )
            for name, language, found in _each(summary)
            if found["failures"]["n"]
        ),
    )


def _outcomes(summary: Summary) -> Table:
    outcomes = list(next(found for _, _, found in _each(summary))["outcomes"])
    return Table(
        name="outcomes",
        title="Outcomes and coverage",
        columns=(
            *("system", "language", "questions", *(outcome.replace("_", " ") for outcome in outcomes)),
            *("unscored", "abstained", "coverage", "accuracy", "all wrong", "all right"),
        ),
        rows=tuple(
            (
                *(name, language, found["n_questions"]),
                *(found["outcomes"][outcome] for outcome in outcomes),
                *(found["unscored"], found["abstained"], percent(found["coverage"]), percent(found["judge_accuracy"])),
                *(percent(found["judge_accuracy_bounds"]["low"]), percent(found["judge_accuracy_bounds"]["high"])),
            )
            for name, language, found in _each(summary)
        ),
        notes=_notes(summary, "coverage"),
    )


def _tokens(summary: Summary) -> Table:
    return Table(
        name="tokens",
        title="Tokens",
        columns=(
            "system",
            "language",
            "context, mean",
            *("answerer in", "answerer out", "judge in", "judge out"),
            "estimated",
        ),
        rows=tuple(
            (
                *(name, language, rounded(tokens["context_mean"])),
                *(tokens["answer_input"], tokens["answer_output"], tokens["judge_input"], tokens["judge_output"]),
                tokens["estimated"],
            )
            for name, language, found in _each(summary)
            for tokens in (found["tokens"],)
        ),
        notes=("Estimated tokens are a quarter of the bytes of UTF-8, as the context always is.",),
    )


def _times(summary: Summary) -> Table:
    return Table(
        name="latency",
        title="Wall times in milliseconds",
        columns=("system", "language", "stage", "calls", "median", "95th percentile"),
        rows=tuple(
            (name, language, stage, latency["n"], rounded(latency["p50"]), rounded(latency["p95"]))
            for name, language, found in _each(summary)
            for stage, latency in found["latency_ms"].items()
        ),
        notes=("As the run met them, with the wait for other calls of the run: they do not rank systems.",),
    )


def _notes(summary: Summary, *about: str) -> tuple[str, ...]:
    return tuple(caveat["text"] for caveat in summary["caveats"] if caveat["about"] in about)
