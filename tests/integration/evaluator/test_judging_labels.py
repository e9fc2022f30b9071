"""People's labels: drawn blind, written for a spreadsheet program, read back row by row, and what comes of them."""

import csv
import io
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from memdock_evaluator.cli import main
from memdock_evaluator.judging.sheet import items, sample, written
from memdock_evaluator.results.rows import Outcome, Row
from support.synthetic_rows import a_manifest, a_row, a_run

SYSTEMS = ("rag-dense", "rag-hybrid")


def invoke(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def some_rows(right: Callable[[int], bool] = lambda n: n % 2 == 0, **changes: object) -> list[Row]:
    """Ten dialogues of ten questions by two systems; the judge says `right` of the question's number."""
    return [
        replace(
            a_row(system=system, dialogue_id=str(dialogue), question_id=f"q{n}"),
            verdict=2 if right(n) else 0,
            correct=right(n),
            **changes,  # type: ignore[arg-type]
        )
        for system in SYSTEMS
        for dialogue in range(10)
        for n in range(10)
    ]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return replace(a_run(), rows=tuple(some_rows()), manifest=a_manifest()).write(tmp_path / "run")


def cells(path: Path, delimiter: str = ",") -> list[list[str]]:
    return list(csv.reader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline=""), delimiter=delimiter))


def fill(
    sheet: Path, out: Path, label: Callable[[str], str], *, delimiter: str = ",", encoding: str = "utf-8-sig"
) -> Path:
    """What a person makes of the sheet: `label` of an item's name."""
    header, *lines = cells(sheet)
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter, quoting=csv.QUOTE_ALL)
    writer.writerow(header)
    for line in lines:
        line[header.index("label")] = label(line[header.index("item")])
        writer.writerow(line)
    out.write_bytes(text.getvalue().encode(encoding))
    return out


def export(run: Path, out: Path, *words: object) -> Path:
    result = invoke("label", "export", run, "--out", out, *words)
    assert result.exit_code == 0, result.output
    return out


def of_run(run: Path) -> dict[str, Row]:
    rows = [Row.from_json(line) for line in (run / "outcomes.jsonl").read_bytes().splitlines()]
    return items(rows, a_manifest().run_id)


def test_a_sheet_is_blind_and_holds_n_of_each_system(run: Path, tmp_path: Path) -> None:
    sheet = export(run, tmp_path / "labels.csv", "--n", 20, "--seed", 3)
    content = sheet.read_bytes()
    assert content.startswith(b"\xef\xbb\xbf")
    header, *lines = cells(sheet)
    assert header == ["item", "language", "question", "reference", "answer", "label", "note"]
    assert Counter(of_run(run)[line[0]].system for line in lines) == dict.fromkeys(SYSTEMS, 20)
    for told in (*SYSTEMS, "pollux-judge-7b", "gpt-4.1-mini", "verdict", "correct"):
        assert told.encode() not in content
    assert all(line[0][0] == "q" and line[5] == "" for line in lines)
    order = [of_run(run)[line[0]].system for line in lines]
    assert order not in (sorted(order), sorted(order, reverse=True))


def test_a_sample_is_the_same_for_its_seed_and_each_system_is_drawn_by_itself(run: Path) -> None:
    every = of_run(run)
    assert sample(every, n=20, seed=3) == sample(dict(reversed(every.items())), n=20, seed=3)
    assert sample(every, n=20, seed=3) != sample(every, n=20, seed=4)
    lone = {name: row for name, row in every.items() if row.system == "rag-dense"}
    assert set(sample(lone, n=20, seed=3)) <= set(sample(every, n=20, seed=3))
    assert len(sample(every, n=1000, seed=3)) == 200


def test_every_item_is_drawn_equally_often(run: Path) -> None:
    every = of_run(run)
    drawn = Counter(name for seed in range(300) for name in sample(every, n=25, seed=seed))
    assert len(drawn) == 200
    # 75 on average of 300 draws at one in four; five standard deviations are 37.5.
    assert max(abs(count - 75) for count in drawn.values()) < 38


def test_what_has_no_answer_or_no_verdict_is_not_drawn() -> None:
    rows = [
        a_row(question_id="q0"),
        a_row(question_id="q1", verdict=None, correct=None),
        a_row(question_id="q2", outcome=Outcome.SYSTEM_ERROR, answer=None, verdict=None, correct=False),
    ]
    assert [row.question_id for row in items(rows, "x").values()] == ["q0"]


