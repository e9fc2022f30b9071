"""Shards that merge to the bytes of one run, and what is refused to be merged."""

from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner, Result

from memdock_evaluator.cli import main
from memdock_evaluator.results.plan import Sample
from memdock_evaluator.run.choice import Shard
from support.evaluation import ran, served_url, settings, write_data
from support.toys import ToySystem


def invoke(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


async def test_eight_shards_merged_are_one_run(tmp_path: Path) -> None:
    data = write_data(tmp_path / "d.jsonl", dialogues=[f"d{n}" for n in range(9)], languages=("en", "ru"))
    systems = {"systems": ("toy",), "baselines": ("oracle",), "repeats": 2, "ingest_repeats": 2, "judge_repeats": 2}
    async with served_url(ToySystem(), tmp_path / "toy") as url:
        await ran(settings(data, tmp_path / "whole", url=url, **systems))
        for number in range(1, 9):
            shard = Shard(number=number, of=8)
            end, _ = await ran(settings(data, tmp_path / f"shard-{number}", url=url, shard=shard, **systems))
            assert end.complete
    said = invoke("merge", tmp_path / "merged", *sorted(tmp_path.glob("shard-*"), reverse=True))
    assert said.exit_code == 0, said.output
    assert (tmp_path / "merged/outcomes.jsonl").read_bytes() == (tmp_path / "whole/outcomes.jsonl").read_bytes()
    manifest = orjson.loads((tmp_path / "merged/manifest.json").read_bytes())
    one = orjson.loads((tmp_path / "whole/manifest.json").read_bytes())
    assert manifest["plan"] == one["plan"]
    assert manifest["totals"] == one["totals"]
    assert len(manifest["merged"]) == 8
    assert invoke("verify", tmp_path / "merged").exit_code == 0
    again = invoke("merge", tmp_path / "merged", *tmp_path.glob("shard-*"))
    assert "holds a run already" in again.output


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_data(tmp_path / "d.jsonl", dialogues=["a", "b", "c"])


def run_on(data: Path, out: Path, *words: object) -> None:
    done = invoke("run", "--data", data, "--out", out, "--baseline", "refusal", *words)
    assert done.exit_code == 0, done.output


def test_what_is_not_the_shards_of_one_run_is_refused(data: Path, tmp_path: Path) -> None:
    one, two, twin, other, whole = (tmp_path / name for name in ("one", "two", "twin", "other", "whole"))
    run_on(data, one, "--shard", "1/3")
    run_on(data, two, "--shard", "2/3")
    run_on(data, twin, "--shard", "2/3")
    run_on(data, other, "--shard", "3/3", "--repeats", 2)
    run_on(data, whole)
    for runs, words in (
        ((one, two), "of 3 shards these are missing: 3"),
        ((one, two, twin), "shard 2/3 is given twice: "),
        ((one, two, other), "repeats: then 1, now 2"),
        ((one, whole), "is no shard: it was run without --shard"),
    ):
        said = invoke("merge", tmp_path / "merged", *runs)
        assert said.exit_code == 1
        assert words in said.output
    assert not (tmp_path / "merged").exists()


def test_a_shard_that_is_not_complete_is_refused(data: Path, tmp_path: Path) -> None:
    one = tmp_path / "one"
    run_on(data, one, "--shard", "1/3")
    manifest = orjson.loads((one / "manifest.json").read_bytes())
    (one / "manifest.json").write_bytes(orjson.dumps({**manifest, "finished": None}))
    assert "(shard 1/3) is not complete: finish it first" in invoke("merge", tmp_path / "merged", one).output


def test_a_shard_goes_on_in_its_own_folder_alone(data: Path, tmp_path: Path) -> None:
    run_on(data, tmp_path / "one", "--shard", "1/3")
    words = ["--data", data, "--out", tmp_path / "one", "--baseline", "refusal", "--shard", "2/3"]
    said = invoke("run", *words)
    assert said.exit_code == 2
    assert 'data.shard: then "1/3", now "2/3"' in said.output
    assert invoke("run", *words[:-1], "4/3").exit_code == 2


async def test_a_sample_is_recorded_and_only_it_is_stored(data: Path, tmp_path: Path) -> None:
    toy = ToySystem()
    sample = Sample(dialogues=2, questions=3, seed=7)
    async with served_url(toy, tmp_path / "toy") as url:
        end, _ = await ran(settings(data, tmp_path / "run", url=url, systems=("toy",), sample=sample))
    assert end.manifest.plan.data.sample == sample
    assert end.manifest.plan.data.languages["en"].questions == 3
    assert end.expected == 3
    assert len(toy.calls("retrieve")) == 3
