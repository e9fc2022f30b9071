"""The summary of a run: the same rows give the same figures in any order."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from memdock_evaluator.attribution import Attributed, attribute
from memdock_evaluator.intervals import percentile
from memdock_evaluator.results.folder import Folder
from memdock_evaluator.results.manifest import Manifest
from memdock_evaluator.results.plan import Plan
from memdock_evaluator.results.rows import Outcome, Row, Timing
from memdock_evaluator.summary.caveats import caveats
from memdock_evaluator.summary.costs import costs
from memdock_evaluator.summary.failures import failures
from memdock_evaluator.summary.figures import delete_info, failed_turns, figures, recall_at
from memdock_evaluator.summary.judges import judges
from memdock_evaluator.summary.ranking import offline, rankable
from memdock_evaluator.summary.shape import Figures, LanguageSummary, Latency, Summary, SystemSummary, Tokens
from memdock_evaluator.summary.source import RunFiles, read_run

if TYPE_CHECKING:
    from memdock_evaluator.judging.audit import Audit
    from memdock_evaluator.judging.people import PeoplesView

SUMMARY = "summary.json"


def write_summary(run_dir: Path | str) -> Summary:
    """Sum up the run in a folder (a path or a URL) and write its `summary.json`.

    Raises `RunFilesError`, `ManifestError` or `FolderError`.
    """
    folder = Folder(str(run_dir))
    run = read_run(folder)
    summary = summary_of(run)
    folder.write(SUMMARY, to_json(summary))
    return summary


def summary_of(run: RunFiles) -> Summary:
    """The summary of a run that was read."""
    return summarise(run.rows, run.timings, run.manifest, people=run.people, audit=run.audit)


def summarise(
    rows: Iterable[Row],
    timings: Iterable[Timing],
    manifest: Manifest,
    *,
    people: "PeoplesView | None" = None,
    audit: "Audit | None" = None,
) -> Summary:
    """The figures of every system in every language, by every axis, and what must be known beside them.

    `people`: their labels, by which a wrong answer may be misjudged. `audit`: the judges by known verdicts.
    """
    facts = {system.name: system for system in manifest.plan.systems}
    rows_of: defaultdict[str, defaultdict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    rows = sorted(rows, key=lambda row: row.key)
    for row in rows:
        rows_of[row.system][row.language].append(row)
    latencies = _latencies(timings, manifest.plan)
    wrong: defaultdict[tuple[str, str], list[Attributed]] = defaultdict(list)
    labelled_right = {item.key for item in people.items if item.right} if people else ()
    for each in attribute(rows, labelled_right=labelled_right):
        wrong[each.row.system, each.row.language].append(each)
    systems = {
        name: SystemSummary(
            baseline=facts[name].baseline,
            system=facts[name].system,
            k=None if facts[name].baseline else facts[name].k,
            context_tokens=facts[name].context_tokens,
            track=facts[name].track or "",
            languages={
                language: _language(found, latencies.get((name, language), {}), wrong[name, language], facts[name].k)
                for language, found in sorted(languages.items())
            },
        )
        for name, languages in sorted(rows_of.items())
    }
    return Summary(
        run_id=manifest.run_id,
        k=manifest.plan.ks[0] if len(manifest.plan.ks) == 1 else None,
        offline=offline(manifest),
        ranked=rankable(systems, manifest),
        caveats=caveats(systems, manifest),
        cost=costs(manifest.cost, _asked(rows, manifest.plan)),
        judges=judges(rows, manifest.plan, people, audit),
        systems=systems,
    )


def _asked(rows: Iterable[Row], plan: Plan) -> Counter[str]:
    """How often each contestant was asked a question, and under its own name each system that several share."""
    found = Counter(row.system for row in rows)
    shared = Counter[str]()
    for name, n in found.items():
        shared[plan.stores.get(name, name)] += n
    return shared | found


def to_json(summary: Summary) -> bytes:
    """The bytes of `summary.json`: indented, keys sorted."""
    return orjson.dumps(summary, option=orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2) + b"\n"


def _language(
    rows: Sequence[Row], latency_ms: Mapping[str, Latency], wrong: Sequence[Attributed], k: int
) -> LanguageSummary:
    answered = [row for row in rows if row.outcome is Outcome.ANSWERED]
    counts = Counter(row.outcome for row in rows)
    return LanguageSummary(
        **figures(rows),
        n_dialogues=len({row.dialogue_id for row in rows}),
        recall_at=recall_at(rows, k) if k else {},
        delete_info=delete_info(rows),
        failed_turns=failed_turns(rows),
        failures=failures(wrong),
        outcomes={outcome.value: counts[outcome] for outcome in Outcome},
        unscored=sum(row.correct is None for row in answered),
        abstained=sum(row.abstained for row in answered),
        latency_ms=dict(latency_ms),
        tokens=_tokens(rows),
        slices=_slices(rows),
    )


def _slices(rows: Iterable[Row]) -> dict[str, dict[str, Figures]]:
    by_axis: defaultdict[str, defaultdict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        for axis, value in row.axes.items():
            by_axis[axis][value].append(row)
    return {axis: {value: figures(found) for value, found in values.items()} for axis, values in by_axis.items()}


def _latencies(timings: Iterable[Timing], plan: Plan) -> dict[tuple[str, str], dict[str, Latency]]:
    """By contestant and language; what storing took stands with every contestant that it was stored for."""
    contestants = {system: [each.name for each in found] for system, found in plan.contestants.items()}
    measured: defaultdict[tuple[str, str], defaultdict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for timing in timings:
        stage = f"{timing.stage}/{timing.inner}" if timing.inner else timing.stage.value
        for name in contestants.get(timing.system, [timing.system]):
            measured[name, timing.language][stage].append(timing.ms)
    return {
        place: {stage: _latency(values) for stage, values in sorted(stages.items())}
        for place, stages in measured.items()
    }


def _latency(values_ms: Sequence[float]) -> Latency:
    return Latency(n=len(values_ms), p50=percentile(values_ms, 0.5), p95=percentile(values_ms, 0.95))


def _tokens(rows: Sequence[Row]) -> Tokens:
    return Tokens(
        context_mean=sum(row.context_tokens for row in rows) / len(rows),
        memories_given_mean=sum(row.memories_given for row in rows) / len(rows),
        answer_input=sum(row.answer_input_tokens for row in rows),
        answer_output=sum(row.answer_output_tokens for row in rows),
        judge_input=sum(row.judge_input_tokens for row in rows),
        judge_output=sum(row.judge_output_tokens for row in rows),
        estimated=any(row.tokens_estimated for row in rows),
    )
