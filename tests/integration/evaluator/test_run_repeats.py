"""A run that stores, answers and judges several times, and what its statistics make of that."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from memdock_evaluator.answer.endpoint import ModelEndpoint, ModelSettings
from memdock_evaluator.results.folder import Folder
from memdock_evaluator.results.manifest import ManifestError
from memdock_evaluator.review.verify import verify
from memdock_evaluator.run.settings import Reuse, RunSettings
from support.evaluation import QUESTIONS, ran, rows, served_url, settings, write_data
from support.model_server import ModelServer, serve_models
from support.toys import ToySystem


def model(server: ModelServer, purpose: str) -> ModelSettings:
    return ModelSettings(endpoint=ModelEndpoint(purpose=purpose, url=server.url, model=purpose, tries=1))


def by_seed(body: dict[str, Any]) -> str:
    """An answer that names its seed, and a judge that is kind to every other seed of its own."""
    if body["model"] == "answer":
        return f"answer {body['seed']}"
    return orjson.dumps({"verdict": 2 * (body["seed"] // 3 % 2)}).decode()


def statistics(out: Path) -> Any:
    from memdock_evaluator.report.writing import write_report

    write_report(out)
    return orjson.loads((out / "statistics.json").read_bytes())


async def test_ingests_answers_and_verdicts_are_repeated_each_by_its_own_number(tmp_path: Path) -> None:
    data, out, toy = write_data(tmp_path / "d.jsonl"), tmp_path / "run", ToySystem()
    async with serve_models(ModelServer(chat=by_seed)) as server, served_url(toy, tmp_path / "toy") as url:
        end, said = await ran(
            settings(
                data,
                out,
                url=url,
                systems=("toy",),
                baselines=("closed-book",),
                ingest_repeats=2,
                repeats=3,
                judge_repeats=2,
                answerer=model(server, "answer"),
                judge=model(server, "judge"),
            )
        )
    assert end.complete, said
    found = [row for row in rows(out) if row.system == "toy"]
    assert [row.key for row in rows(out)] == sorted(row.key for row in rows(out))
    assert len(found) == 2 * len(QUESTIONS) * 12
    assert len({space for kind, space, _ in toy.log if kind == "add"}) == 4, "a space a dialogue and ingest"
    assert not any(toy.kept.values())
    of_question = [row for row in found if (row.dialogue_id, row.question_id) == ("0", "q0")]
    assert [(row.repeat, row.ingest, row.answer, row.judging) for row in of_question] == [
        (repeat, repeat // 6, f"answer {repeat // 2}", repeat % 2) for repeat in range(12)
    ]
    assert [row.answer_input_tokens > 0 for row in of_question] == [True, False] * 6, "an answer is paid for once"
    baseline = [row for row in rows(out) if row.system == "baseline:closed-book"]
    assert len(baseline) == 2 * len(QUESTIONS) * 6, "nothing is stored for it, so nothing is stored anew"
    asked = [body["model"] for _, body in server.requests]
    assert (asked.count("answer"), asked.count("judge")) == (len(found) // 2 + len(baseline) // 2, len(rows(out)))
    ingest = end.manifest.totals["toy"].ingest
    assert (ingest.turns_read, ingest.turns_listed) == (32, 32)
    repeats = statistics(out)["repeats"]
    assert "nested analysis of variance" in repeats["method"]
    assert "Searle" in repeats["source"]
    toys = next(each for each in repeats["systems"] if each["system"] == "toy")
    assert [toys[step] for step in ("ingests", "answers", "judgements", "n")] == [2, 3, 2, 8]
    # Each answer has one verdict of each kind, so that the judge is all there is: variance 1/2 of a question's score.
    components = toys["components"]
    assert [components[step]["variance"] for step in ("ingest", "answer", "judge")] == [0.0, 0.0, 0.5]
    assert components["questions"]["variance"] == 0.0
    verify(Folder(str(out)))
    table = (out / "tables/repeats.md").read_text()
    assert "SE judge" in table
    assert "What chance moves" in (out / "report.html").read_text()


async def test_a_run_that_repeats_goes_on_behind_what_is_done(tmp_path: Path) -> None:
    data = write_data(tmp_path / "d.jsonl")
    toy = ToySystem()
    async with served_url(toy, tmp_path / "toy") as url:
        whole = settings(data, tmp_path / "run", url=url, systems=("toy",), ingest_repeats=2, judge_repeats=2)
        await ran(replace(whole, stop_after="retrieve"))
        added = toy.calls("add")
        assert (await ran(whole))[0].complete
        assert toy.calls("add") == added
        await ran(replace(whole, out=str(tmp_path / "at once")))
    assert (tmp_path / "run/outcomes.jsonl").read_bytes() == (tmp_path / "at once/outcomes.jsonl").read_bytes()


async def test_the_same_answers_are_judged_again_alone(tmp_path: Path) -> None:
    data, out = write_data(tmp_path / "d.jsonl"), tmp_path / "run"
    async with served_url(ToySystem(), tmp_path / "toy") as url:
        await ran(settings(data, out, url=url, systems=("toy",), ingest_repeats=2))
    again = RunSettings(
        data=(),
        out=str(tmp_path / "again"),
        reuse=Reuse(run=str(out), through="answer"),
        judge_repeats=3,
        trial=False,
    )
    async with serve_models(ModelServer(chat=lambda _: '{"verdict": 2}')) as server:
        end, _ = await ran(replace(again, judge=model(server, "judge")))
    assert end.complete
    assert len(rows(tmp_path / "again")) == 3 * len(rows(out))
    assert {row.ingest for row in rows(tmp_path / "again")} == {0, 1}
    kept = replace(again, out=str(tmp_path / "kept"), reuse=Reuse(run=str(out), through="answer", only_unscored=True))
    with pytest.raises(ManifestError, match="judge_repeats: then 1, now 3"):
        await ran(kept)


async def test_what_was_not_repeated_has_no_variance(tmp_path: Path) -> None:
    data, out = write_data(tmp_path / "d.jsonl"), tmp_path / "run"
    await ran(settings(data, out, baselines=("oracle",)))
    assert statistics(out)["repeats"]["systems"] == []
