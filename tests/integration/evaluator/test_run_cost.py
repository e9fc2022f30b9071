"""The bill of a run, and a budget that stops it cleanly and is raised later."""

import re
from asyncio import to_thread
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import web
from click.testing import CliRunner

from memdock_evaluator.answer.endpoint import ModelEndpoint, ModelSettings
from memdock_evaluator.cli import main
from memdock_evaluator.cost.estimate import estimate
from memdock_evaluator.cost.prices import PriceError, Prices
from memdock_evaluator.cost.spending import budget_of
from memdock_evaluator.results.folder import Folder
from memdock_evaluator.results.manifest import Price
from memdock_evaluator.results.parts import Parts, Unit
from memdock_evaluator.results.records import CLOSE, Kind
from memdock_evaluator.results.rows import Row
from memdock_evaluator.review.verify import VerifyError, verify
from memdock_evaluator.run.settings import Reuse
from support.evaluation import ran, rows, served_url, settings, write_data
from support.model_server import ModelServer, serve_models
from support.toys import ToySystem

DEAR = Prices(
    date="2025-01-01",
    currency="EUR",
    models={"a": Price(input=1_000_000, output=0), "j": Price(input=0, output=1_000_000)},
)
"""A coin a token."""


def model(server: ModelServer, purpose: str, name: str, at_once: int = 8) -> ModelSettings:
    endpoint = ModelEndpoint(purpose=purpose, url=server.url, model=name, tries=1, concurrency=at_once)
    return ModelSettings(endpoint=endpoint)


def tokens_of_prompt(body: dict[str, Any]) -> int:
    return sum(len(str(message["content"])) for message in body["messages"]) // 4


def row_unit(row: Row) -> Unit:
    return Unit(system=row.system, language=row.language, dialogue_id=row.dialogue_id)


def verdict_or_answer(body: object) -> str:
    return '{"verdict": 2}' if "'model': 'j'" in str(body) else "Perm"


async def test_the_manifest_has_the_bill(tmp_path: Path) -> None:
    data, out = write_data(tmp_path / "d.jsonl"), tmp_path / "run"
    async with served_url(ToySystem(), tmp_path / "toy") as url, serve_models(ModelServer()) as server:
        server.chat = verdict_or_answer
        run = settings(data, out, url=url, systems=("toy",), prices=DEAR)
        end, _ = await ran(replace(run, answerer=model(server, "answer", "a"), judge=model(server, "judge", "j")))
    cost = end.manifest.cost
    assert cost is not None
    paid = {line.purpose: line.money for line in cost.lines if line.money is not None}
    assert paid == {
        "answer": sum(row.answer_input_tokens for row in rows(out)),
        "judge": sum(row.judge_output_tokens for row in rows(out)),
    }
    assert cost.money == sum(paid.values()) > 0
    told_inside = {usage.model for usage in end.manifest.totals["toy"].usage}
    assert set(cost.unpriced) == told_inside, "the system's own models are not in the table"
    assert CliRunner().invoke(main, ["report", str(out)]).exit_code == 0
    verify(Folder(str(out)))
    manifest = orjson.loads((out / "manifest.json").read_bytes())
    manifest["cost"]["money"] += 1
    (out / "manifest.json").write_bytes(orjson.dumps(manifest))
    with pytest.raises(VerifyError, match=r"manifest\.json: cost\.money is "):
        verify(Folder(str(out)))


async def test_a_budget_stops_the_run_and_a_higher_one_goes_on(tmp_path: Path) -> None:
    data, out = write_data(tmp_path / "d.jsonl"), tmp_path / "run"
    async with serve_models(ModelServer(chat=verdict_or_answer)) as server:
        run = settings(data, out, baselines=("oracle",), prices=DEAR, concurrency=1)
        run = replace(run, answerer=model(server, "answer", "a"), judge=model(server, "judge", "j"))
        whole, _ = await ran(replace(run, out=str(tmp_path / "whole")))
        assert whole.manifest.cost is not None
        price, asked = whole.manifest.cost.money, len(server.requests)
        end, _ = await ran(replace(run, budget=price / 3))
        assert end.budget_spent
        assert f"the budget of {price / 3:g} EUR is spent (" in end.stopped
        first = len(server.requests) - asked
        assert 0 < first < 16
        still, _ = await ran(replace(run, budget=price / 3))
        assert still.budget_spent
        assert len(server.requests) - asked == first, "what earlier attempts paid counts"
        end, _ = await ran(replace(run, budget=price + 1))
        assert (end.complete, end.budget_spent) == (True, False)
        assert len(server.requests) - asked == 16, "nothing is paid twice"
    assert (out / "outcomes.jsonl").read_bytes() == (tmp_path / "whole/outcomes.jsonl").read_bytes()