@pytest.mark.parametrize("text", ["=1+1", "+7 912", "-5", "@SUM(A1)", "\t=1", "\r=1", "\n=1"])
def test_no_cell_begins_like_a_formula(text: str) -> None:
    every = items([a_row(question=text, references=(text,), answer=text)], "x")
    content = written(every, list(every), delimiter=",").decode("utf-8-sig")
    (_, line) = csv.reader(io.StringIO(content, newline=""))
    assert line[2:5] == ["'" + text] * 3


def test_a_sheet_that_may_hold_labels_is_not_written_over(run: Path, tmp_path: Path) -> None:
    export(run, tmp_path / "labels.csv")
    again = invoke("label", "export", run, "--out", tmp_path / "labels.csv")
    assert (again.exit_code, "is there already and may hold labels" in again.output) == (1, True)


def test_a_kind_judge_is_corrected_from_the_labels_alone(run: Path, tmp_path: Path) -> None:
    sheet, every = export(run, tmp_path / "labels.csv", "--n", 100), of_run(run)

    def people_say(name: str) -> str:
        """The judge calls the even questions right, half of all; people not 8, nor 6 in half of the dialogues."""
        row = every[name]
        kind = row.question_id == "q8" or (row.question_id == "q6" and int(row.dialogue_id) < 5)
        return "2" if row.correct and not kind else "0"

    people = fill(sheet, tmp_path / "anna.csv", people_say)
    result = invoke("label", "import", run, people)
    assert result.exit_code == 0, result.output
    found = json.loads((run / "labels.json").read_bytes())
    for system in SYSTEMS:
        corrected = found["corrected"][system]["en"]
        assert (corrected["judged"], corrected["bias"], corrected["accuracy"]) == (0.5, 0.15, 0.35)
        assert 0 < corrected["low"] < 0.35 < corrected["high"] < 0.5
        assert (corrected["labelled"], corrected["too_kind"], corrected["too_strict"]) == (100, 15, 0)
    assert found["judge_kappa"] == pytest.approx(0.7)
    assert len(found["items"]) == 200
    assert "35.0%" in result.output


def test_several_people_agree_so_far_and_the_most_of_them_decide(run: Path, tmp_path: Path) -> None:
    sheet, every = export(run, tmp_path / "labels.csv", "--n", 100), of_run(run)
    truth = {name: "2" if row.correct else "0" for name, row in every.items()}
    other = {"2": "1", "0": "3"}
    anna = fill(sheet, tmp_path / "anna.csv", lambda name: truth[name], delimiter=";")
    boris = fill(sheet, tmp_path / "boris.csv", lambda name: truth[name], delimiter="\t", encoding="utf-16")
    vera = fill(sheet, tmp_path / "vera.csv", lambda name: other[truth[name]])
    result = invoke("label", "import", run, anna, boris, vera)
    assert result.exit_code == 0, result.output
    found = json.loads((run / "labels.json").read_bytes())
    assert found["raters"] == ["anna", "boris", "vera"]
    kappas = {(pair["first"], pair["second"]): pair["kappa"] for pair in found["agreement"]["pairs"]}
    assert kappas == {("anna", "boris"): 1.0, ("anna", "vera"): -1.0, ("boris", "vera"): -1.0}
    assert found["corrected"]["rag-dense"]["en"]["bias"] == 0.0
    assert not any(item["tied"] for item in found["items"])
    # Of two who disagree the first sheet decides.
    assert invoke("label", "import", run, vera, anna).exit_code == 0
    found = json.loads((run / "labels.json").read_bytes())
    assert found["corrected"]["rag-dense"]["en"]["bias"] == 0.0, "half too kind, half too strict"
    assert found["corrected"]["rag-dense"]["en"]["too_kind"] == 50
    assert all(item["tied"] for item in found["items"])


def test_an_item_without_a_label_is_counted_and_left_out(run: Path, tmp_path: Path) -> None:
    sheet = export(run, tmp_path / "labels.csv", "--n", 10)
    first = cells(sheet)[1][0]
    people = fill(sheet, tmp_path / "anna.csv", lambda name: "" if name == first else " 2.0 ")
    result = invoke("label", "import", run, people)
    assert result.exit_code == 0, result.output
    assert "anna left 1 item empty" in result.output
    assert len(json.loads((run / "labels.json").read_bytes())["items"]) == 19


