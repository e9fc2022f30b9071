"""The paper's tables, laid out from a result matrix that has its printed sums (arXiv:2607.21447)."""

import csv
from functools import cache
from pathlib import Path

import pytest

from memdock_evaluator.statistics.analysis import analyse
from memdock_evaluator.statistics.plan import Kind
from memdock_evaluator.statistics.shape import Analysis, Difference, Score
from support.rumba_paper import (
    AGENT_RAG,
    FAMILIES,
    FULL_CONTEXT,
    GAP_BETWEEN_LANGUAGES,
    GAP_BETWEEN_SCOPES,
    GAPS,
    LANGUAGE_CONTRASTS,
    MATCHED,
    PROFILE,
    PROFILE_LANGUAGES,
    PROFILED,
    SLICE_CONTRASTS,
    SLICES,
    TABLE_5,
    paper_matrix,
    plan_of_the_paper,
)

PRINTED = 0.0055
"""Half of the last digit printed, and a little for figures that were rounded twice (Table 11's 4.34 is 4.335)."""
SHARED = Path(__file__).parents[4] / "shared/paper"


@cache
def analysis() -> Analysis:
    return analyse(paper_matrix(), plan_of_the_paper(paper_matrix()), seed=25, resamples=10_000)


@cache
def scores() -> dict[tuple[str, str, str, str, str], Score]:
    return {(one.measure, one.unit, one.language, one.axis, one.value): one for one in analysis().scores}


def accuracy(unit: str, language: str, axis: str, value: str) -> float:
    score = scores()["accuracy", unit, language, axis, value].score
    assert score is not None
    return 100 * score


@cache
def differences(kind: Kind, profile: bool = False) -> dict[tuple[str, str, str, str, str], Difference]:
    """By axis, first and second slice, and the first side's unit and language."""
    return {
        (
            first.slice.axis,
            first.slice.value,
            one.contrast.second.slice.value,
            first.terms[0].unit,
            first.terms[0].language,
        ): one
        for block in analysis().blocks
        if block.kind is kind and (PROFILED in block.name) == profile
        for one in block.differences
        for first in (one.contrast.first,)
    }


def points(one: Difference) -> float:
    assert one.estimate is not None
    return 100 * one.estimate


@pytest.mark.parametrize("system", TABLE_5)
def test_table_5_scores_and_errors(system: str) -> None:
    for language, printed in zip(("ru", "en"), (TABLE_5[system][:4], TABLE_5[system][4:]), strict=True):
        for measure, (mean, error) in zip(("accuracy", "f1"), (printed[:2], printed[2:]), strict=True):
            found = scores()[measure, system, language, "overall", "all"]
            assert found.score is not None
            assert found.standard_error is not None
            assert 100 * found.score == pytest.approx(mean, abs=PRINTED)
            assert 100 * found.standard_error == pytest.approx(error, abs=PRINTED)


@pytest.mark.parametrize("row", SLICES, ids=lambda row: "-".join(row[:2]))
def test_table_24_sizes_and_every_printed_score_of_a_slice(
    row: tuple[str, str, int, float, float, float, float, float, float],
) -> None:
    axis, value, n, *printed = row
    units = [PROFILED, PROFILED, FULL_CONTEXT, FULL_CONTEXT, AGENT_RAG, AGENT_RAG]
    for unit, language, percent in zip(units, ["ru", "en"] * 3, printed, strict=True):
        assert accuracy(unit, language, axis, value) == pytest.approx(percent, abs=PRINTED), (unit, language)
        assert scores()["accuracy", unit, language, axis, value].n == n


def test_the_printed_60_55_is_the_mean_of_five() -> None:
    five = [system for system in FAMILIES[1].systems if system != "mem0g"]
    atemporal = [accuracy(system, "ru", "temporality", "atemporal") for system in five]
    assert sum(atemporal) / 5 == pytest.approx(60.55, abs=PRINTED)
    assert ("accuracy", "mem0g", "ru", "temporality", "atemporal") not in scores()
    assert ("accuracy", "mem0g", "ru", "reasoning", "temporal_reasoning") in scores()


@pytest.mark.parametrize("slice_", GAPS, ids="-".join)
def test_tables_11_16_and_19_gaps_of_the_families(slice_: tuple[str, str]) -> None:
    for language, printed in zip(("ru", "en"), GAPS[slice_], strict=True):
        one = differences(Kind.GAP)[*slice_, slice_[1], FULL_CONTEXT, language]
        assert points(one) == pytest.approx(printed, abs=PRINTED)
        assert points(one) == pytest.approx(
            accuracy(FULL_CONTEXT, language, *slice_) - accuracy(AGENT_RAG, language, *slice_), abs=2e-4
        )


