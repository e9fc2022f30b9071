"""Runs over other systems, made one: the same rows as a run of them all, and what may not stand in one table."""

from asyncio import to_thread
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner, Result

from memdock.types import Model
from memdock_evaluator.cli import main
from memdock_evaluator.cost.prices import Prices
from memdock_evaluator.results.folder import Folder
from memdock_evaluator.results.manifest import Manifest, Price
from memdock_evaluator.results.plan import Track, VendorSettings
from memdock_evaluator.review.verify import verify
from memdock_evaluator.run.choice import Shard
from support.evaluation import ran, rows, served_url, settings, write_data
from support.toys import ToySystem


def merge(*words: object) -> Result:
    return CliRunner().invoke(main, ["merge", *map(str, words)])


def read(out: Path) -> Manifest:
    return Manifest.from_json((out / "manifest.json").read_bytes(), place=str(out))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_data(tmp_path / "d.jsonl")


async def run_of(data: Path, out: Path, system: str = "", **fields: Any) -> Path:
    """A run over a toy of that name, which keeps other chunks where its name is another."""
    toy = ToySystem(name=system or "toy", chunk=len(system) or 1)
    async with served_url(toy, out.parent / f"of-{out.name}") as url:
        end, _ = await ran(settings(data, out, url=url, systems=(system,) if system else (), **fields))
    assert end.complete
    return out


async def test_runs_over_other_systems_are_one_table(data: Path, tmp_path: Path) -> None:
    one = await run_of(data, tmp_path / "one", "a", ks=(1, 3))
    two = await run_of(data, tmp_path / "two", "bb", ks=(1, 3))
    bounds = await run_of(data, tmp_path / "bounds", baselines=("oracle", "full-context"))
    done = merge(tmp_path / "all", bounds, one, two)
    assert done.exit_code == 0, done.output
    assert rows(tmp_path / "all") == [*rows(one), *rows(bounds), *rows(two)]
    found = read(tmp_path / "all")
    assert [each.name for each in found.plan.systems] == [
        *("a@1", "a@3", "bb@1", "bb@3"),
        *("baseline:oracle", "baseline:full-context"),
    ]
    for run in (one, two, bounds):
        told = read(run)
        assert {name: found.totals[name] for name in told.totals} == told.totals
        assert told.run_id in found.merged
    assert verify(Folder(str(tmp_path / "all"))).rows == 8 * 6
    assert "bb@3" in done.output


async def test_shards_and_a_whole_run_become_one(data: Path, tmp_path: Path) -> None:
    shards = [await run_of(data, tmp_path / f"shard-{n}", "a", shard=Shard(number=n, of=2)) for n in (1, 2)]
    whole, other = await run_of(data, tmp_path / "whole", "a"), await run_of(data, tmp_path / "other", "bb")
    assert merge(tmp_path / "all", *shards, other).exit_code == 0
    assert rows(tmp_path / "all") == [*rows(whole), *rows(other)]
    missing = merge(tmp_path / "missing", shards[0], other)
    assert "of 2 shards these are missing: 2" in missing.output


async def test_the_same_system_is_refused_or_gets_another_name(data: Path, tmp_path: Path) -> None:
    one = await run_of(data, tmp_path / "one", "a", ks=(1, 3))
    two = await run_of(data, tmp_path / "two", "a", ks=(1, 3))
    refused = merge(tmp_path / "all", one, two)
    assert refused.exit_code == 1
    assert f"a@1, a@3 stands in {one} and in {two}: leave one out" in refused.output
    done = merge(tmp_path / "all", one, f"a-graph={two}")
    assert done.exit_code == 0, done.output
    assert {row.system for row in rows(tmp_path / "all")} == {"a@1", "a@3", "a-graph@1", "a-graph@3"}
    assert read(tmp_path / "all").totals["a-graph"] == read(two).totals["a"]
    verify(Folder(str(tmp_path / "all")))
    timings = (orjson.loads(line) for line in (tmp_path / "all/timings.jsonl").read_bytes().splitlines())
    assert {"a", "a-graph"} <= {each["system"] for each in timings if each["stage"] == "add"}
    bounds = await run_of(data, tmp_path / "bounds", baselines=("oracle",))
    none = merge(tmp_path / "none", one, f"x={bounds}")
    assert f"x={bounds} names the memory system of a run that has one: this has none" in none.output


