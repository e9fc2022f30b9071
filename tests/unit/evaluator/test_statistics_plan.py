"""The paper's comparisons as data: which contrasts there are, and which are corrected together."""

from collections import Counter

import pytest

from memdock_evaluator.statistics.analysis import analyse
from memdock_evaluator.statistics.plan import (
    AnalysisPlan,
    Block,
    Contrast,
    Family,
    Kind,
    Margin,
    Side,
    Term,
    paper_plan,
)
from memdock_evaluator.statistics.slices import OVERALL, Slice
from support.rumba_paper import AGENT_RAG, ANSWERER, FAMILIES, FULL_CONTEXT, PROFILED, paper_matrix, plan_of_the_paper

PLAN = plan_of_the_paper(paper_matrix())


def blocks_of(kind: Kind, *, profile: bool = False) -> list[Block]:
    return [block for block in PLAN.blocks if block.kind is kind and (PROFILED in block.name) == profile]


def test_a_gap_is_corrected_over_an_axis_in_a_language() -> None:
    blocks = {block.name: block for block in blocks_of(Kind.GAP)}
    assert len(blocks) == 2 * 10
    block = blocks["full context minus agent/rag: scope_temporality, ru"]
    assert len(block.contrasts) == 4
    contrast = block.contrasts[0]
    assert contrast.first.slice == contrast.second.slice
    assert [term.unit for side in (contrast.first, contrast.second) for term in side.terms] == [FULL_CONTEXT, AGENT_RAG]


def test_a_pair_of_slices_is_corrected_over_families_and_languages() -> None:
    blocks = blocks_of(Kind.SLICES)
    assert len(blocks) == 1 + 1 + 4 + 3 + 3 + 1 + 1 + 1
    assert {len(block.contrasts) for block in blocks} == {4}


def test_languages_are_corrected_over_the_families_of_a_slice_with_a_caveat() -> None:
    blocks = blocks_of(Kind.LANGUAGES)
    assert len(blocks) == len(paper_matrix().slices)
    assert {len(block.contrasts) for block in blocks} == {2}
    assert all("judges of their own" in block.caveat for block in blocks)
    side = blocks[0].contrasts[0]
    assert (side.first.terms[0].language, side.second.terms[0].language) == ("en", "ru")


def test_the_matched_answerer_meets_every_system_and_their_family() -> None:
    blocks = blocks_of(Kind.ANSWERER)
    assert [len(block.contrasts) for block in blocks] == [7, 7]
    assert {contrast.first.terms[0].unit for block in blocks for contrast in block.contrasts} == {ANSWERER}


def test_a_profile_is_one_systems_slices_and_languages() -> None:
    slices, languages = blocks_of(Kind.SLICES, profile=True), blocks_of(Kind.LANGUAGES, profile=True)
    assert {len(block.contrasts) for block in slices} == {2}
    assert Counter(len(block.contrasts) for block in languages) == {1: 1, 2: 3, 3: 2, 4: 1}
    units = {term.unit for block in slices + languages for one in block.contrasts for term in one.first.terms}
    assert units == {PROFILED}


def test_interactions_are_gaps_minus_gaps() -> None:
    contrast = blocks_of(Kind.GAP_LANGUAGES)[0].contrasts[0]
    assert [
        (term.unit, term.language, term.sign) for side in (contrast.first, contrast.second) for term in side.terms
    ] == [
        (FULL_CONTEXT, "en", 1),
        (AGENT_RAG, "en", -1),
        (FULL_CONTEXT, "ru", 1),
        (AGENT_RAG, "ru", -1),
    ]
    by_slice = blocks_of(Kind.GAP_SLICES)
    assert len(by_slice) == 15
    assert {len(block.contrasts) for block in by_slice} == {2}


def test_a_system_without_times_leaves_every_slice_of_time_and_no_other() -> None:
    for axis in ("temporality", "temporal_expression", "scope_temporality"):
        assert len(PLAN.systems_of(AGENT_RAG, Slice(axis=axis, value="atemporal"))) == 5
        assert PLAN.systems_of("mem0g", Slice(axis=axis, value="atemporal")) == ()
    for axis in ("reasoning", "scope", "overall", "position"):
        assert len(PLAN.systems_of(AGENT_RAG, Slice(axis=axis, value="temporal_reasoning"))) == 6
        assert PLAN.systems_of("mem0g", Slice(axis=axis, value="")) == ("mem0g",)


def test_a_family_of_such_systems_alone_has_no_contrasts_there() -> None:
    plan = paper_plan(paper_matrix(), [Family(name="graphs", systems=("mem0g",))], atemporal=["mem0g"])
    axes = {contrast.first.slice.axis for block in plan.blocks for contrast in block.contrasts}
    assert axes == {"overall", "scope", "group", "supergroup", "reasoning", "position", "position_single"}


def test_one_family_still_has_slices_and_languages() -> None:
    plan = paper_plan(paper_matrix(), FAMILIES[1:])
    assert {block.kind for block in plan.blocks} == {Kind.SLICES, Kind.LANGUAGES}


@pytest.mark.parametrize(
    ("families", "message"),
    [
        ([Family(name="a", systems=("b",)), Family(name="b", systems=("c",))], "a name of its own"),
        ([Family(name="a", systems=("b",)), Family(name="a", systems=("c",))], "a name of its own"),
        ([Family(name="a", systems=())], "must hold systems"),
        ([Family(name="a", systems=("b", "b"))], "each once"),
    ],
)
def test_families_that_do_not_work_are_refused(families: list[Family], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        AnalysisPlan(families=tuple(families))


@pytest.mark.parametrize(
    ("unit", "language", "slice_", "message"),
    [
        ("mem9", "ru", OVERALL, "'mem9' is no system"),
        ("mem0", "de", OVERALL, "'de' is no language"),
        ("mem0", "ru", Slice(axis="scope", value="some"), "no slice"),
        ("mem0g", "ru", Slice(axis="temporality", value="temporal"), "no system with times"),
    ],
)
def test_a_contrast_of_what_is_not_there_is_refused(unit: str, language: str, slice_: Slice, message: str) -> None:
    side = Side(terms=(Term(unit=unit, language=language),), slice=slice_)
    other = Side(terms=(Term(unit="memOS", language="ru"),), slice=slice_)
    block = Block(kind=Kind.GAP, name="a block", contrasts=(Contrast(first=side, second=other),))
    plan = AnalysisPlan(families=(), atemporal=frozenset(["mem0g"]), blocks=(block,))
    with pytest.raises(ValueError, match=message):
        analyse(paper_matrix(), plan, resamples=99)


def test_a_margin_of_an_unknown_system_is_refused() -> None:
    claim = Margin(unit="mem9", reference="mem0", language="ru", margin=0.02)
    with pytest.raises(ValueError, match="mem9"):
        analyse(paper_matrix(), AnalysisPlan(families=(), margins=(claim,)), resamples=99)
