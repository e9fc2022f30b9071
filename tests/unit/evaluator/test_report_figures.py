"""The drawings and tables of the page on a run laid out like the paper: labels apart, figures as in the summary."""

from dataclasses import replace
from functools import cache
from itertools import combinations
from pathlib import Path

import pytest

from memdock_evaluator.report import write_report
from memdock_evaluator.report.drawings import recall_curves
from memdock_evaluator.report.labels import Anchor, Box, placed
from memdock_evaluator.report.scatter import BOTTOM, LEFT, RIGHT, TOP, Scatter, scatters
from memdock_evaluator.results.manifest import CostLine
from memdock_evaluator.summary import Summary, summarise
from support.html import Document
from support.paper_rows import a_paper_run
from support.synthetic_rows import Run


@cache
def run() -> Run:
    return a_paper_run(dialogues=6, questions=102)


@cache
def summary() -> Summary:
    return summarise(run().rows, run().timings, run().manifest)


@cache
def drawing() -> Scatter:
    return next(found for found in scatters(summary()) if found.language == "en")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Document:
    folder = run().write(tmp_path_factory.mktemp("run"))
    write_report(folder)
    return Document((folder / "report.html").read_text(encoding="utf-8"))


def test_no_label_of_the_scatter_covers_another_or_a_point() -> None:
    boxes = [mark.label.box for mark in drawing().marks]
    assert all(one.shared(other) == 0 for one, other in combinations(boxes, 2))
    points = [Box.around(mark.x, mark.y, 5) for mark in drawing().marks]
    assert all(box.shared(point) == 0 for box in boxes for point in points)


def test_every_label_of_the_scatter_is_inside_its_frame() -> None:
    frame = Box(left=LEFT, right=RIGHT, top=TOP, bottom=BOTTOM)
    assert all(frame.holds(mark.label.box) for mark in drawing().marks)


def test_points_lie_on_a_log_axis_and_lines_join_several_k() -> None:
    places = {mark.point.system: mark.x for mark in drawing().marks}
    ticks = dict(drawing().x_ticks)
    assert ticks[1000] - ticks[200] == pytest.approx(ticks[5000] - ticks[1000], abs=0.2)
    assert ticks[500] < places["baseline:oracle"] < ticks[1000]
    (line,) = drawing().lines
    assert [x for x, _ in line] == [places[f"rag-dense@{k}"] for k in (3, 10, 20)]
    labels = {mark.point.system: mark.label.text for mark in drawing().marks}
    assert (labels["rag-dense@3"], labels["rag-dense@20"]) == ("rag-dense@3", "rag-dense@20")


def test_a_system_without_context_is_named_below() -> None:
    assert drawing().left_out == ("refusal",)
    assert {mark.shape for mark in drawing().marks} == {"circle", "square", "diamond"}


def test_crowded_labels_move_apart_and_a_line_leads_to_those_that_went_far() -> None:
    anchors = [Anchor(text=f"system {n}", x=100, y=100 + n) for n in range(6)]
    frame = Box(left=0, right=400, top=0, bottom=300)
    found = placed(anchors, [Box.around(anchor.x, anchor.y, 5) for anchor in anchors], frame)
    assert [label.text for label in found] == [anchor.text for anchor in anchors]
    assert all(one.box.shared(other.box) == 0 for one, other in combinations(found, 2))
    assert any(label.far for label in found)


def test_a_system_has_one_colour_in_the_drawings_of_every_language() -> None:
    colours = [{curve.system: curve.colour for curve in drawing.curves} for drawing in recall_curves(summary())]
    assert len(colours) == 2
    assert colours[0] == colours[1]
    assert len(set(colours[0].values())) == len(colours[0])


def test_the_page_draws_the_scatter_with_a_text_of_its_figures(page: Document) -> None:
    figures = summary()["systems"]["zep"]["languages"]["en"]
    shown = (
        f"zep: {figures['tokens']['context_mean']:,.0f} tokens, {100 * (figures['judge_accuracy'] or 0):.1f} per cent"
    )
    assert any(shown in svg["aria-label"] for svg in page.of("svg"))
    assert "Without any context, and so not on the axis: refusal." in page.text


