"""The tables of a run: the same cells in every form, and the paper's rows beside them as what they are."""

import csv
import io
import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from memdock_evaluator.report import write_report
from memdock_evaluator.results.manifest import Manifest
from memdock_evaluator.results.plan import DataCounts, DataFacts, JudgeFacts, ModelFacts, PromptFact
from memdock_evaluator.statistics.plan import Contrast, Side, Term
from memdock_evaluator.statistics.slices import OVERALL, Slice
from memdock_evaluator.summary import summarise
from memdock_evaluator.summary.comparisons import compare
from memdock_evaluator.tables.build import tables
from memdock_evaluator.tables.comparing import contrast_label
from memdock_evaluator.tables.forms import FORMS
from memdock_evaluator.tables.published import published
from memdock_evaluator.tables.shape import Table
from support.rumba_paper import TABLE_5
from support.synthetic_rows import a_manifest, a_run, a_system


@cache
def made() -> dict[str, Table]:
    run = a_run()
    found = tables(summarise(run.rows, run.timings, run.manifest), compare(run.rows, resamples=50), run.manifest)
    return {table.name: table for table in found}


def test_the_main_table_holds_errors_intervals_and_retrieval() -> None:
    main = made()["main"]
    row = dict(zip(main.columns, main.rows[0], strict=True))
    assert (row["system"], row["language"], row["questions"]) == ("rag-hybrid", "en", 102)
    assert (row["accuracy"], row["recall@10"], row["coverage"]) == (79.41, 78.89, 100.0)
    assert row["SE"] == pytest.approx(100 * (0.7941 * 0.2059 / 102) ** 0.5, abs=0.01)
    assert row["95% low"] < row["accuracy"] < row["95% high"]  # type: ignore[operator]


def test_every_form_of_a_table_has_the_same_cells() -> None:
    for table in made().values():
        read = list(csv.reader(io.StringIO(FORMS["csv"](table))))
        assert tuple(read[0]) == table.columns
        whole = json.loads(FORMS["json"](table))
        assert [list(row.values()) for row in whole["rows"]] == [list(row) for row in table.rows]
        lines = [line for line in FORMS["md"](table).splitlines() if line.startswith("| ")]
        assert len(lines) == len(table.rows) + 2 == FORMS["tex"](table).count(r" \\") + 1
        for line, cells in zip(lines[2:], read[1:], strict=True):
            plain = line.replace("\\", "").removeprefix("| ").removesuffix(" |").split(" | ")
            assert [cell.lstrip("'") or "–" for cell in cells] == plain


def test_the_failures_add_up_to_the_wrong_answers() -> None:
    for _, _, n, *places, _ in made()["failures"].rows:
        assert sum(places) == n  # type: ignore[arg-type]


def test_what_must_be_known_stands_in_the_table() -> None:
    assert any("fewer than 20 dialogues" in note for note in made()["contrasts"].notes)
    assert any("Questions without a score" in note for note in made()["outcomes"].notes)


HOSTILE = Table(
    name="x",
    title="A",
    columns=("a_b", "n"),
    rows=(("=1+1 | <b>*x*</b> 50% & \\end{x} #1 ~^\nnext", -1.5), (None, 2.0)),
)


def test_text_stays_text_in_every_form() -> None:
    markdown, latex = FORMS["md"](HOSTILE), FORMS["tex"](HOSTILE)
    assert r"=1+1 \| \<b\>\*x\*\</b\> 50% & \\end{x} #1 ~^ next | -1.50 |" in markdown
    assert r"50\% \& \textbackslash{}end\{x\} \#1 \textasciitilde{}\textasciicircum{} next & $-$1.50 \\" in latex
    assert FORMS["csv"](HOSTILE).splitlines()[1].startswith("\"'=1+1")
    assert r"\begin{tabular}{lr}" in latex


def test_a_row_of_another_length_is_no_table() -> None:
    with pytest.raises(ValueError, match="table x: two columns have one name"):
        Table(name="x", title="X", columns=("of", "of"), rows=())
    with pytest.raises(ValueError, match="table x: every row must have 2 cells"):
        replace(HOSTILE, rows=((1,),))


def test_the_published_rows_are_those_of_the_paper() -> None:
    rows = published(a_manifest())
    found = {(one.accuracy, one.accuracy_se, one.f1, one.f1_se): one.language for one in rows}
    printed = {row[:4]: "ru" for row in TABLE_5.values()} | {row[4:]: "en" for row in TABLE_5.values()}
    assert found == printed
    assert len(rows) == 2 * len(TABLE_5)


