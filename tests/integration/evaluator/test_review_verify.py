"""`memdock-eval verify`: what does not agree with what it was made from is named, wherever in the folder it is."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner, Result

from memdock_evaluator.cli import main
from support.evaluation import ran, served_url, settings, write_data
from support.toys import ToySystem


def invoke(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture
def run(tmp_path: Path) -> Path:
    data, out = write_data(tmp_path / "d.jsonl"), tmp_path / "run"
    assert invoke("run", "--data", data, "--out", out, "--baseline", "oracle").exit_code == 0
    return out


def changed(path: Path, change: Callable[[Any], object]) -> None:
    value = orjson.loads(path.read_bytes())
    change(value)
    path.write_bytes(orjson.dumps(value))


async def test_a_run_over_a_system_agrees_with_its_parts(tmp_path: Path) -> None:
    data, out = write_data(tmp_path / "d.jsonl"), tmp_path / "run"
    async with served_url(ToySystem(), tmp_path / "toy") as url:
        await ran(settings(data, out, url=url, systems=("toy",), repeats=2))
    assert invoke("report", out).exit_code == 0
    said = invoke("verify", out)
    assert said.exit_code == 0, said.output
    assert f"{out}: 14 parts, 16 rows and " in said.output


def test_a_figure_that_was_touched_is_named(run: Path) -> None:
    changed(
        run / "summary.json", lambda value: value["systems"]["baseline:oracle"]["languages"]["en"].update(n_scored=7)
    )
    said = invoke("verify", run)
    assert said.exit_code == 1
    assert "summary.json: systems.baseline:oracle.languages.en.n_scored is 7; made again, it is 8" in said.output


def test_a_comparison_that_was_touched_is_named(run: Path) -> None:
    changed(run / "statistics.json", lambda value: value["analysis"]["scores"][0].update(n=7))
    said = invoke("verify", run)
    assert said.exit_code == 1
    assert "statistics.json: analysis.scores[0].n is 7; made again, it is 8" in said.output
    (run / "statistics.json").write_bytes(b"{}")
    assert "statistics.json: it does not say what was compared" in invoke("verify", run).output
    assert invoke("report", run, "--family", "one=baseline:oracle").exit_code == 0
    assert invoke("verify", run).exit_code == 0


def test_a_row_that_was_touched_is_named(run: Path) -> None:
    lines = (run / "outcomes.jsonl").read_bytes().splitlines()
    lines[0] = lines[0].replace(b'"abstained":false', b'"abstained":true')
    (run / "outcomes.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    said = invoke("verify", run)
    assert said.exit_code == 1
    assert "outcomes.jsonl, line 1: abstained is true; made again, it is false" in said.output


def test_rows_that_are_missing_or_doubled_are_named(run: Path) -> None:
    path = run / "outcomes.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))
    assert "outcomes.jsonl has 7 rows, and manifest.json counts 8: the file is damaged" in invoke("verify", run).output
    path.write_bytes(b"".join([*lines[:2], *lines[1:]]))
    said = "outcomes.jsonl, line 3: the row (baseline:oracle, en, 0, q1, 0) stands there twice"
    assert said in invoke("verify", run).output


def test_counts_of_the_manifest_are_compared_with_the_rows(run: Path) -> None:
    changed(run / "manifest.json", lambda value: value["totals"]["baseline:oracle"]["coverage"].update(answered=9))
    assert "totals.baseline:oracle.coverage.answered is 9; made again, it is 8" in invoke("verify", run).output
    changed(run / "manifest.json", lambda value: value["totals"]["baseline:oracle"]["coverage"].update(answered=8))
    changed(run / "manifest.json", lambda value: value["plan"]["data"]["languages"]["en"].update(questions=9))
    assert "baseline:oracle in en has 8 rows; the manifest's plan makes 9" in invoke("verify", run).output


def test_a_damaged_part_is_named(run: Path) -> None:
    part = next(run.glob("parts/**/answer-001.jsonl"))
    part.write_bytes(part.read_bytes().replace(b"false", b"true ", 1))
    said = invoke("verify", run)
    assert said.exit_code == 1
    assert "answer-001.jsonl is damaged" in said.output


@pytest.mark.parametrize("stray", ["folder", "file", "link"])
def test_what_is_no_part_is_named(run: Path, stray: str) -> None:
    parts = next(run.glob("parts/**/answer-001.jsonl")).parent
    if stray == "folder":
        place = run / "parts" / "another"
        place.mkdir()
    elif stray == "file":
        place = parts / "notes.txt"
        place.write_text("mine")
    else:
        place = parts / "answer-002.jsonl"
        place.symlink_to("nowhere")
    said = invoke("verify", run)
    assert said.exit_code == 1
    end = "/" if stray == "folder" else ""
    assert f"{place.relative_to(run)}{end} is no part of this run" in said.output


@pytest.mark.parametrize("stage", ["answer", "judge", "retrieve"])
async def test_a_part_that_was_taken_away_is_told_by_its_stage(tmp_path: Path, stage: str) -> None:
    data, out = write_data(tmp_path / "d.jsonl", dialogues=("0",)), tmp_path / "run"
    async with served_url(ToySystem(), tmp_path / "toy") as url:
        await ran(settings(data, out, url=url, systems=("toy",), repeats=2))
    assert invoke("report", out).exit_code == 0
    assert invoke("verify", out).exit_code == 0
    next(out.glob(f"parts/**/{stage}-001.jsonl")).unlink()
    said = invoke("verify", out)
    assert said.exit_code == 1
    assert f"parts/toy/en/0: the {stage} parts do not hold what the row of toy, en, 0/q0, repeat 0" in said.output


def test_parts_that_changed_places_are_named(run: Path) -> None:
    one, other = sorted(run.glob("parts/**/answer-001.jsonl"))
    content = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(content)
    said = invoke("verify", run)
    assert said.exit_code == 1
    assert f"{one} was written as {other.relative_to(run)}: put it back" in said.output


def test_a_folder_without_a_run_or_summary_is_told(run: Path, tmp_path: Path) -> None:
    assert "manifest.json is not there: finish the run first" in invoke("verify", tmp_path).output
    (run / "summary.json").unlink()
    assert "summary.json is not there: memdock-eval report makes it" in invoke("verify", run).output
