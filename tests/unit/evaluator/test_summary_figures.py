"""The summary against a run whose truth is known by counting, and each rule of counting by itself."""

from random import Random

import orjson
import pytest

from memdock_evaluator.results.rows import MemorySource, Outcome, RetrievedMemory, Row, Stage, Timing
from memdock_evaluator.summary import summarise, to_json
from memdock_evaluator.summary.figures import delete_info, figures, recall_at
from memdock_evaluator.summary.shape import LanguageSummary
from support.synthetic_rows import WRONG_EVERY, a_manifest, a_row, a_run

RUN = a_run()
SUMMARY = summarise(RUN.rows, RUN.timings, RUN.manifest)
ERROR = {"answer": None, "verdict": None, "correct": None, "f1": None}
NOT_RETRIEVED = dict.fromkeys(
    ("recall_sessions", "recall_turns", "mrr_sessions", "mrr_turns", "ndcg_sessions", "ndcg_turns")
)


def russian(system: str) -> LanguageSummary:
    return SUMMARY["systems"][system]["languages"]["ru"]


@pytest.mark.parametrize(("system", "every"), WRONG_EVERY.items())
def test_accuracy_is_the_share_that_was_made_right(system: str, every: int) -> None:
    right = sum(number % every != 0 for number in range(102)) / 102
    found = russian(system)
    assert (found["n_questions"], found["n_scored"], found["n_dialogues"], found["coverage"]) == (102, 102, 6, 1)
    assert found["judge_accuracy"] == found["f1"] == pytest.approx(right)
    assert found["judge_accuracy_se"] == pytest.approx((right * (1 - right) / 102) ** 0.5)
    assert found["judge_accuracy_bounds"] == pytest.approx({"low": right, "high": right})
    interval = found["judge_accuracy_interval"]
    assert interval is not None
    assert interval["low"] < right < interval["high"]
    assert interval["n_clusters"] == 6


def test_constant_refusal_is_right_where_nothing_is_to_be_said() -> None:
    found = russian("baseline:refusal")
    assert found["judge_accuracy"] == pytest.approx(12 / 102)
    assert found["slices"]["semantic"]["Abstention"]["judge_accuracy"] == 1
    assert found["slices"]["semantic"]["Ordering"]["judge_accuracy"] == 0
    assert found["recall_at_k"] is None


def test_recall_leaves_out_abstentions_and_deletions() -> None:
    expected = [number % 3 != 0 for number in range(102) if number % 17 not in (2, 16)]
    found = russian("rag-dense")
    assert found["n_retrieval"] == 90
    assert found["recall_at_k"] == found["mrr"] == found["ndcg_turns"] == pytest.approx(sum(expected) / 90)
    deletions = [number % 3 != 0 for number in range(102) if number % 17 == 2]
    assert found["delete_info"] == {
        "n_questions": 6,
        "recall_at_k": sum(deletions) / 6,
        "recall_turns_at_k": sum(deletions) / 6,
    }
    assert found["slices"]["semantic"]["DeleteInfo"]["recall_at_k"] == sum(deletions) / 6
    assert found["slices"]["semantic"]["Abstention"]["n_retrieval"] == 0


def test_recall_at_fewer_memories_is_of_the_first_ones_alone() -> None:
    def memory(rank: int, session: int) -> RetrievedMemory:
        source = MemorySource(session_id=f"s{session}", turn_id=f"s{session}-t0")
        return RetrievedMemory(rank=rank, kind="turns", text="x", score=None, time=None, sources=(source,))

    memories = tuple(memory(rank, session) for rank, session in enumerate((9, 1, 8, 2), start=1))
    both = a_row(memories=memories, evidence_sessions=("s1", "s2"), evidence_turns=("s2-t0",))
    nothing = a_row(question_id="q1", outcome=Outcome.SYSTEM_ERROR, **ERROR, **dict.fromkeys(NOT_RETRIEVED, 0.0))
    unknown = a_row(question_id="q2", outcome=Outcome.INFRASTRUCTURE_ERROR, **ERROR, **NOT_RETRIEVED)
    deleted = a_row(question_id="q3", axes={"semantic": "DeleteInfo"}, memories=memories)

    assert recall_at([both, nothing, unknown, deleted], 4) == {
        "1": {"sessions": 0, "turns": 0},
        "3": {"sessions": 0.25, "turns": 0},
        "4": {"sessions": 0.5, "turns": 0.5},
    }
    assert list(recall_at([unknown], 20).items())[-2:] == [
        ("10", {"sessions": None, "turns": None}),
        ("20", {"sessions": None, "turns": None}),
    ]


def test_recall_at_k_is_the_same_by_both_ways() -> None:
    found = russian("rag-dense")
    assert list(found["recall_at"]) == ["1", "3", "5", "10"]
    assert found["recall_at"]["10"] == {"sessions": found["recall_at_k"], "turns": found["recall_turns_at_k"]}


def test_failures_are_told_apart_and_only_the_systems_own_count_as_wrong() -> None:
    found = SUMMARY["systems"]["rag-dense"]["languages"]["en"]
    right = sum(number % 3 != 0 for number in range(102) if number not in (0, 1, 2))
    assert found["outcomes"] == {"answered": 100, "refused": 0, "infrastructure_error": 1, "system_error": 1}
    assert found["unscored"] == 1
    assert found["n_scored"] == 100
    assert found["coverage"] == pytest.approx(100 / 102)
    assert found["judge_accuracy"] == pytest.approx(right / 100)
    assert found["judge_accuracy_bounds"] == pytest.approx({"low": right / 102, "high": (right + 2) / 102})