def as_in_the_paper(language: str = "ru", **changes: Any) -> Manifest:
    mine = {code: PromptFact(file=f"paper/{code}.txt", sha256="0" * 64) for code in ("ru", "en")}
    judge = {"ru": "ai-forever/pollux-judge-7b", "en": "deepseek/DeepSeek-R1"}[language]
    manifest = a_manifest()
    data = DataFacts(
        files=(),
        format="rumba-rows",
        zone="UTC",
        dialogues=(),
        languages={language: DataCounts(dialogues=85, questions=1543)},
        oddities={},
    )
    plan = replace(
        manifest.plan,
        data=data,
        answerer=ModelFacts(kind="openai", model="openai/gpt-4.1-mini", prompts=mine),
        judge=ModelFacts(kind="openai", model=judge, prompts=mine),
    )
    return replace(manifest, plan=replace(plan, **changes))


def differs(manifest: Manifest) -> dict[str, tuple[str, ...]]:
    return {one.family: one.differs for one in published(manifest)}


@pytest.mark.parametrize("language", ["ru", "en"])
def test_a_run_as_in_the_paper_may_be_compared(language: str) -> None:
    assert differs(as_in_the_paper(language)) == {"Agent/RAG": (), "Full context": ()}


OFFLINE = ModelFacts(kind="offline-overlap")


@pytest.mark.parametrize(
    ("change", "rag", "full"),
    [
        ({"systems": (a_system("rag-dense", k=20),)}, ("k",), ()),
        ({"reference_time": True}, ("reference time",), ()),
        ({"as_of": True}, ("as of",), ()),
        ({"judge": OFFLINE}, ("judge", "judge prompt"), ("judge", "judge prompt")),
        ({"answerer": OFFLINE}, ("answerer", "answer prompt"), ("answer prompt",)),
        (
            {"data": replace(a_manifest().plan.data, languages={"ru": DataCounts(dialogues=6, questions=102)})},
            ("data",),
            ("data",),
        ),
    ],
)
def test_what_differs_is_named(change: dict[str, Any], rag: tuple[str, ...], full: tuple[str, ...]) -> None:
    found = differs(as_in_the_paper("ru", **change))
    assert (found["Agent/RAG"], found["Full context"]) == (rag, full)


def test_of_several_judges_the_languages_own_decides() -> None:
    manifest = as_in_the_paper("ru")
    pollux = JudgeFacts(languages=("ru",), primary_for=("ru",), model=manifest.plan.judge)
    other = JudgeFacts(languages=("ru",), primary_for=(), model=OFFLINE)
    several = as_in_the_paper("ru", judge=OFFLINE, judges={"pollux": pollux, "other": other})
    assert differs(several)["Agent/RAG"] == ()


def test_a_bundled_prompt_is_not_the_papers() -> None:
    from memdock_evaluator.answer.prompts import bundled

    fact = PromptFact(file="renamed.txt", sha256=bundled("answer", "ru", "txt").sha256)
    manifest = as_in_the_paper("ru")
    plan = replace(manifest.plan, answerer=replace(manifest.plan.answerer, prompts={"ru": fact}))
    assert differs(replace(manifest, plan=plan))["Agent/RAG"] == ("answer prompt",)


def side(*terms: tuple[str, str, int], slice_: Slice = OVERALL) -> Side:
    return Side(
        terms=tuple(Term(unit=unit, language=language, sign=sign) for unit, language, sign in terms), slice=slice_
    )


SINGLE, MULTI = Slice(axis="scope", value="single"), Slice(axis="scope", value="multi")


@pytest.mark.parametrize(
    ("first", "second", "label"),
    [
        (side(("a", "en", 1)), side(("b", "en", 1)), "a − b, en"),
        (side(("a", "en", 1), slice_=SINGLE), side(("b", "en", 1), slice_=SINGLE), "a − b: single, en"),
        (side(("a", "en", 1), slice_=SINGLE), side(("a", "en", 1), slice_=MULTI), "a: single − multi, en"),
        (side(("a", "en", 1)), side(("a", "ru", 1)), "a en − a ru"),
        (
            side(("a", "en", 1), ("b", "en", -1)),
            side(("a", "ru", 1), ("b", "ru", -1)),
            "(a en − b en) − (a ru − b ru)",
        ),
        (
            side(("a", "en", 1), ("b", "en", -1), slice_=SINGLE),
            side(("a", "en", 1), ("b", "en", -1), slice_=MULTI),
            "a − b: single − multi, en",
        ),
    ],
)
def test_a_contrast_is_said_once(first: Side, second: Side, label: str) -> None:
    assert contrast_label(Contrast(first=first, second=second)) == label


def test_they_are_written_beside_the_report_and_the_same_each_time(tmp_path: Path) -> None:
    read: list[dict[str, bytes]] = []
    for name in ("one", "two"):
        folder = a_run(dialogues=2).write(tmp_path / name)
        write_report(folder)
        read.append({path.name: path.read_bytes() for path in (folder / "tables").iterdir()})
    assert read[0] == read[1]
    assert sorted(read[0]) == sorted(f"{name}.{ending}" for name in made() for ending in FORMS)
