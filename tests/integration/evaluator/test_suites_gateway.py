"""Both suites through a gateway with keys, on a sound system and on one with a fault at once."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from memdock_evaluator.forgetting.modes import Mode
from memdock_evaluator.forgetting.settings import ForgettingSettings
from memdock_evaluator.forgetting.suite import forgetting_suite
from memdock_evaluator.leaks.settings import LeakSettings
from memdock_evaluator.leaks.suite import leak_suite
from memdock_evaluator.run.settings import RunSettings
from support.evaluation import settings, write_data
from support.gateways import gateway_over
from support.mutants import ForgetsTheVectorOnly, ShowsEverybody
from support.suites import facts, quiet, served_at, summary
from support.toys import ToySystem


@asynccontextmanager
async def behind_a_gateway(tmp_path: Path, *systems: tuple[str, ToySystem]) -> AsyncIterator[dict[str, Any]]:
    """What reaches the systems."""
    names = [name for name, _ in systems]
    first, second = (toy for _, toy in systems)
    async with served_at(first, tmp_path / names[0]) as one, served_at(second, tmp_path / names[1]) as other:
        listed = [{"name": name, "address": url} for name, url in zip(names, (one, other), strict=True)]
        (tmp_path / "gateway").mkdir()
        async with gateway_over(tmp_path / "gateway", listed) as gateway:
            yield {"url": gateway.url("grpc"), "key": gateway.keys["all"], "systems": tuple(names)}


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