def test_every_slice_adds_up_to_the_whole() -> None:
    found = russian("rag-hybrid")
    whole = (found["judge_accuracy"] or 0) * found["n_scored"]
    for axis in ("group", "semantic", "scope", "temporality", "scope_temporality"):
        slices = found["slices"][axis].values()
        assert sum(each["n_questions"] for each in slices) == 102
        assert sum((each["judge_accuracy"] or 0) * each["n_scored"] for each in slices) == pytest.approx(whole)


def test_latency_and_tokens_are_those_that_were_measured() -> None:
    found = russian("rag-dense")
    assert found["latency_ms"]["retrieve"] == {"n": 102, "p50": 51.5, "p95": pytest.approx(96.95)}
    assert found["latency_ms"]["retrieve/embed"]["p50"] == 25.75
    assert found["latency_ms"]["add"]["n"] == 102
    assert "judge" not in found["latency_ms"]
    assert found["tokens"]["context_mean"] == 400
    assert found["tokens"]["answer_input"] == 51_000
    assert found["tokens"]["estimated"]


def test_a_refusal_by_a_provider_is_no_score() -> None:
    found = figures([a_row(), a_row(question_id="q1", outcome=Outcome.REFUSED, **ERROR)])
    assert (found["n_scored"], found["judge_accuracy"], found["coverage"]) == (1, 1, 0.5)
    assert found["judge_accuracy_bounds"] == {"low": 0.5, "high": 1}


def test_crashing_on_hard_questions_does_not_pay() -> None:
    nothing = dict.fromkeys(NOT_RETRIEVED, 0.0)
    crashed = a_row(question_id="q1", outcome=Outcome.SYSTEM_ERROR, **ERROR, **nothing)
    found = figures([a_row(), crashed])
    assert found["judge_accuracy"] == found["f1"] == found["recall_at_k"] == found["ndcg_turns"] == 0.5


def test_a_system_that_names_no_sources_has_no_recall_even_when_it_fails() -> None:
    silent = a_row(**NOT_RETRIEVED)
    crashed = a_row(question_id="q1", outcome=Outcome.SYSTEM_ERROR, **ERROR, **NOT_RETRIEVED)
    assert figures([silent, crashed])["recall_at_k"] is None


def test_questions_whose_retrieval_cannot_be_scored_are_told() -> None:
    silent = a_row(question_id="q1", **NOT_RETRIEVED)
    rows = [a_row(), silent, a_row(question_id="q2", abstention=True, **NOT_RETRIEVED)]
    summary = summarise(rows, [], a_manifest())
    found = summary["systems"]["rag-dense"]["languages"]["en"]
    assert (found["n_evidence"], found["n_retrieval"]) == (2, 1)
    (sentence,) = [caveat["text"] for caveat in summary["caveats"] if caveat["about"] == "retrieval"]
    assert sentence.startswith("rag-dense (en): retrieval figures are over 1 of 2 questions with known evidence;")


def test_repeats_of_a_question_count_once() -> None:
    rows = [a_row(repeat=repeat, correct=repeat == 0, f1=0.5) for repeat in range(4)]
    rows += [a_row(question_id="q1", repeat=repeat) for repeat in range(2)]
    found = figures(rows)
    assert (found["n_questions"], found["n_scored"]) == (2, 2)
    assert found["judge_accuracy"] == pytest.approx((0.25 + 1) / 2)
    assert found["f1"] == pytest.approx(0.75)


def test_without_a_score_there_is_no_accuracy() -> None:
    found = figures([a_row(outcome=Outcome.INFRASTRUCTURE_ERROR, **ERROR, **NOT_RETRIEVED)])
    assert found["judge_accuracy"] is found["judge_accuracy_se"] is found["f1"] is found["recall_at_k"] is None
    assert found["coverage"] == 0
    assert found["judge_accuracy_bounds"] == {"low": 0, "high": 1}
    assert delete_info([])["recall_at_k"] is None


def test_free_tags_are_slices_like_any_other() -> None:
    rows = [a_row(axes={"tier": "gold"}), a_row(question_id="q1", axes={"tier": "free"}, correct=False)]
    found = summarise(rows, [], a_manifest())["systems"]["rag-dense"]["languages"]["en"]
    assert {value: each["judge_accuracy"] for value, each in found["slices"]["tier"].items()} == {"gold": 1, "free": 0}


def test_the_same_rows_in_any_order_give_the_same_bytes() -> None:
    rows, timings = list(RUN.rows), list(RUN.timings)
    Random(1).shuffle(rows)
    Random(2).shuffle(timings)
    written = to_json(summarise(rows, timings, RUN.manifest))
    assert written == to_json(SUMMARY)
    assert orjson.loads(written) == SUMMARY


def test_a_summary_of_nothing_is_empty() -> None:
    nothing: list[Row] = []
    summary = summarise(nothing, [], a_manifest())
    assert summary["systems"] == {}
    assert summary["caveats"] == []


def test_a_timing_without_its_question_still_belongs_to_its_system() -> None:
    flush = Timing(
        system="rag-dense", language="en", dialogue_id="0", question_id=None, repeat=0, stage=Stage.FLUSH, ms=9.0
    )
    found = summarise([a_row()], [flush], a_manifest())["systems"]["rag-dense"]["languages"]["en"]
    assert found["latency_ms"] == {"flush": {"n": 1, "p50": 9.0, "p95": 9.0}}
