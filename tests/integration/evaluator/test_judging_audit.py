"""The audit of judges as a user runs it, against scripted judges whose errors are known."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from click.testing import CliRunner, Result

from memdock_evaluator.answer import models
from memdock_evaluator.cli import main
from memdock_evaluator.judging.audit import figures
from memdock_evaluator.judging.probes import LABEL_OF, ProbesError, read_probes
from support.evaluation import write_data
from support.model_server import ModelServer
from support.model_thread import models_in_thread

PROBES = read_probes()
TRUTH = {(probe.item.question, probe.item.answer): probe.label for probe in PROBES}


def invoke(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def truth(body: dict[str, Any]) -> int:
    """What the answer in a prompt must get, in either form and language."""
    prompt = body["messages"][0]["content"]

    def behind(*marks: str) -> str:
        return str(next(prompt.split(mark)[1].split("\n\n")[0] for mark in marks if mark in prompt))

    question = behind("\nQuestion: ", "\nВопрос: ", "### Задание для оценки:\n")
    return TRUTH[question, behind("Answer to be judged: ", "Оцениваемый ответ: ", "### Ответ для оценки:\n")]


def by_model(**labels: Callable[[int], int]) -> Callable[[dict[str, Any]], str]:
    """Each model makes its own of the true label, and writes it in the form that it was asked in."""

    def reply(body: dict[str, Any]) -> str:
        label = labels[body["model"]](truth(body))
        pollux = "### Критерий оценки:" in body["messages"][0]["content"]
        return f"[RESULT] {label} [END]" if pollux else json.dumps({"verdict": label})

    return reply


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    monkeypatch.setattr(models, "_FIRST_WAIT_S", 0.001)
    with models_in_thread(ModelServer()) as running:
        yield running


def judges_file(folder: Path, server: ModelServer, *lines: str) -> Path:
    path = folder / "judges.yaml"
    path.write_text("\n".join(f"- {{url: '{server.url}', {line}}}" for line in lines))
    return path


def test_the_probes_are_eight_of_each_kind_and_language_and_no_two_say_the_same() -> None:
    for kind in LABEL_OF:
        for language in ("en", "ru"):
            mine = [probe for probe in PROBES if (probe.kind, probe.item.language) == (kind, language)]
            assert len(mine) >= 8, (kind, language)
    questions = {(probe.item.language, probe.item.question) for probe in PROBES}
    assert len(questions) == 2 * len({probe.topic for probe in PROBES}) * 2, "a question with and one without an answer"


def test_a_file_of_probes_names_what_is_wrong_with_it(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("- {id: a, language: en}")
    with pytest.raises(ProbesError, match="topic 1, question: Field required"):
        read_probes(path)
    assert invoke("judge", "audit", "--probes", path).exit_code == 2


def test_figures_count_by_label_side_and_kind() -> None:
    given = [None if probe.kind == "made_up" else 3 for probe in PROBES]
    found = figures(PROBES, given)
    assert found.confusion == ((0, 0, 0, 32, 16), (0, 0, 0, 16, 0), (0, 0, 0, 32, 0), (0, 0, 0, 16, 0))
    assert found.binary == ((0, 48, 16), (0, 48, 0))
    assert (found.too_kind, found.too_strict, found.unscored, found.same_label, found.same_side) == (48, 0, 16, 16, 48)
    errors = found.kinds["long_winded"]
    assert (errors.probes, errors.mislabelled, errors.misjudged) == (16, 16, 0)
    assert (found.kinds["made_up"].mislabelled, found.kinds["made_up"].misjudged) == (0, 0)


def test_a_kind_and_a_strict_judge_are_told_apart(tmp_path: Path, server: ModelServer) -> None:
    server.chat = by_model(
        kind=lambda label: 2 if label == 1 else label, strict=lambda label: 1 if label == 3 else label
    )
    file = judges_file(
        tmp_path, server, "name: strict, model: strict, languages: [ru], form: pollux", "name: kind, model: kind"
    )
    result = invoke("judge", "audit", "--judges", file, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    kind, strict = found["judges"]["kind"]["figures"], found["judges"]["strict"]["figures"]
    assert (kind["probes"], kind["too_kind"], kind["too_strict"]) == (112, 16, 0)
    assert (strict["probes"], strict["too_kind"], strict["too_strict"]) == (56, 0, 8)
    assert strict["kinds"]["extra_detail"] == {"probes": 8, "mislabelled": 8, "misjudged": 8}
    assert found["judges"]["kind"]["languages"]["ru"]["too_kind"] == 8
    (pair,) = found["agreement"]["pairs"]
    assert (pair["both"], pair["same"]) == (56, 40)
    # 16 disagree of 56; the strict judge calls 16 right, the kind one 32: chance is (16*32 + 40*24) / 56**2.
    chance = (16 * 32 + 40 * 24) / 56**2
    assert pair["kappa"] == pytest.approx((40 / 56 - chance) / (1 - chance), abs=1e-6)
    assert {each["kind"] for each in found["surprises"]} == {"partial_list", "extra_detail"}
    shown = invoke("judge", "audit", "--judges", file).stdout
    assert "96 of 112 probes on the right side (96 with the very label); too strict 0, too kind 16, unscored 0" in shown
    assert "strict and kind: kappa of right and wrong" in shown


def test_a_judge_below_the_bar_ends_with_3_and_a_perfect_one_with_0(server: ModelServer) -> None:
    words = ("judge", "audit", "--judge-url", server.url, "--judge-model", "m", "--at-least", 99, "--language", "en")
    server.chat = by_model(m=lambda label: label)
    assert invoke(*words).exit_code == 0
    server.chat = by_model(m=lambda label: 2)
    below = invoke(*words)
    assert (below.exit_code, "m is right 42.9 % of the time, less than 99 %" in below.output) == (3, True)


def test_a_judge_that_cannot_be_asked_ends_with_1_and_the_others_are_told_all_the_same(
    tmp_path: Path, server: ModelServer
) -> None:
    server.chat = by_model(good=lambda label: label)
    with models_in_thread(ModelServer(faults=[web.Response(status=401)] * 200)) as other:
        file = judges_file(tmp_path, server, "name: good, model: good", f"name: bad, model: bad, url: '{other.url}'")
        file.write_text(file.read_text().replace(f"{{url: '{server.url}', name: bad", "{name: bad"))
        result = invoke("judge", "audit", "--judges", file)
    assert result.exit_code == 1
    assert "bad: the judge model bad at" in result.output
    assert "112 of 112 probes on the right side" in result.output


def test_without_a_model_the_offline_rule_is_audited_and_named() -> None:
    result = invoke("judge", "audit")
    assert result.exit_code == 0, result.output
    assert "offline-overlap" in result.output


def test_the_agreement_of_a_runs_judges_is_computed_from_its_rows(tmp_path: Path, server: ModelServer) -> None:
    replies = {"first": '{"verdict": 2}', "second": '{"verdict": 2}', "third": '{"verdict": 1}'}
    server.chat = lambda body: replies[body["model"]]
    file = judges_file(tmp_path, server, *(f"name: {name}, model: {name}" for name in replies))
    data, out = write_data(tmp_path / "d.jsonl", dialogues=("0",)), tmp_path / "run"
    done = invoke("run", "--data", data, "--out", out, "--baseline", "oracle", "--judges", file)
    assert done.exit_code == 0, done.output
    result = invoke("judge", "agreement", out, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)["en"]
    assert [(pair["first"], pair["second"], pair["same"]) for pair in found["pairs"]] == [
        ("first", "second", 4),
        ("first", "third", 0),
        ("second", "third", 0),
    ]
    # Of each of 4 things one pair of three agrees; coincidences: 8 twos and 4 ones in 12 labels.
    assert found["alpha"] == pytest.approx(1 - 11 * 8 / (144 - 64 - 16), abs=1e-6)
    assert "first and third: kappa of right and wrong 0.000" in invoke("judge", "agreement", out).stdout


@pytest.mark.parametrize("command", [("judge", "audit"), ("run", "--data", "own", "--out", "none")])
def test_one_judge_and_a_file_of_them_exclude_each_other(
    tmp_path: Path, server: ModelServer, command: tuple[str, ...]
) -> None:
    file = judges_file(tmp_path, server, "name: a, model: a")
    result = invoke(*command, "--judges", file, "--judge-model", "m")
    assert (result.exit_code, "give --judges, or --judge-url and --judge-model" in result.output) == (2, True)


def test_a_run_of_one_judge_has_no_agreement(tmp_path: Path) -> None:
    data, out = write_data(tmp_path / "d.jsonl", dialogues=("0",)), tmp_path / "run"
    assert invoke("run", "--data", data, "--out", out, "--baseline", "oracle").exit_code == 0
    result = invoke("judge", "agreement", out)
    assert (result.exit_code, "was judged by one judge alone" in result.output) == (1, True)
