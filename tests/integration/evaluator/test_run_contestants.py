"""Several k in one run: each dialogue is stored once, and every k is a system of its own in rows and figures."""

from asyncio import to_thread
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner, Result

from memdock.errors import error
from memdock_evaluator.cli import main
from memdock_evaluator.report.writing import write_report
from memdock_evaluator.results.folder import Folder
from memdock_evaluator.results.manifest import Compared, Manifest, NamedFamily
from memdock_evaluator.results.plan import Plan
from memdock_evaluator.results.rows import Outcome, Row
from memdock_evaluator.review.show import show
from memdock_evaluator.review.verify import verify
from memdock_evaluator.run.choice import Shard
from memdock_evaluator.run.settings import Reuse, RunSettings, SettingsError
from support.evaluation import ran, row_of, rows, served_url, settings, write_data
from support.toys import ToySystem


def invoke(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def plan_in(out: Path) -> Plan:
    return Manifest.from_json((out / "manifest.json").read_bytes(), place=str(out)).plan


def run_of(tmp_path: Path, url: str, *ks: int, name: str = "run", **fields: Any) -> RunSettings:
    data = write_data(tmp_path / "d.jsonl")
    return settings(data, tmp_path / name, url=url, systems=("toy",), ks=ks, **fields)


def stored(toy: ToySystem) -> int:
    """Turns that were added."""
    return sum(map(len, toy.calls("add") + toy.calls("final add")))


def as_alone(row: Row) -> Row:
    return replace(row, system="toy")


async def test_each_dialogue_is_stored_once_and_asked_for_every_k(tmp_path: Path) -> None:
    toy, alone = ToySystem(), ToySystem()
    async with served_url(toy, tmp_path / "toy") as url:
        end, _ = await ran(run_of(tmp_path, url, 1, 3, baselines=("oracle",)))
    assert end.complete
    assert {row.system for row in rows(tmp_path / "run")} == {"toy@1", "toy@3", "baseline:oracle"}
    assert len(toy.calls("retrieve")) == 2 * 8, "a top 1 need not be the first of a top 3"
    assert not any(toy.kept.values())
    async with served_url(alone, tmp_path / "alone") as url:
        for k in (1, 3):
            await ran(run_of(tmp_path, url, k, name=f"k-{k}"))
    assert 2 * stored(toy) == stored(alone)
    for k in (1, 3):
        mine = [as_alone(row) for row in rows(tmp_path / "run") if row.system == f"toy@{k}"]
        assert mine == rows(tmp_path / f"k-{k}"), "as in a run of that k alone"


async def test_what_storing_took_is_counted_once(tmp_path: Path) -> None:
    async with served_url(ToySystem(), tmp_path / "toy") as url:
        end, _ = await ran(run_of(tmp_path, url, 1, 3))
        one, _ = await ran(run_of(tmp_path, url, 3, name="one"))
    totals, alone = end.manifest.totals, one.manifest.totals["toy"]
    assert sorted(totals) == ["toy", "toy@1", "toy@3"]
    assert totals["toy"].ingest == alone.ingest
    calls, calls_alone = ({each.purpose: each.calls for each in found.usage} for found in (totals["toy"], alone))
    assert calls == {**calls_alone, "search": 2 * calls_alone["search"]}, "each k is a search of its own"
    assert totals["toy"].coverage.expected == 0
    for name in ("toy@1", "toy@3"):
        assert totals[name].coverage == alone.coverage
        assert (totals[name].ingest.turns_read, totals[name].usage) == (0, ())
    assert end.manifest.cost is not None
    memory = [line for line in end.manifest.cost.lines if line.purpose.startswith("memory")]
    assert {line.system for line in memory} == {"toy"}


async def test_figures_report_and_verify_take_each_k_for_itself(tmp_path: Path) -> None:
    async with served_url(ToySystem(), tmp_path / "toy") as url:
        await ran(run_of(tmp_path, url, 1, 3, 5))
    summary = write_report(tmp_path / "run")
    assert summary["k"] is None
    facts = {name: (found["system"], found["k"]) for name, found in summary["systems"].items()}
    assert facts == {"toy@1": ("toy", 1), "toy@3": ("toy", 3), "toy@5": ("toy", 5)}
    at = {name: list(found["languages"]["en"]["recall_at"]) for name, found in summary["systems"].items()}
    assert at == {"toy@1": ["1"], "toy@3": ["1", "3"], "toy@5": ["1", "3", "5"]}
    for found in summary["systems"].values():
        assert {"add", "flush", "retrieve"} <= found["languages"]["en"]["latency_ms"].keys()
    page = (tmp_path / "run/report.html").read_text()
    assert "k = 1, 3, 5" in page
    assert "toy@5" in page
    assert verify(Folder(str(tmp_path / "run"))).rows == 24


async def test_a_systems_own_name_stands_for_all_its_k_in_what_is_compared(tmp_path: Path) -> None:
    own = Compared(
        families=(
            NamedFamily(name="all", systems=("toy",)),
            NamedFamily(name="deep", systems=("toy@3",)),
        ),
        atemporal=("toy",),
    )
    async with served_url(ToySystem(), tmp_path / "toy") as url:
        end, _ = await ran(run_of(tmp_path, url, 1, 3, compared=own))
        with pytest.raises(SettingsError, match="--atemporal: there is no 'tyo': the run has toy@1, toy@3"):
            await ran(run_of(tmp_path, url, 1, 3, compared=Compared(atemporal=("tyo",))))
    assert [family.systems for family in end.manifest.compared.families] == [("toy@1", "toy@3"), ("toy@3",)]
    assert end.manifest.compared.atemporal == ("toy@1", "toy@3")
    write_report(tmp_path / "run", compared=Compared(families=(NamedFamily(name="toys", systems=("toy",)),)))
    told = orjson.loads((tmp_path / "run/statistics.json").read_bytes())
    assert [family["systems"] for family in told["families"]] == [["toy@1", "toy@3"]]


async def test_a_k_that_was_lost_is_asked_again_alone(tmp_path: Path) -> None:
    toy = ToySystem()
    async with served_url(toy, tmp_path / "toy") as url:
        run = run_of(tmp_path, url, 1, 3)
        whole, _ = await ran(replace(run, stop_after="ingest"))
        assert not whole.has_rows
        before = stored(toy)
        await ran(replace(run, stop_after="retrieve"))
        parts = tmp_path / "run/parts"
        (lost,) = (folder for folder in parts.iterdir() if "toy_3" in folder.name)
        for part in lost.rglob("retrieve-*.jsonl"):
            part.unlink()
        asked = len(toy.calls("retrieve"))
        end, _ = await ran(run)
    assert end.complete
    assert len(toy.calls("retrieve")) == asked + 8, "of the k that was lost alone"
    assert stored(toy) == 2 * before, "the spaces had been given back"
    assert not any(toy.kept.values()), "and are once more"
    async with served_url(ToySystem(), tmp_path / "other") as url:
        await ran(run_of(tmp_path, url, 1, 3, name="straight"))
    assert (tmp_path / "straight/outcomes.jsonl").read_bytes() == (tmp_path / "run/outcomes.jsonl").read_bytes()


@pytest.mark.parametrize("as_of", [False, True])
async def test_failed_turns_are_sent_again_and_every_k_is_asked_again(tmp_path: Path, as_of: bool) -> None:
    toy = ToySystem()
    toy.failing = {"s1-t0"}
    async with served_url(toy, tmp_path / "toy") as url:
        run = run_of(tmp_path, url, 1, 3, as_of=as_of)
        end, _ = await ran(run)
        assert end.lacking == ("toy",)
        assert {row.failed_turns for row in rows(tmp_path / "run")} == {1}
        toy.failing.clear()
        end, _ = await ran(run)
        assert end.complete
        await ran(run_of(tmp_path, url, 1, 3, name="straight", as_of=as_of))
    assert (tmp_path / "straight/outcomes.jsonl").read_bytes() == (tmp_path / "run/outcomes.jsonl").read_bytes()


async def test_a_run_of_several_k_is_answered_again(tmp_path: Path) -> None:
    async with served_url(ToySystem(), tmp_path / "toy") as url:
        await ran(run_of(tmp_path, url, 1, 3, baselines=("full-context",)))
    reuse = Reuse(run=str(tmp_path / "run"), through="retrieve")
    end, _ = await ran(RunSettings(data=(), out=str(tmp_path / "again"), reuse=reuse, trial=False))
    assert end.complete
    assert rows(tmp_path / "again") == rows(tmp_path / "run")
    write_report(tmp_path / "again")
    assert verify(Folder(str(tmp_path / "again"))).rows == 24
    totals = end.manifest.totals["toy"]
    assert totals.ingest.turns_read == 16


async def test_another_budget_of_context_is_answered_from_the_same_memories(tmp_path: Path) -> None:
    async with served_url(ToySystem(), tmp_path / "toy") as url:
        await ran(run_of(tmp_path, url, 1, 3, context_tokens=1000))
    for name, words in (("small", ("--context-tokens", 20)), ("same", ())):
        said = await to_thread(invoke, "reanswer", tmp_path / "run", "--out", tmp_path / name, *words)
        assert said.exit_code == 0, said.output
    budgets = {name: [each.context_tokens for each in plan_in(tmp_path / name).systems] for name in ("small", "same")}
    assert budgets == {"small": [20, 20], "same": [1000, 1000]}
    assert rows(tmp_path / "same") == rows(tmp_path / "run")
    small = rows(tmp_path / "small")
    assert [row.memories for row in small] == [row.memories for row in rows(tmp_path / "run")]
    assert max(row.context_tokens for row in small) <= 20
    assert any(row.memories_given < len(row.memories) for row in small)
    verify(Folder(str(tmp_path / "small")))


async def test_other_ks_are_another_run(tmp_path: Path) -> None:
    from memdock_evaluator.results.manifest import ManifestError

    async with served_url(ToySystem(), tmp_path / "toy") as url:
        await ran(run_of(tmp_path, url, 1, 3))
        with pytest.raises(ManifestError, match=r"systems.toy@5: then absent"):
            await ran(run_of(tmp_path, url, 1, 3, 5))


async def test_show_tells_what_was_given(tmp_path: Path) -> None:
    async with served_url(ToySystem(), tmp_path / "toy") as url:
        await ran(run_of(tmp_path, url, 1, 3))
    lines = list(show(Folder(str(tmp_path / "run")), "0/q0", systems=["toy@3"]))
    assert len([line for line in lines if line.startswith("  memory")]) == 3
    row = row_of(tmp_path / "run", "q0", dialogue_id="0", system="toy@3")
    assert row.memories_given == len(row.memories) == 3
    assert orjson.loads(row.to_json())["memories_given"] == 3


async def test_a_run_of_several_k_is_judged_again(tmp_path: Path) -> None:
    async with served_url(ToySystem(), tmp_path / "toy") as url:
        await ran(run_of(tmp_path, url, 1, 3))
    said = await to_thread(invoke, "rejudge", tmp_path / "run", "--out", tmp_path / "again", "--judge-repeats", 2)
    assert said.exit_code == 0, said.output
    assert [row for row in rows(tmp_path / "again") if row.system == "toy@3"]
    for name in ("toy@1", "toy@3"):
        before = [row.verdict for row in rows(tmp_path / "run") if row.system == name]
        again = [row.verdict for row in rows(tmp_path / "again") if row.system == name]
        assert again == [verdict for verdict in before for _ in range(2)], "the offline judge is of one mind"
    assert verify(Folder(str(tmp_path / "again"))).rows == 2 * 16


async def test_a_sample_takes_the_same_whole_dialogues_at_every_k(tmp_path: Path) -> None:
    data = write_data(tmp_path / "d.jsonl", dialogues=tuple("01234"), languages=("en", "ru"))
    toy = ToySystem()
    async with served_url(toy, tmp_path / "toy") as url:
        words = ("run", "--url", url, "--system", "toy", "--data", data, "--k", 1, "--k", 3, "--sample-dialogues", 2)
        said = await to_thread(invoke, *words, "--out", tmp_path / "run")
    assert said.exit_code == 0, said.output
    taken = {(row.dialogue_id, row.language) for row in rows(tmp_path / "run")}
    names = {name for name, _ in taken}
    assert len(names) == 2
    assert taken == {(name, language) for name in names for language in ("en", "ru")}
    for contestant in ("toy@1", "toy@3"):
        assert len([row for row in rows(tmp_path / "run") if row.system == contestant]) == 2 * 2 * 4
    assert stored(toy) == 2 * 2 * 8


async def test_runs_of_several_k_are_compared_k_by_k(tmp_path: Path) -> None:
    async with served_url(ToySystem(), tmp_path / "toy") as url:
        await ran(run_of(tmp_path, url, 1, 3, name="a"))
        await ran(run_of(tmp_path, url, 1, 3, name="b"))
        await ran(run_of(tmp_path, url, 3, name="one"))
    same = await to_thread(invoke, "compare", tmp_path / "a", tmp_path / "b")
    assert same.exit_code == 0, same.output
    assert "the plans are the same" in same.output
    assert [line for line in same.output.splitlines() if line.startswith("en: ")] == ["en: toy@1", "en: toy@3"]
    named = await to_thread(invoke, "compare", tmp_path / "a", tmp_path / "one", "--system", "toy@3", "toy")
    assert (named.exit_code, "en: toy minus toy@3" in named.output) == (0, True), named.output
    none = await to_thread(invoke, "compare", tmp_path / "a", tmp_path / "one")
    assert (none.exit_code, "name two with --system FIRST SECOND" in none.output) == (1, True), none.output


async def test_errors_are_asked_again_at_every_k(tmp_path: Path) -> None:
    toy = ToySystem()
    async with served_url(toy, tmp_path / "toy") as url:
        run = run_of(tmp_path, url, 1, 3)
        toy.read_fault = error("INTERNAL", "broken")
        await ran(run)
        assert {row.outcome for row in rows(tmp_path / "run")} == {Outcome.SYSTEM_ERROR}
        toy.read_fault = None
        end, _ = await ran(replace(run, again=("system_error",)))
        assert end.complete
        assert [(each.asked, each.changed) for each in end.manifest.again] == [(16, 16)]
        assert not any(toy.kept.values())
        await ran(run_of(tmp_path, url, 1, 3, name="straight"))
    assert (tmp_path / "straight/outcomes.jsonl").read_bytes() == (tmp_path / "run/outcomes.jsonl").read_bytes()


async def test_shards_of_several_k_make_the_same_rows(tmp_path: Path) -> None:
    async with served_url(ToySystem(), tmp_path / "toy") as url:
        await ran(run_of(tmp_path, url, 1, 3, baselines=("oracle",)))
        shards = [f"shard-{number}" for number in (1, 2)]
        for number, name in enumerate(shards, start=1):
            part = run_of(tmp_path, url, 1, 3, name=name, baselines=("oracle",), shard=Shard(number=number, of=2))
            assert (await ran(part))[0].complete
    said = await to_thread(invoke, "merge", tmp_path / "whole", *(tmp_path / name for name in shards))
    assert said.exit_code == 0, said.output
    assert (tmp_path / "whole/outcomes.jsonl").read_bytes() == (tmp_path / "run/outcomes.jsonl").read_bytes()
    assert verify(Folder(str(tmp_path / "whole"))).rows == 24
