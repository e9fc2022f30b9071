"""`memdock-eval show`: one question with all that is known of it, and a clear word where there is none."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from memdock_evaluator.cli import main
from support.evaluation import ran, served_url, settings, write_data
from support.toys import ToySystem


def invoke(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture
async def run(tmp_path: Path) -> Path:
    data, out = write_data(tmp_path / "d.jsonl"), tmp_path / "run"
    async with served_url(ToySystem(), tmp_path / "toy") as url:
        await ran(settings(data, out, url=url, systems=("toy",), baselines=("oracle",)))
    return out


async def test_everything_of_a_question_is_shown(run: Path) -> None:
    said = invoke("show", run, "1/q3")
    assert said.exit_code == 0, said.output
    for part in (
        "q3 of dialogue 1 (en)",
        "question   What colour is my bicycle",
        "date       Monday 2024-04-01T10:00:00+00:00",
        "reference  green",
        "evidence   s2-t0 [user; 2024-03-11T09:00:00+00:00] Yesterday I bought a green bicycle",
        "toy, repeat 0: answered",
        "baseline:oracle, repeat 0: answered",
        "from s2-t0+",
        "answer     Yesterday I bought a green bicycle",
        "recall by session 1",
        "tokens     context ",
        "times      answer ",
        "retrieve ",
    ):
        assert part in said.output, part
    one = invoke("show", run, "1/q3", "--system", "toy")
    assert "baseline:oracle" not in one.output


async def test_a_question_that_is_not_there_names_those_that_are_near(run: Path) -> None:
    said = invoke("show", run, "1/q33")
    assert said.exit_code == 1
    assert "there is no question 1/q33; near are 1/q3," in said.output
    several = invoke("show", run, "q3")
    assert several.exit_code == 1
    assert "q3 is a question of several dialogues: name 0/q3, 1/q3" in several.output
    absent = invoke("show", run, "1/q3", "--language", "ru")
    assert "has no such row of 1/q3: it has baseline:oracle in en, toy in en" in absent.output


def test_an_id_that_names_its_dialogue_is_found_in_every_form(tmp_path: Path) -> None:
    out = tmp_path / "own"
    made = invoke("run", "--data", "own", "--language", "en", "--dialogue", "0", "--baseline", "oracle", "--out", out)
    assert made.exit_code == 0, made.output
    shown = [invoke("show", out, name) for name in ("0/q3", "0|q3", "0/0|q3")]
    assert [said.exit_code for said in shown] == [0, 0, 0], shown[0].output
    assert {said.output for said in shown} == {shown[0].output}
    assert shown[0].output.startswith("0|q3 of dialogue 0 (en)")
    assert "there is no question 0/q333; near are 0/q3" in invoke("show", out, "0/q333").output


async def test_data_that_changed_or_went_away_is_told_in_place_of_the_texts(run: Path, tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_bytes(path.read_bytes() + b"\n")
    assert "evidence   s2-t0 (without texts: " in invoke("show", run, "1/q3").output
    assert "has changed since the run" in invoke("show", run, "1/q3").output
    path.unlink()
    said = invoke("show", run, "1/q3")
    assert said.exit_code == 0
    assert "evidence   s2-t0 (without texts: " in said.output
