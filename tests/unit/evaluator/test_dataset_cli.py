from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner, Result

from memdock_evaluator.dataset import open_dataset
from memdock_evaluator.dataset.command import dataset
from memdock_evaluator.dataset.own import schema
from support.data_files import LOCOMO, ROW, changed, write


def run(*arguments: object) -> Result:
    return CliRunner().invoke(dataset, [str(argument) for argument in arguments])


def test_check_prints_sizes_slices_and_one_line_a_finding(tmp_path: Path) -> None:
    result = run("check", write(tmp_path, [changed(LOCOMO, "qa", 0, "evidence", ["D9:9"])]))

    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert any("sessions" in line and "2" in line for line in lines)
    assert any("adversarial" in line and "1" in line for line in lines)
    [unknown] = [line for line in lines if "evidence-unknown-turn" in line]
    assert unknown.endswith("(first: dialogue conv-1, question conv-1|q0, evidence[0])")
    [undated] = [line for line in lines if "question-undated" in line]
    assert undated.split()[:2] == ["2", "question-undated:"]


def test_check_as_json_is_the_report(tmp_path: Path) -> None:
    result = run("check", write(tmp_path, [ROW]), "--json", "--language", "uk")

    report = orjson.loads(result.output)
    assert (report["dialogues"], report["languages"]) == (1, {"uk": 1})
    assert report["slices"]["scope_temporality"] == {"single+atemporal": 1}


def test_a_broken_file_is_exit_code_1_and_one_sentence(tmp_path: Path) -> None:
    result = run("check", write(tmp_path, [ROW, changed(ROW, "answer", None)]))

    assert result.exit_code == 1
    assert result.output.startswith("Error: ")
    assert "data.jsonl, record 2, field answer[0]: " in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize("arguments", [["no.json"], ["{}", "--zone", "Mars"], ["{}", "--format", "csv"], ["{}", "--x"]])
def test_a_wrong_command_line_is_exit_code_2(tmp_path: Path, arguments: list[str]) -> None:
    path = str(write(tmp_path, [ROW]))

    result = run("check", *(argument.replace("{}", path) for argument in arguments))

    assert result.exit_code == 2


@pytest.mark.parametrize("shape", ["rows", "dialogues", "own"])
def test_export_writes_a_file_that_is_read_back(tmp_path: Path, shape: str) -> None:
    path, output = write(tmp_path, [ROW]), tmp_path / "out"

    result = run("export", path, output, "--shape", shape)

    assert result.exit_code == 0
    assert list(open_dataset(output)) == list(open_dataset(path))
    assert f"{output}: {output.stat().st_size:,} bytes" in result.output


def test_export_replaces_a_file_only_when_told(tmp_path: Path) -> None:
    letter = tmp_path / "letter.txt"
    letter.write_text("dear")

    refused = run("export", "own", letter, "--shape", "own")

    assert (refused.exit_code, letter.read_text()) == (1, "dear")
    assert f"{letter} is there already: give another OUTPUT, or --force" in refused.output
    assert run("export", "own", letter, "--shape", "own", "--force").exit_code == 0
    assert len(list(open_dataset(letter))) == 12


def test_export_of_other_tags_is_exit_code_1(tmp_path: Path) -> None:
    result = run("export", write(tmp_path, [LOCOMO]), tmp_path / "out", "--shape", "rows")

    assert result.exit_code == 1
    assert "export as own" in result.output


def test_schema_is_printed() -> None:
    assert orjson.loads(run("schema").output) == schema()


@pytest.mark.parametrize(("flags", "languages"), [([], {"ru": 6, "en": 6}), (["--language", "ru"], {"ru": 6})])
def test_the_bundled_data_is_checked_by_its_name(flags: list[str], languages: dict[str, int]) -> None:
    report = orjson.loads(run("check", "own", "--json", *flags).output)

    assert (report["path"], report["languages"]) == ("own", languages)


def test_the_bundled_data_is_exported_by_its_name(tmp_path: Path) -> None:
    assert run("export", "own", tmp_path / "out", "--shape", "own").exit_code == 0
    assert len(list(open_dataset(tmp_path / "out"))) == 12

    mixed = run("export", "own", tmp_path / "rows", "--shape", "rows")
    assert mixed.exit_code == 1
    assert "dialogue 0 is in en, the first one in ru; a file of RUMBA's shapes has one language" in mixed.output
    assert run("export", "own", tmp_path / "rows", "--shape", "rows", "--language", "en").exit_code == 0


def test_a_language_that_the_bundled_data_is_not_in(tmp_path: Path) -> None:
    result = run("check", "own", "--language", "de")

    assert result.exit_code == 1
    assert result.output == "Error: own: the bundled data is in ru and en, not in 'de'\n"


def test_one_dialogue_is_no_dialogues(tmp_path: Path) -> None:
    assert "1 dialogue (1 in ru)" in run("check", write(tmp_path, [ROW])).output