@pytest.mark.parametrize("pair", SLICE_CONTRASTS, ids="-".join)
def test_tables_12_13_15_17_20_and_21_slices_within_a_family(pair: tuple[str, str, str]) -> None:
    units = [(AGENT_RAG, "ru"), (AGENT_RAG, "en"), (FULL_CONTEXT, "ru"), (FULL_CONTEXT, "en")]
    for unit, printed in zip(units, SLICE_CONTRASTS[pair], strict=True):
        assert points(differences(Kind.SLICES)[*pair, *unit]) == pytest.approx(printed, abs=PRINTED)


@pytest.mark.parametrize("slice_", LANGUAGE_CONTRASTS, ids="-".join)
def test_table_18_english_minus_russian(slice_: tuple[str, str]) -> None:
    for unit, printed in zip((AGENT_RAG, FULL_CONTEXT), LANGUAGE_CONTRASTS[slice_], strict=True):
        one = differences(Kind.LANGUAGES)[*slice_, slice_[1], unit, "en"]
        assert points(one) == pytest.approx(printed, abs=PRINTED)


def test_table_6_matched_answerer() -> None:
    found = {
        (one.contrast.second.terms[0].unit, one.contrast.second.terms[0].language): points(one)
        for block in analysis().blocks
        if block.kind is Kind.ANSWERER
        for one in block.differences
    }
    printed = {
        (unit, language): value
        for unit, values in MATCHED.items()
        for language, value in zip(("ru", "en"), values, strict=True)
    }
    assert found == pytest.approx(printed, abs=PRINTED)


def test_f1_and_f2_interactions() -> None:
    gap = differences(Kind.GAP_LANGUAGES)["overall", "all", "all", FULL_CONTEXT, "en"]
    assert points(gap) == pytest.approx(GAP_BETWEEN_LANGUAGES, abs=PRINTED)
    for language, printed in zip(("ru", "en"), GAP_BETWEEN_SCOPES, strict=True):
        loss = differences(Kind.GAP_SLICES)["scope", "single", "multi", FULL_CONTEXT, language]
        assert points(loss) == pytest.approx(printed, abs=PRINTED)


@pytest.mark.parametrize("row", PROFILE, ids=lambda row: "-".join(row[1:4]))
def test_table_25_one_systems_slices_with_the_papers_intervals(
    row: tuple[str, str, str, str, float, float, float],
) -> None:
    """One system's slices share no question, so the marginals alone make the question bootstrap's intervals."""
    axis, first, second, language, difference, low, high = row
    one = differences(Kind.SLICES, profile=True)[axis, first, second, PROFILED, language]
    assert points(one) == pytest.approx(difference, abs=PRINTED)
    assert one.question_bootstrap.low is not None
    assert one.question_bootstrap.high is not None
    # Each end of either bootstrap has an error of its own, .027 standard errors at 10,000 resamples.
    near = 4 * 2**0.5 * 0.027 * (high - low) / 3.92 + PRINTED
    assert 100 * one.question_bootstrap.low == pytest.approx(low, abs=near)
    assert 100 * one.question_bootstrap.high == pytest.approx(high, abs=near)


def test_table_25_one_systems_languages() -> None:
    for slice_, printed in PROFILE_LANGUAGES.items():
        one = differences(Kind.LANGUAGES, profile=True)[*slice_, slice_[1], PROFILED, "en"]
        assert points(one) == pytest.approx(printed, abs=PRINTED)


def test_best_observed_is_gpt_5_4_of_full_context() -> None:
    best = {(one.family, one.language, one.axis): one for one in analysis().best if one.axis == "overall"}
    assert best[FULL_CONTEXT, "ru", "overall"].systems == ("gpt-5.4",)
    assert best[AGENT_RAG, "ru", "overall"].systems == ("simple RAG",)
    assert best[AGENT_RAG, "en", "overall"].systems == ("memOS",)


@pytest.mark.skipif(not SHARED.exists(), reason="needs the paper's tables, which cannot be shipped with the project")
def test_the_figures_are_those_of_the_tables_as_given() -> None:
    with (SHARED / "table24.csv").open(encoding="utf-8", newline="") as file:
        given = [(int(row["n"]), float(row["ru"]), float(row["en"])) for row in csv.DictReader(file)]
    assert given == [row[2:5] for row in SLICES]
    with (SHARED / "table5.csv").open(encoding="utf-8", newline="") as file:
        columns = [f"{language}_{part}" for language in ("ru", "en") for part in ("judge", "judge_se", "f1", "f1_se")]
        rows = [tuple(float(row[column]) for column in columns) for row in csv.DictReader(file)]
    assert rows == list(TABLE_5.values())
