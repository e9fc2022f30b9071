"""The numbers behind the heat maps of the paper's Figures 15 and 16 and the scatter of context and accuracy."""

from functools import cache

import pytest

from memdock_evaluator.dataset import taxonomy
from memdock_evaluator.statistics.plan import Family
from memdock_evaluator.summary import Summary, summarise
from memdock_evaluator.summary.context import context_points
from memdock_evaluator.summary.heat import heat_maps
from support.paper_rows import SYSTEMS, a_paper_run

MEMORY = tuple(name for name in SYSTEMS if not name.startswith("baseline:"))
FAMILIES = (
    Family(name="memory systems", systems=MEMORY),
    Family(name="full context", systems=("baseline:full-context",)),
)


@cache
def summary() -> Summary:
    run = a_paper_run(dialogues=6, questions=204)
    return summarise(run.rows, run.timings, run.manifest)


def test_a_heat_map_is_of_one_family_and_language_with_types_in_the_papers_order() -> None:
    maps = heat_maps(summary(), FAMILIES)
    assert [(heat.family, heat.language) for heat in maps] == [
        *(("memory systems", "en"), ("memory systems", "ru"), ("full context", "en"), ("full context", "ru")),
        *(("other baselines", "en"), ("other baselines", "ru")),
    ]
    first = maps[0]
    assert tuple(column.value for column in first.columns) == taxonomy.TYPES
    assert first.spans == [("Extraction", 6), ("General reasoning", 6), ("Temporal reasoning", 4), ("", 1)]
    assert {row.system for row in first.rows} == set(MEMORY)


def test_memory_systems_of_no_family_stand_apart_from_baselines() -> None:
    families = (
        Family(name="full context", systems=("baseline:full-context",)),
        Family(name="rag", systems=("rag-dense@10", "rag-hybrid")),
    )
    maps = {heat.family: heat for heat in heat_maps(summary(), families) if heat.language == "en"}
    assert list(maps) == ["rag", "other memory systems", "full context", "other baselines"]
    assert {row.system for row in maps["other memory systems"].rows} == set(MEMORY) - {"rag-dense@10", "rag-hybrid"}
    assert {row.system for row in maps["other baselines"].rows} == {"baseline:oracle", "baseline:refusal"}


def test_a_cell_is_the_accuracy_of_its_slice_and_few_questions_are_marked() -> None:
    first = heat_maps(summary(), FAMILIES)[0]
    row = next(row for row in first.rows if row.system == "zep")
    figures = summary()["systems"]["zep"]["languages"]["en"]
    assert [cell.share for cell in row.cells] == [
        figures["slices"]["semantic"][kind]["judge_accuracy"] for kind in taxonomy.TYPES
    ]
    assert row.overall.share == figures["judge_accuracy"]
    assert first.sizes == [12] * 17
    assert not any(cell.few for cell in row.cells)
    small = a_paper_run(dialogues=3, questions=51)
    few = heat_maps(summarise(small.rows, [], small.manifest), FAMILIES)[0]
    assert all(cell.few for cell in few.rows[0].cells)
    assert not few.rows[0].overall.few


def test_points_of_one_system_at_several_k_follow_each_other() -> None:
    points = [point for point in context_points(summary()) if point.language == "en"]
    dense = [point for point in points if point.series == "rag-dense"]
    assert [point.k for point in dense] == [3, 10, 20]
    places = [points.index(point) for point in dense]
    assert places == [places[0], places[0] + 1, places[0] + 2]
    assert dense[0].tokens == pytest.approx(1300, rel=0.1)
    assert dense[0].low is not None
    assert dense[0].low < dense[0].accuracy
    assert len(points) == len(SYSTEMS)