def test_the_heat_maps_stand_by_family_and_mark_few_questions(page: Document) -> None:
    text = page.text
    families = (*(f"memory systems, k = {k}" for k in (3, 10, 20)), "full context", "other baselines")
    places = [text.index(title) for title in ("Methods by semantic type", *(f"{name} English" for name in families))]
    assert places == sorted(places)
    # 102 questions over 17 types are 6 of each: every cell of a type is marked, none of all questions.
    maps = [table for table in page.of("table") if table.get("class") == "heatmap"]
    assert len(maps) == 2 * len(families)
    assert sum(mark.get("title") == "6 questions only" for mark in page.of("abbr")) == 13 * 2 * 17


def test_results_of_several_k_stand_under_a_heading_of_each(page: Document) -> None:
    first = page.text[page.text.index("Scores in per cent, systems of one k by accuracy") :]
    places = [first.index(f"k = {k} ") for k in (3, 10, 20)]
    assert places == sorted(places)
    assert first.index("rag-dense@3 ") < places[1] < first.index("rag-hybrid ") < places[2]
    assert places[2] < first.index("Baselines") < first.index("full-context")


def test_money_names_what_has_no_price(page: Document) -> None:
    text = page.text
    assert "USD by list prices of 2025-06-30" in text
    assert "its money comes on top" not in text
    assert "their money comes on top and is not 0: pollux-judge-7b" in text
    money = summary()["cost"]
    assert money
    assert f"{1000 * (money['systems']['mem0']['purposes']['memory']['a_question'] or 0):.2f}" in text


def test_the_bill_has_what_all_k_of_a_system_share_under_its_own_name(tmp_path: Path) -> None:
    cost = run().manifest.cost
    assert cost
    shared = CostLine(
        system="rag-dense", purpose="memory: embedding", model="e5", input_tokens=54321, output_tokens=0, estimated=True
    )
    billed = replace(run(), manifest=replace(run().manifest, cost=replace(cost, lines=(*cost.lines, shared))))
    folder = billed.write(tmp_path)
    write_report(folder)
    text = Document((folder / "report.html").read_text(encoding="utf-8")).text
    bill = text[text.index("USD by list prices") :]
    own = bill.index("rag-dense stored and searched, for all its k")
    assert own < bill.index("rag-dense@3")
    assert "≈ 54,321" in bill[own : bill.index("rag-dense@3")]
    assert "54321,0,yes" in (folder / "tables" / "cost.csv").read_text(encoding="utf-8")


def test_every_judge_is_named_with_its_model_and_whether_its_verdicts_count(page: Document) -> None:
    head = page.text[page.text.index("Answerer gpt-4.1-mini") :][:500]
    assert "first: pollux-judge-7b primary in English, Russian" in head
    assert "second: deepseek-reasoner beside the primary one" in head
    run_ = page.text[page.text.index("Systems as they described themselves") - 3000 :]
    assert "Judge first openai · pollux-judge-7b · models.example · form pollux" in run_
    assert "Judge second openai · deepseek-reasoner · models.example · form json" in run_
    assert "languages: English, Russian; beside the primary one" in run_


def test_agreement_of_judges_stands_by_language(page: Document) -> None:
    for name, code in (("English", "en"), ("Russian", "ru")):
        found = summary()["judges"]["agreement"][code]
        assert f"Judges, {name} : alpha {found['alpha']:.3f} over {found['n']:,} answers" in page.text.replace(
            ":", " :"
        )


def test_a_run_without_any_of_it_has_no_such_section(tmp_path: Path) -> None:
    plain = replace(
        run(),
        rows=tuple(
            replace(row, axes={}, verdicts={}, context_tokens=0) for row in run().rows if row.system == "rag-hybrid"
        ),
        manifest=replace(run().manifest, cost=None),
    )
    folder = plain.write(tmp_path)
    write_report(folder)
    found = Document((folder / "report.html").read_text(encoding="utf-8"))
    ids = {attributes.get("id") for _, attributes in found.elements}
    assert ids.isdisjoint({"context", "heat", "money", "judges"})
    links = [link["href"] for link in found.of("a")]
    assert not {"#context", "#heat", "#money", "#judges"} & set(links)
