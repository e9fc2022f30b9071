"""The profile `paper`: what it asks for, what it sets, and what it says of a run that is not like the paper's."""

from asyncio import to_thread
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from memdock.types import Model
from memdock_evaluator.answer.prompts import bundled, bundled_for_all
from memdock_evaluator.cli import main
from memdock_evaluator.results.manifest import Manifest
from memdock_evaluator.results.plan import DataCounts, JudgeFacts, ModelFacts, SystemFacts
from memdock_evaluator.run.paper_profile import differences_from_paper
from support.evaluation import served_url, write_data
from support.model_server import ModelServer
from support.model_thread import models_in_thread
from support.synthetic_rows import a_manifest, a_system
from support.toys import ToySystem


def reply(body: dict[str, object]) -> str:
    return {"gpt-4.1-mini": "Bublik", "pollux-judge-7b": "[RESULT] 2 [END]", "deepseek-r1": '{"verdict": 2}'}[
        str(body["model"])
    ]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with models_in_thread(ModelServer(chat=reply)) as running:
        yield running


@pytest.fixture
def files(tmp_path: Path, server: ModelServer) -> Path:
    """A folder as a user's copy of the paper's prompts, and the judges that use it."""
    folder = tmp_path / "paper"
    folder.mkdir()
    for language in ("en", "ru"):
        folder.joinpath(f"answer.{language}.txt").write_text(bundled("answer", language, "txt").text + "\n")
        folder.joinpath(f"rubric.{language}.yaml").write_text(bundled("rubric", language, "yaml").text)
    folder.joinpath("judge.txt").write_text(bundled("judge", "en", "txt").text)
    folder.joinpath("pollux.txt").write_text(bundled_for_all("judge.pollux.txt").text)
    folder.joinpath("judges.yaml").write_text(
        f"- {{name: pollux, languages: [ru], url: '{server.url}', model: pollux-judge-7b, form: pollux,"
        " prompt: pollux.txt, rubric: 'rubric.{lang}.yaml'}\n"
        f"- {{name: r1, languages: [en], url: '{server.url}', model: deepseek-r1, prompt: judge.txt,"
        " rubric: 'rubric.{lang}.yaml'}\n"
    )
    return folder


def run(folder: Path, *words: object) -> Result:
    data = write_data(folder / "d.jsonl", languages=("en", "ru"))
    shared = ("run", "--profile", "paper", "--data", data, "--out", folder / "run")
    return CliRunner().invoke(main, [str(word) for word in (*shared, *words)])


def answerer(server: ModelServer, files: Path) -> tuple[object, ...]:
    prompt = files / "answer.{lang}.txt"
    return "--answer-url", server.url, "--answer-model", "gpt-4.1-mini", "--answer-prompt", prompt


def test_what_is_missing_is_asked_for_by_its_option(tmp_path: Path, server: ModelServer, files: Path) -> None:
    model = ("--answer-url", server.url, "--answer-model", "m")
    judge = ("--judge-url", server.url, "--judge-model", "m")
    lacking = tmp_path / "judges.yaml"
    lacking.write_text(f"- {{name: r1, url: '{server.url}', model: m, prompt: p.txt}}")
    for words, wanted in [
        ((), "give --answer-url and --answer-model"),
        (model, "give --answer-prompt"),
        (answerer(server, files), "give --judges"),
        ((*answerer(server, files), *judge), "give --judge-prompt"),
        ((*answerer(server, files), *judge, "--judge-prompt", "p.txt"), "give --rubric"),
        ((*answerer(server, files), "--judges", lacking), "give rubric of r1 in --judges"),
        ((*answerer(server, files), "--judges", files / "judges.yaml"), "a --system needs the address of the gateway"),
    ]:
        result = run(tmp_path, *words)
        assert (result.exit_code, wanted in result.output) == (2, True), (wanted, result.output)


async def test_what_differs_stands_in_the_manifest_and_is_printed(
    tmp_path: Path, server: ModelServer, files: Path
) -> None:
    async with served_url(ToySystem(), tmp_path / "toy") as url:
        words = ("--system", "toy", "--url", url, "--k", 3, *answerer(server, files), "--judges", files / "judges.yaml")
        result = await to_thread(run, tmp_path, *words)
    assert result.exit_code == 0, result.output
    plan = Manifest.from_json((tmp_path / "run" / "manifest.json").read_bytes(), place="x").plan
    assert plan.profile == "paper"
    differs = {each.field: (each.paper, each.run) for each in plan.differs}
    assert differs["k"] == ("10", "3")
    assert differs["systems.toy"] == ("rag-dense", "toy")
    assert differs["data.languages.ru.questions"] == ("1543", "8")
    assert not [field for field in differs if field.startswith(("judge", "answerer", "ingest", "reference"))]
    assert plan.judges["pollux"].primary_for == ("ru",)
    assert plan.answerer.prompts["ru"].file.endswith("answer.ru.txt")
    assert "not as in the paper: data.languages.en.dialogues" in result.output
    prompts = [body["messages"][0]["content"] for _, body in server.requests if body["model"] == "pollux-judge-7b"]
    assert prompts, "POLLUX judged"
    assert all(prompt.startswith("### Задание для оценки:") for prompt in prompts)


def test_a_run_like_the_papers_differs_in_nothing_and_every_field_is_seen() -> None:
    judges = {
        "p": JudgeFacts(
            languages=("ru",), primary_for=("ru",), model=ModelFacts(kind="openai", model="x/POLLUX-7b", form="pollux")
        ),
        "r": JudgeFacts(
            languages=("en",), primary_for=("en",), model=ModelFacts(kind="openai", model="DeepSeek-R1", form="json")
        ),
    }
    plan = a_manifest(judges=judges).plan
    embedders = (Model(purpose="embedding", name="ai-forever/FRIDA and Qwen/Qwen3-Embedding-0.6B"),)
    like = replace(
        plan,
        systems=(a_system("rag-dense", models=embedders), SystemFacts(name="baseline:oracle", baseline=True)),
        data=replace(plan.data, languages=dict.fromkeys(("en", "ru"), DataCounts(dialogues=85, questions=1543))),
    )
    assert differences_from_paper(like) == ()
    for change, field in [
        ({"systems": (a_system("rag-dense", k=5),)}, "k"),
        ({"systems": (a_system("rag-dense", ingest_unit="session"),)}, "ingest_unit"),
        ({"repeats": 3}, "repeats"),
        ({"reference_time": True}, "reference_time"),
        ({"as_of": True}, "as_of"),
        ({"answerer": replace(plan.answerer, model="gpt-4.1")}, "answerer.model"),
        ({"judges": {**judges, "p": replace(judges["r"], primary_for=("ru",))}}, "judge.ru.model"),
    ]:
        assert field in [each.field for each in differences_from_paper(replace(like, **change))]  # type: ignore[arg-type]
    assert [each.field for each in differences_from_paper(replace(like, systems=plan.systems))] == [
        "systems.rag-dense.embedder.en",
        "systems.rag-dense.embedder.ru",
        "systems.rag-hybrid",
        "systems.rag-hybrid.embedder.en",
        "systems.rag-hybrid.embedder.ru",
    ]
