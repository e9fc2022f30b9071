"""What a run has cost, by system and purpose, and a question's share of it."""

from dataclasses import replace
from functools import cache

from memdock.types import ModelUsage
from memdock_evaluator.cost.bill import ANSWER, JUDGE, added, from_cache
from memdock_evaluator.cost.prices import read_prices
from memdock_evaluator.results.manifest import Manifest, SystemTotals
from memdock_evaluator.results.plan import ModelFacts
from memdock_evaluator.results.rows import Row
from memdock_evaluator.summary import summarise
from memdock_evaluator.summary.shape import Costs
from memdock_evaluator.tables.cost import cost_table
from support.bills import bill_of_rows
from support.synthetic_rows import a_manifest, a_row

SYSTEM, BASELINE = "rag-dense", "baseline:full-context"


@cache
def run() -> tuple[tuple[Row, ...], Manifest]:
    """Four questions of each of two systems; the judge has no price, the memory's extraction has one."""
    rows = tuple(
        a_row(
            system=system,
            question_id=f"q{n}",
            answer_input_tokens=1_000_000,
            answer_output_tokens=250_000,
            judge_input_tokens=1000,
            judge_output_tokens=10,
        )
        for system in (SYSTEM, BASELINE)
        for n in range(4)
    )
    used = ModelUsage(purpose="extraction", model="gpt-4o", calls=9, input_tokens=400_000, output_tokens=0)
    manifest = a_manifest(judge=ModelFacts(kind="openai", model="pollux-judge-7b"))
    totals = {SYSTEM: SystemTotals(usage=(used,)), BASELINE: SystemTotals()}
    return rows, replace(manifest, totals=totals, cost=bill_of_rows(manifest.plan, totals, rows, read_prices()))


def found() -> Costs:
    rows, manifest = run()
    cost = summarise(rows, [], manifest)["cost"]
    assert cost
    return cost


def test_money_is_by_system_and_purpose_and_a_question() -> None:
    system = found()["systems"][SYSTEM]
    # 0.40 and 1.60 a million tokens: 4 questions of 0.40 + 0.40; extraction 0.4 million at 2.50.
    assert system["purposes"]["answer"]["money"] == 3.2
    assert system["purposes"]["answer"]["a_question"] == 0.8
    assert system["purposes"]["memory"]["money"] == 1.0
    assert (system["total"]["money"], system["total"]["a_question"], system["n_questions"]) == (4.2, 1.05, 4)
    assert "memory" not in found()["systems"][BASELINE]["purposes"]


def test_tokens_are_what_models_were_asked_for_and_estimates_are_marked() -> None:
    rows, manifest = run()
    uses = [
        (SYSTEM, ANSWER, ModelUsage(model="m", purpose=ANSWER, input_tokens=100, output_tokens=10)),
        (SYSTEM, ANSWER, ModelUsage(model="m", purpose=ANSWER, input_tokens=7, output_tokens=1, estimated=True)),
        (SYSTEM, from_cache(ANSWER), ModelUsage(model="m", purpose=ANSWER, input_tokens=5000, output_tokens=500)),
        (SYSTEM, JUDGE, ModelUsage(model="m", purpose=JUDGE, input_tokens=30, output_tokens=3)),
    ]
    summary = summarise(rows, [], replace(manifest, cost=added(uses, read_prices())))
    assert summary["cost"]
    system = summary["cost"]["systems"][SYSTEM]
    told = {
        purpose: (its["input_tokens"], its["output_tokens"], its["estimated"])
        for purpose, its in [*system["purposes"].items(), ("all", system["total"])]
    }
    assert told == {"answer": (107, 11, True), "judge": (30, 3, False), "all": (137, 14, True)}
    table = cost_table(summary)
    place = table.columns.index("estimated")
    assert {row[1]: row[place] for row in table.rows} == {"answer": True, "judge": False, "all": True}
    assert any("what a cache answered is not counted" in note for note in table.notes)


def test_what_has_no_price_is_named_and_never_free() -> None:
    cost = found()
    judge = cost["systems"][SYSTEM]["purposes"]["judge"]
    assert (judge["money"], judge["a_question"], judge["unpriced"]) == (None, None, ["pollux-judge-7b"])
    assert (judge["input_tokens"], judge["output_tokens"]) == (4000, 40)
    assert cost["systems"][SYSTEM]["total"]["unpriced"] == cost["unpriced"] == ["pollux-judge-7b"]
    assert (cost["date"], cost["currency"]) == ("2025-06-30", "USD")


def test_the_table_has_a_row_a_purpose_and_one_for_all() -> None:
    rows, manifest = run()
    table = cost_table(summarise(rows, [], manifest))
    cells = {(row[0], row[1]): row[6:9] for row in table.rows}
    assert cells[SYSTEM, "answer"] == ("3.20", "0.800", "800.00")
    assert cells[SYSTEM, "judge"] == (None, None, None)
    assert cells[SYSTEM, "all"] == ("4.20", "1.05", "1050.00")
    assert any("on top: pollux-judge-7b" in note for note in table.notes)


def test_a_run_without_a_bill_has_no_cost() -> None:
    summary = summarise([a_row()], [], a_manifest())
    assert summary["cost"] is None
    assert cost_table(summary).rows == ()