async def test_calls_that_are_under_way_when_the_budget_is_spent_end_and_are_kept(tmp_path: Path) -> None:
    data, out = write_data(tmp_path / "d.jsonl"), tmp_path / "run"
    async with serve_models(ModelServer(chat=verdict_or_answer)) as server:
        server.latency_s = 0.05
        run = settings(data, out, baselines=("oracle",), prices=DEAR, concurrency=2)
        run = replace(run, answerer=model(server, "answer", "a"), judge=model(server, "judge", "j"))
        end, _ = await ran(replace(run, budget=1.0))
        assert end.budget_spent
        assert len(server.requests) == 2, "the first question of each dialogue, and no other"
        assert end.manifest.cost is not None
        assert end.manifest.cost.money == sum(tokens_of_prompt(body) for _, body in server.requests)
        assert end.stopped == f"the budget of 1 EUR is spent ({end.manifest.cost.money:.4f} EUR)"
        server.latency_s = 0.0
        end, _ = await ran(replace(run, budget=1e9))
        assert end.complete
        assert len(server.requests) == 16, "nothing is asked twice"


async def test_whenever_a_budget_is_spent_bill_sentence_and_provider_have_the_same_money(tmp_path: Path) -> None:
    data, out = write_data(tmp_path / "d.jsonl", dialogues=tuple("012345")), tmp_path / "run"
    by_output = replace(DEAR, models=dict.fromkeys("aj", Price(input=0, output=1_000_000)))
    replies: list[str] = []

    def chat(body: dict[str, Any]) -> str:
        replies.append("hm" if body["model"] == "j" and len(replies) % 3 else verdict_or_answer(body))
        server.latency_s = 0.001 * (len(replies) % 7)
        return replies[-1]

    async with serve_models(ModelServer(chat=chat)) as server:
        run = settings(data, out, baselines=("oracle", "full-context"), prices=by_output, concurrency=4, repeats=2)
        run = replace(run, answerer=model(server, "answer", "a"), judge=model(server, "judge", "j"))
        spent, stops = 0, 0
        while True:
            end, _ = await ran(replace(run, budget=spent + 20.0))
            spent = sum(len(reply) // 4 + 1 for reply in replies)
            assert end.manifest.cost is not None
            assert end.manifest.cost.money == spent
            if not end.budget_spent:
                break
            assert end.stopped.endswith(f" is spent ({spent:.4f} EUR)"), end.stopped
            stops += 1
    assert stops > 5
    assert end.complete


async def test_replies_that_cannot_be_used_are_on_the_bill_and_in_the_budget_once(tmp_path: Path) -> None:
    data, out = write_data(tmp_path / "d.jsonl", dialogues=("0",)), tmp_path / "run"
    replies = ["hm"] * 5 + ['{"verdict": 2}'] * 4
    async with serve_models(ModelServer()) as server:
        run = settings(data, out, baselines=("oracle",), prices=DEAR)
        run = replace(run, answerer=model(server, "answer", "a", 1), judge=model(server, "judge", "j", 1))

        def chat(body: dict[str, Any]) -> str:
            if body["model"] == "a":
                return "Perm"
            if len(server.requests) == 8:  # each of the 4 answers was judged once, in vain: now the first once more
                server.faults = [web.Response(status=500)]
            return replies.pop(0)

        server.chat = chat
        first, _ = await ran(run)
        assert first.unanswered == 1, "one verdict's second try has failed, after a first that could not be used"
        end, _ = await ran(run)
    assert end.complete
    assert end.manifest.cost is not None
    paid = {line.purpose: line.money for line in end.manifest.cost.lines}
    assert not replies
    output = sum(len(reply) // 4 + 1 for reply in ["hm"] * 5 + ['{"verdict": 2}'] * 4)
    assert paid["judge"] == output
    budget = budget_of(1e9, DEAR, end.manifest.plan, Folder(str(out)), {row_unit(row) for row in rows(out)})
    assert budget.spent == end.manifest.cost.money


async def test_what_the_spaces_say_that_they_have_cost_is_in_the_budget(tmp_path: Path) -> None:
    data, out = write_data(tmp_path / "d.jsonl"), tmp_path / "run"
    dear = replace(DEAR, models={"toy-model": Price(input=1_000_000, output=0)})
    async with served_url(ToySystem(), tmp_path / "toy") as url:
        run = settings(data, out, url=url, systems=("toy",), prices=dear, concurrency=1)
        whole, _ = await ran(replace(run, out=str(tmp_path / "whole")))
        assert whole.manifest.cost is not None
        price = whole.manifest.cost.money
        assert price > 0
        end, _ = await ran(replace(run, budget=price / 3))
        assert end.budget_spent
        end, said = await ran(replace(run, budget=price + 1))
        assert end.complete, "what was paid before is counted once"
        assert "no price" not in said
        end, said = await ran(replace(run, out=str(tmp_path / "free"), prices=DEAR, budget=1.0))
        assert end.complete
        assert "not in the budget, for they have no price: toy (toy-model) (--prices FILE)" in said


async def test_a_kill_behind_a_reset_loses_nothing_that_the_space_has_cost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, out = write_data(tmp_path / "d.jsonl", dialogues=("0",)), tmp_path / "run"
    dear = replace(DEAR, models={"toy-model": Price(input=1_000_000, output=0)})
    write = Parts.write

    def killed(parts: Parts, kind: Kind[Any], records: Sequence[Any]) -> None:
        if kind is CLOSE and records[0].reset:
            raise ZeroDivisionError
        write(parts, kind, records)

    async with served_url(toy := ToySystem(), tmp_path / "toy") as url:
        run = settings(data, out, url=url, systems=("toy",), prices=dear)
        whole, _ = await ran(replace(run, out=str(tmp_path / "whole")))
        monkeypatch.setattr(Parts, "write", killed)
        with pytest.raises(ZeroDivisionError):
            await ran(run)
        assert not toy.kept, "the Reset was done"
        monkeypatch.setattr(Parts, "write", write)
        end, _ = await ran(run)
    assert end.complete
    assert whole.manifest.totals["toy"].usage == end.manifest.totals["toy"].usage
    assert whole.manifest.cost == end.manifest.cost
    assert end.manifest.cost is not None
    assert end.manifest.cost.money > 0
    assert end.manifest.totals["toy"].spaces_not_reset == ()


async def test_a_space_that_is_filled_again_has_cost_both_fillings(tmp_path: Path) -> None:
    data, out = write_data(tmp_path / "d.jsonl", dialogues=("0",)), tmp_path / "run"
    dear = replace(DEAR, models={"toy-model": Price(input=1_000_000, output=0)})
    async with served_url(toy := ToySystem(), tmp_path / "toy") as url:
        run = settings(data, out, url=url, systems=("toy",), prices=dear, as_of=True)
        whole, _ = await ran(replace(run, out=str(tmp_path / "whole")))
        toy.failing = {"s1-t0"}
        assert (await ran(run))[0].only_lacks_turns
        toy.failing.clear()
        end, _ = await ran(run)
    assert whole.manifest.cost is not None
    assert end.manifest.cost is not None
    retried = 2 * len("My cat is called Bublik")  # once more at each of the two dates
    assert end.manifest.cost.money == 2 * whole.manifest.cost.money + retried
    assert sum(each.input_tokens for each in end.manifest.totals["toy"].usage) == end.manifest.cost.money


async def test_another_judge_pays_for_its_verdicts_alone(tmp_path: Path) -> None:
    data, out = write_data(tmp_path / "d.jsonl"), tmp_path / "run"
    async with serve_models(ModelServer(chat=verdict_or_answer)) as server:
        run = settings(data, out, baselines=("oracle",), prices=DEAR)
        run = replace(run, answerer=model(server, "answer", "a"), judge=model(server, "judge", "j"))
        await ran(run)
        again = replace(run, out=str(tmp_path / "again"), data=(), reuse=Reuse(run=str(out), through="answer"))
        end, _ = await ran(again)
    assert end.manifest.cost is not None
    assert [line.purpose for line in end.manifest.cost.lines] == ["judge"]


async def test_an_estimate_asks_nothing_and_is_near_what_is_paid(tmp_path: Path) -> None:
    data, out = write_data(tmp_path / "d.jsonl"), tmp_path / "run"
    async with serve_models(ModelServer()) as server:
        server.chat = lambda body: verdict_or_answer(body) if "'j'" in str(body) else "Perm " * 48
        run = settings(data, out, baselines=("oracle", "refusal", "full-context"), prices=DEAR, repeats=2)
        run = replace(run, answerer=model(server, "answer", "a"), judge=model(server, "judge", "j"))
        found = estimate(run)
        assert not server.requests
        assert not out.exists()
        end, _ = await ran(run)
    assert sum(found.calls.values()) == len(server.requests) == 16 * 2 + 16 * 3
    assert (found.questions, found.dialogues) == (16, 2)
    assert end.manifest.cost is not None
    paid = {(line.system, line.purpose): line.input_tokens for line in end.manifest.cost.lines}
    expected = {(line.system, line.purpose): line.input_tokens for line in found.cost.lines}
    assert expected.keys() == paid.keys()
    for place, tokens in paid.items():
        assert expected[place] == pytest.approx(tokens, rel=0.15), place


def test_the_command_tells_the_estimate_without_a_system(tmp_path: Path) -> None:
    words = ["run", "--data", "own", "--language", "en", "--system", "x", "--url", "grpc://127.0.0.1:9", "--estimate"]
    models = ["--answer-url", "http://127.0.0.1:9/v1", "--answer-model", "gpt-4.1-mini"]
    said = CliRunner().invoke(main, [*words, *models, "--out", str(tmp_path / "run")])
    assert said.exit_code == 0, said.output
    assert CliRunner().invoke(main, [*words, *models]).output == said.output, "it makes no folder, and needs none"
    money = re.findall(r"([0-9.]+) USD", said.output)
    assert len(money) == 2
    assert all(re.fullmatch(r"\d+\.\d{4}", each) for each in money), "as many digits as the bill has"
    assert "114 questions of 6 dialogues for each system" in said.output
    assert " AddTurns, 114 Retrieve" in said.output
    assert "x: answer by gpt-4.1-mini: 114 calls, " in said.output
    assert "not in it: what the memory systems' own models cost, which only they know, the trial" in said.output
    assert not (tmp_path / "run").exists()


async def test_a_budget_needs_every_price(tmp_path: Path) -> None:
    data = write_data(tmp_path / "d.jsonl")
    async with serve_models(ModelServer()) as server:
        run = settings(data, tmp_path / "run", baselines=("oracle",), prices=DEAR, budget=1.0)
        with pytest.raises(PriceError, match="a budget needs the price of every model: unheard-of has none"):
            await ran(replace(run, answerer=model(server, "answer", "unheard-of")))
        assert not server.requests
    assert not (tmp_path / "run").exists()


async def test_the_command_ends_with_4_and_refuses_a_wrong_table(tmp_path: Path) -> None:
    data, table = write_data(tmp_path / "d.jsonl"), tmp_path / "p.yaml"
    table.write_text("date: 2025-01-01\ncurrency: EUR\nmodels: {a: {input: 1000000, output: 1}}\n")
    words = ["--data", data, "--out", tmp_path / "run", "--baseline", "oracle", "--no-trial", "--prices", table]
    async with serve_models(ModelServer()) as server:
        given = ["run", *words, "--answer-url", server.url, "--answer-model", "a", "--budget", 1]
        said = await to_thread(CliRunner().invoke, main, [str(word) for word in given])
    assert said.exit_code == 4, said.output
    assert "the same command with a higher --budget goes on from here" in said.output
    table.write_text("date: 2025-01-01\n")
    refused = CliRunner().invoke(main, ["run", *(str(word) for word in words)])
    assert refused.exit_code == 2
    assert "p.yaml: currency: Field required" in refused.output
