"""Both suites through a gateway with keys, on a sound system and on one with a fault at once."""

from pathlib import Path

from memdock_evaluator.forgetting.modes import Mode
from memdock_evaluator.forgetting.settings import ForgettingSettings
from memdock_evaluator.forgetting.suite import forgetting_suite
from memdock_evaluator.leaks.settings import LeakSettings
from memdock_evaluator.leaks.suite import leak_suite
from memdock_evaluator.run.settings import RunSettings
from support.evaluation import settings, write_data
from support.mutants import ForgetsTheVectorOnly, ShowsEverybody
from support.suites import behind_a_gateway, facts, quiet, summary
from support.toys import ToySystem


async def test_forgetting_tells_systems_apart(tmp_path: Path) -> None:
    data = write_data(tmp_path / "d.jsonl", **facts())
    sound, faulty = ToySystem(), ForgetsTheVectorOnly()
    async with behind_a_gateway(tmp_path, ("sound", sound), ("faulty", faulty)) as reached:
        run = settings(data, tmp_path / "out", **reached)
        end = await forgetting_suite(ForgettingSettings(run=run, targets=2), quiet(), quiet())
    assert {sentence.split()[0] for sentence in end.found} == {"faulty"}
    assert end.unmeasured == ()
    systems = summary(tmp_path / "out")["systems"]
    assert [systems[name]["en"][mode]["n_targets"] for name in systems for mode in Mode] == [4] * 6
    assert not any((*sound.kept.values(), *faulty.kept.values())), "every space of both is given back"


async def test_leaks_tell_systems_apart(tmp_path: Path) -> None:
    sound, faulty = ToySystem(), ShowsEverybody()
    async with behind_a_gateway(tmp_path, ("sound", sound), ("faulty", faulty)) as reached:
        run = RunSettings(data=(), out=str(tmp_path / "out"), ks=(1,), concurrency=8, **reached)
        end = await leak_suite(LeakSettings(run=run, languages=("en",), pairs=1), quiet(), quiet())
    assert {sentence.split()[0] for sentence in end.found} == {"faulty"}
    assert end.unmeasured == ()
    assert not any((*sound.kept.values(), *faulty.kept.values())), "every space of both is given back"