async def test_what_differs_is_refused_by_its_field(data: Path, tmp_path: Path) -> None:
    one = await run_of(data, tmp_path / "one", "a")
    other = write_data(tmp_path / "other.jsonl", dialogues=("0", "1", "2"))
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"seed": 7}, "seed: then 0, now 7"),
        ({"repeats": 2}, "repeats: then 1, now 2"),
        ({"ks": (5,)}, "k: a 10; bb 5"),
        ({"context_tokens": 50}, "context_tokens: a all; bb 50"),
        ({"data": other}, "data.languages.en.dialogues: then 2, now 3"),
    )
    for fields, said in cases:
        name = "-".join(fields)
        two = await run_of(fields.pop("data", data), tmp_path / name, "bb", **fields)
        refused = merge(tmp_path / "all", one, two)
        assert refused.exit_code == 1
        assert said in refused.output
        assert not (tmp_path / "all").exists()


async def test_runs_that_price_one_model_differently_are_refused_by_its_name(data: Path, tmp_path: Path) -> None:
    def prices(money: float) -> Prices:
        return Prices(date="2025-01-01", currency="EUR", models={"toy-model": Price(input=money, output=0)})

    one = await run_of(data, tmp_path / "one", "a", prices=prices(2.0))
    dear = await run_of(data, tmp_path / "dear", "bb", prices=prices(5.0))
    same = await run_of(data, tmp_path / "same", "bb", prices=prices(2.0))
    for runs, said in (
        ((one, dear), f"{one} at 2 (input) and 0 (output), {dear} at 5 (input)"),
        ((dear, one), f"{dear} at 5 (input) and 0 (output), {one} at 2 (input)"),
    ):
        refused = merge(tmp_path / "all", *runs)
        assert refused.exit_code == 1
        assert f"the runs price toy-model differently: {said}" in refused.output
        assert not (tmp_path / "all").exists()
    assert merge(tmp_path / "all", one, same).exit_code == 0
    assert merge(tmp_path / "turned", same, one).exit_code == 0
    costs = [read(tmp_path / name).cost for name in ("all", "turned", "one", "same")]
    money = [cost.money for cost in costs if cost is not None]
    assert money[0] == money[1] == money[2] + money[3] > 0


async def test_tracks_may_differ_and_stand_apart(data: Path, tmp_path: Path) -> None:
    controlled = await run_of(data, tmp_path / "controlled", "a", track=Track.CONTROLLED, context_tokens=60)
    settings_of = {"bb": VendorSettings(file="bb.yaml", sha256="00", text="k: 5")}
    vendor = await run_of(data, tmp_path / "vendor", "bb", track=Track.VENDOR, vendor_settings=settings_of, ks=(5,))
    done = merge(tmp_path / "all", vendor, controlled)
    assert done.exit_code == 0, done.output
    assert done.output.index("answers, controlled track") < done.output.index("answers, vendor track")
    assert "are not ranked together" in " ".join(done.output.split())
    page = (tmp_path / "all/report.html").read_text()
    assert page.index("Controlled: alike but for their memory") < page.index("Each as its vendor would have it")
    assert verify(Folder(str(tmp_path / "all"))).rows == 16


async def test_controlled_systems_of_other_models_are_refused(data: Path, tmp_path: Path) -> None:
    one = await run_of(data, tmp_path / "one", "a", track=Track.CONTROLLED, context_tokens=60)
    two = await run_of(data, tmp_path / "two", "bb", track=Track.CONTROLLED, context_tokens=60)
    manifest = orjson.loads((two / "manifest.json").read_bytes())
    manifest["plan"]["systems"][0]["models"] = [{"purpose": "extraction", "name": "another", "dimension": 0}]
    (two / "manifest.json").write_bytes(orjson.dumps(manifest))
    refused = merge(tmp_path / "all", one, two)
    assert "extraction model: a toy-model; bb another" in refused.output
    assert Model(purpose="extraction", name="another") in read(two).plan.systems[0].models


async def test_a_joined_run_is_answered_again(data: Path, tmp_path: Path) -> None:
    one, two = await run_of(data, tmp_path / "one", "a"), await run_of(data, tmp_path / "two", "bb")
    assert merge(tmp_path / "all", one, two).exit_code == 0
    words = ["reanswer", str(tmp_path / "all"), "--out", str(tmp_path / "again")]
    again = await to_thread(CliRunner().invoke, main, words)
    assert again.exit_code == 0, again.output
    assert rows(tmp_path / "again") == rows(tmp_path / "all")
