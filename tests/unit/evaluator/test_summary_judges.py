"""How far the verdicts of a run can be trusted: agreement of judges, people's labels, an audit in the folder."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from memdock_evaluator.judging.agreement import Agreement
from memdock_evaluator.judging.audit import Audit, JudgeAudit, figures
from memdock_evaluator.judging.people import peoples_view
from memdock_evaluator.judging.probes import read_probes
from memdock_evaluator.judging.sheet import Sheet, items
from memdock_evaluator.results.manifest import Manifest
from memdock_evaluator.results.plan import JudgeFacts, ModelFacts
from memdock_evaluator.results.rows import FurtherVerdict, Row
from memdock_evaluator.summary import RunFilesError, summarise, write_summary
from memdock_evaluator.tables.judges import agreement_table, audit_table, corrected_table
from support.synthetic_rows import Run, a_manifest, a_row

JUDGE = ModelFacts(kind="openai", model="pollux-judge-7b")


def manifest() -> Manifest:
    return a_manifest(
        judges={
            "first": JudgeFacts(languages=("en",), primary_for=("en",), model=JUDGE),
            "second": JudgeFacts(languages=("en",), primary_for=(), model=JUDGE),
        }
    )


def rows() -> list[Row]:
    """Ten questions in two dialogues; the judges say 2 and 2 six times, 0 and 2 twice, 0 and 0, and 0 and nothing."""
    labels: list[tuple[int, int | None]] = [*[(2, 2)] * 6, (0, 2), (0, 2), (0, 0), (0, None)]
    return [
        replace(
            a_row(dialogue_id=str(n % 2), question_id=f"q{n}", verdict=first, correct=first == 2),
            verdicts={"second": FurtherVerdict(label=second)},
        )
        for n, (first, second) in enumerate(labels)
    ]


def test_judges_agree_by_alpha_and_kappa_over_what_both_labelled() -> None:
    found = summarise(rows(), [], manifest())["judges"]["agreement"]["en"]
    assert found["n"] == 9
    (pair,) = found["pairs"]
    assert (pair["first"], pair["second"], pair["both"], pair["same"]) == ("first", "second", 9, 7)
    # Both right 6, first wrong and second right 2, both wrong 1: (7/9 - (6/9 8/9 + 3/9 1/9)) / (1 - ...) = 0.4.
    assert pair["kappa"] == pytest.approx(0.4)
    # Two values, 14 and 4 of 18: 1 - 17 x 2 / (14 x 4) = 0.392857 (two units of disagreement, each counted twice).
    assert found["alpha"] == pytest.approx(1 - 17 * 4 / (2 * 14 * 4), abs=1e-6)


def test_one_judge_agrees_with_nobody() -> None:
    found = summarise([a_row()], [], a_manifest())["judges"]
    assert found == {"agreement": {}, "people": None, "audits": {}}


def folder_with_labels(path: Path) -> Path:
    mine = rows()
    of_run = items(mine, manifest().run_id)
    labels = {name: (2 if row.question_id == "q9" else row.verdict or 0) for name, row in of_run.items()}
    sheets = [Sheet(rater="anna", labels=labels, rows=10), Sheet(rater="boris", labels=labels, rows=10)]
    folder = Run(rows=tuple(sorted(mine, key=lambda row: row.key)), timings=(), manifest=manifest()).write(path)
    (folder / "labels.json").write_bytes(peoples_view(manifest().run_id, of_run, sheets).to_json())
    return folder


def test_peoples_labels_correct_accuracy(tmp_path: Path) -> None:
    summary = write_summary(folder_with_labels(tmp_path))
    people = summary["judges"]["people"]
    assert people
    each = people["corrected"]["rag-dense"]["en"]
    assert (each["judged"], each["accuracy"], each["labelled"]) == (0.6, 0.7, 10)
    assert (each["too_kind"], each["too_strict"]) == (0, 1)
    assert each["low"] is not None
    assert each["low"] < 0.7
    assert people["agreement"]["pairs"][0]["kappa"] == 1
    (row,) = corrected_table(summary).rows
    assert row[:4] == ("rag-dense", "en", 60.0, 70.0)
    between = [row[0] for row in agreement_table(summary).rows]
    assert between == ["judges", "people", "judge and people"]


def an_audit() -> Audit:
    probes = [probe for probe in read_probes() if probe.item.language == "en"]
    found = figures(probes, [2 for _ in probes])
    judge = JudgeAudit(model=JUDGE, failed="", figures=found, languages={"en": found})
    return Audit(judges={"first": judge}, agreement=Agreement(alpha=None, pairs=()), surprises=())


def test_an_audit_in_the_folder_stands_in_the_summary(tmp_path: Path) -> None:
    folder = folder_with_labels(tmp_path)
    (folder / "audit.json").write_text(json.dumps(asdict(an_audit())))
    summary = write_summary(folder)
    found = summary["judges"]["audits"]["first"]["en"]
    assert found["probes"] == 56
    assert found["same_side"] + found["too_kind"] == 56
    assert found["too_strict"] == 0
    (row,) = audit_table(summary).rows
    assert row[:3] == ("first", "en", 56)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("audit.json", "{}", "audit.json cannot be read: delete it, or write it again"),
        ("labels.json", "[]", "labels.json cannot be read: delete it, and import the sheets again"),
    ],
)
def test_a_file_that_is_something_else_is_named(tmp_path: Path, name: str, content: str, said: str) -> None:
    folder = folder_with_labels(tmp_path)
    (folder / name).write_text(content)
    with pytest.raises(RunFilesError, match=said):
        write_summary(folder)
