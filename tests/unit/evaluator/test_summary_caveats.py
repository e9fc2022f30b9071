"""Each caveat appears when it applies and only then; the terminal shows what the summary says."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from memdock.types import Model
from memdock_evaluator.results.manifest import Coverage, IngestCounts, Manifest, SystemTotals
from memdock_evaluator.results.plan import DataFacts, ModelFacts, Reused
from memdock_evaluator.results.rows import Outcome, Row
from memdock_evaluator.summary import summarise
from memdock_evaluator.summary.caveats import ABOUT
from memdock_evaluator.summary.ranking import systems_in_order
from support.synthetic_rows import a_manifest, a_row, a_run, a_system

ENOUGH = [
    a_row(dialogue_id=str(d), question_id=f"q{q}", correct=(d + q) % 3 > 0, axes={"tag": "a"})
    for d in range(20)
    for q in range(2)
]


def sentences(rows: Sequence[Row], manifest: Manifest | None = None) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for caveat in summarise(rows, [], manifest or a_manifest())["caveats"]:
        found.setdefault(caveat["about"], []).append(caveat["text"])
    return found


def test_a_clean_run_has_no_caveat() -> None:
    assert sentences(ENOUGH) == {}


def test_offline_rules_are_named_and_rank_nothing() -> None:
    rule = ModelFacts(kind="offline")
    found = sentences(ENOUGH, a_manifest(answerer=rule, judge=rule))
    assert len(found["answers"]) == 2
    assert "no measure of answer quality" in found["answers"][0]
    assert len(sentences(ENOUGH, a_manifest(judge=rule))["answers"]) == 1
    summary = summarise(ENOUGH, [], a_manifest(judge=rule))
    assert summary["offline"] == ["judge"]
    assert summary["ranked"] == {"en": False}


@pytest.mark.parametrize(("lost", "ranked"), [(2, True), (3, False)])
def test_below_the_coverage_threshold_nothing_is_ranked(lost: int, ranked: bool) -> None:
    lose = {"outcome": Outcome.INFRASTRUCTURE_ERROR, "correct": None, "f1": None}
    rows = [replace(row, **lose) if index < lost else row for index, row in enumerate(ENOUGH)]  # type: ignore[arg-type]
    rows += [replace(row, system="rag-hybrid") for row in ENOUGH]
    summary = summarise(rows, [], a_manifest())
    assert summary["ranked"] == {"en": ranked}
    assert any("not put in order" in caveat["text"] for caveat in summary["caveats"]) != ranked
    assert any(
        f"rag-dense (en) {lost} of 40 (infrastructure errors {lost}), accuracy" in caveat["text"]
        for caveat in summary["caveats"]
    )


def test_a_baseline_never_stops_the_ranking_nor_leads_it() -> None:
    baseline = [replace(row, system="baseline:full-context", correct=True) for row in ENOUGH]
    poor = [replace(row, system="rag-hybrid", correct=False) for row in ENOUGH]
    lost = [replace(row, outcome=Outcome.REFUSED, correct=None) for row in baseline[:20]]
    summary = summarise([*poor, *ENOUGH, *lost, *baseline[20:]], [], a_manifest())
    assert summary["ranked"] == {"en": True}
    assert [name for name, _ in systems_in_order(summary, "en")] == ["rag-dense", "rag-hybrid", "baseline:full-context"]


def test_few_dialogues_and_one_dialogue() -> None:
    few = [row for row in ENOUGH if int(row.dialogue_id) < 5]
    assert "5 dialogues only" in sentences(few)["intervals"][0]
    assert "Student's t (degrees of freedom: 4)" in sentences(few)["intervals"][0]
    one = [row for row in ENOUGH if row.dialogue_id == "0"]
    assert "one dialogue" in sentences(one)["intervals"][0]


def test_an_accuracy_without_spread_has_no_interval_and_says_so() -> None:
    found = sentences([replace(row, correct=True) for row in ENOUGH])
    assert found["intervals"] == [
        "No interval for rag-dense (en): accuracy is the same in every dialogue that has scores, which leaves no "
        "spread to estimate from."
    ]


def test_missing_and_small_slices_of_the_taxonomy() -> None:
    rumba = [replace(row, axes=a_row().axes) for row in ENOUGH]
    missing, *rest = sentences(rumba)["slices"]
    assert not rest
    for value in ("Temporal reasoning", "Abstention", "Multi-session", "Explicit expression"):
        assert value in missing
    assert "StaticUser" not in missing
    assert sentences(rumba[:9])["slices"][1].startswith("en: 5 of 5 slices")


def test_memories_without_sources() -> None:
    silent = [replace(row, recall_sessions=None) for row in ENOUGH]
    assert "No retrieval figures for rag-dense (en)" in sentences(silent)["retrieval"][0]


def test_what_the_data_and_the_ingest_had_to_say() -> None:
    data = replace(a_manifest().plan.data, oddities={"evidence-unknown-turn": 3, "empty-turn": 1})
    assert isinstance(data, DataFacts)
    totals = SystemTotals(
        ingest=IngestCounts(turns_read=100, turns_listed=98, failed=2, stale_reads=1),
        coverage=Coverage(expected=50, answered=40),
    )
    found = sentences(ENOUGH, replace(a_manifest(data=data), totals={"rag-dense": totals}))
    assert found["data"] == ["The data has 4 oddities (empty-turn 1, evidence-unknown-turn 3)."]
    assert [text.split(": ", 1)[1][:30] for text in found["ingest"]] == [
        "2 of 100 turns could not be st",
        "100 turns were sent and 98 are",
        "1 answer of Retrieve still nam",
    ]
    assert found["coverage"] == ["rag-dense: the run is not finished, 40 of 50 questions were asked."]


def test_many_systems_are_told_in_one_sentence_those_that_miss_most_first() -> None:
    lose = {"outcome": Outcome.REFUSED, "correct": None, "f1": None}
    rows = [
        replace(row, system=f"system-{n}", **(lose if index < n else {}))  # type: ignore[arg-type]
        for n in range(1, 8)
        for index, row in enumerate(ENOUGH)
    ]
    systems = tuple(a_system(f"system-{n}") for n in range(1, 8))
    (unscored, poor) = sentences(rows, a_manifest(systems=systems))["coverage"]
    assert unscored.startswith("Questions without a score")
    assert "system-7 (en) 7 of 40 (refused by a provider 7), accuracy" in unscored
    assert unscored.endswith(", 3 more.")
    assert poor.startswith("Scores for fewer than 95% of the questions: system-7 (en) 82.5%, system-6 (en) 85.0%")


def test_systems_that_are_not_alike_but_for_their_memory_are_told() -> None:
    rows = [*ENOUGH, *(replace(row, system="rag-hybrid", context_tokens=2000) for row in ENOUGH)]
    rows = [replace(row, context_tokens=row.context_tokens or 500) for row in rows]
    systems = tuple(
        replace(system, models=(Model(name=f"model of {system.name}", purpose="embedding"),))
        for system in a_manifest().plan.systems[:2]
    )
    models, context = sentences(rows, a_manifest(systems=systems))["tracks"]
    assert "(embedding: model of rag-dense, model of rag-hybrid)" in models
    assert context.startswith("en: the memory systems give the answer model from 500 to 2,000 tokens")
    alike = [replace(row, context_tokens=500) for row in rows]
    assert "tracks" not in sentences(alike)


@pytest.mark.parametrize(
    ("reused", "said"),
    [
        (Reused(run_id="abc", through="retrieve"), "Memories are those of the run abc, answered and judged again."),
        (Reused(run_id="abc", through="answer"), "Memories and answers are those of the run abc, judged again."),
        (Reused(run_id="abc", through="answer", only_unscored=True), "only what it had left without a verdict"),
    ],
)
def test_what_was_taken_over_and_asked_again_is_told(reused: Reused, said: str) -> None:
    assert said in sentences(ENOUGH, a_manifest(reused=reused))["answers"][0]
    again = SystemTotals(ingest=IngestCounts(turns_read=9, turns_listed=9, retried=3))
    found = sentences(ENOUGH, replace(a_manifest(), totals={"rag-dense": again}))
    assert "Turns that had failed and were sent again: rag-dense 3." in found["ingest"]


def test_every_caveat_has_a_place() -> None:
    run = a_run(offline=True)
    summary = summarise(run.rows, run.timings, run.manifest)
    places = [ABOUT.index(caveat["about"]) for caveat in summary["caveats"]]
    assert places == sorted(places)