def test_every_wrong_row_is_named_with_its_column_and_nothing_is_written(run: Path, tmp_path: Path) -> None:
    sheet = export(run, tmp_path / "labels.csv", "--n", 10)
    names = [line[0] for line in cells(sheet)[1:]]
    labels = {names[0]: "5", names[1]: "right", names[2]: "2"}
    people = fill(sheet, tmp_path / "anna.csv", lambda name: labels.get(name, ""))
    with people.open("a") as file:
        file.write(f'"{names[2]}","en","","","","1",""\n,,,,,,\n"q0000","en","","","","1",""\n')
    result = invoke("label", "import", run, people)
    assert result.exit_code == 1
    assert f"{people}, row 2, column label: '5' is none of 0, 1, 2, 3" in result.output
    assert "row 3, column label: 'right' is none of 0, 1, 2, 3" in result.output
    assert f"row 22, column item: '{names[2]}' stands in row 4 already" in result.output
    assert "row 24, column item: 'q0000' is no item of this run, or was answered anew" in result.output
    assert not (run / "labels.json").exists()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"item,question\nq,x\n", "row 1: there is no column label: it has item, question"),
        (b"hello", "row 1: there are no columns: save the sheet as CSV"),
        (b"", "row 1: there are no columns"),
        ("item,label\n\u0432".encode("cp1251"), "is not UTF-8: save it as CSV in UTF-8"),
        (b'item,label\n"q', "is no CSV"),
        (b"item,label\n", "no item has a label"),
    ],
)
def test_a_file_that_is_no_sheet_is_told(run: Path, tmp_path: Path, content: bytes, sentence: str) -> None:
    path = tmp_path / "anna.csv"
    path.write_bytes(content)
    result = invoke("label", "import", run, path)
    assert (result.exit_code, sentence in result.output) == (1, True), result.output


def test_answers_that_are_given_anew_are_not_those_that_were_labelled(run: Path, tmp_path: Path) -> None:
    sheet = export(run, tmp_path / "labels.csv", "--n", 5)
    people = fill(sheet, tmp_path / "anna.csv", lambda name: "2")
    replace(a_run(), rows=tuple(some_rows(answer="In Perm")), manifest=a_manifest()).write(run)
    result = invoke("label", "import", run, people)
    assert (result.exit_code, "answered anew since the export" in result.output) == (1, True)


def test_two_sheets_of_one_name_and_a_folder_without_a_run_are_refused(run: Path, tmp_path: Path) -> None:
    assert invoke("label", "import", run, "a/anna.csv", "b/anna.csv").exit_code == 2
    assert invoke("label", "import", tmp_path / "none", "anna.csv").exit_code == 1
    assert "cannot be read" in invoke("label", "import", run, tmp_path / "anna.csv").output


def test_a_wrong_answer_that_people_call_right_counts_as_misjudged_in_the_summary(run: Path, tmp_path: Path) -> None:
    sheet, every = export(run, tmp_path / "labels.csv", "--n", 100), of_run(run)
    people = fill(sheet, tmp_path / "anna.csv", lambda name: "3" if every[name].question_id in ("q0", "q1") else "0")
    assert invoke("label", "import", run, people).exit_code == 0
    found = json.loads((run / "summary.json").read_bytes())["systems"]["rag-dense"]["languages"]["en"]
    assert found["failures"]["where"]["misjudged"] == 10
    assert found["judge_accuracy"] == 0.5, "the judge's accuracy stays as it is"
    assert (run / "report.html").exists()
    before = (run / "summary.json").read_bytes()
    assert invoke("report", run).exit_code == 0
    assert (run / "summary.json").read_bytes() == before


LABELS_FILE = (
    b'{"schema_version": %s, "run_id": "other", "raters": [], "unlabelled": {}, "judge_kappa": null,'
    b' "agreement": {"alpha": null, "pairs": []}, "corrected": {}, "items": []}'
)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (LABELS_FILE % b"1", "labels.json is of another run: delete it"),
        (LABELS_FILE % b"2", "labels.json was made by another version: delete it"),
        (b'{"schema_version": 1, "run_id": "x"}', "labels.json cannot be read: delete it"),
        (b"{", "labels.json cannot be read: delete it"),
    ],
)
def test_labels_that_are_not_this_runs_are_refused(run: Path, content: bytes, sentence: str) -> None:
    (run / "labels.json").write_bytes(content)
    result = invoke("report", run)
    assert (result.exit_code, sentence in result.output) == (1, True), result.output
