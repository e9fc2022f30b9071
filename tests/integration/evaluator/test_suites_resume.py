"""`forgetting` and `leaks` go on when the same command is given again: after a kill, after an outage, and when done."""

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from memdock.errors import error
from support.evaluation import write_data
from support.processes import command_path
from support.suites import facts, invoke, lines, served_at, summary
from support.toys import ToySystem


class Watched(ToySystem):
    """Stops in a Retrieve once `stops` says so, until somebody lets it go on."""

    def __init__(self, stops: Callable[["Watched"], bool]) -> None:
        super().__init__()
        self._stops = stops
        self.stopped, self.go = asyncio.Event(), asyncio.Event()
        self.fault: str | None = None

    async def retrieve(self, space: str, query: Any) -> Any:
        if not self.go.is_set() and self._stops(self):
            self.stopped.set()
            await self.go.wait()
        if self.fault and "garden gate" in query.text:
            raise error(self.fault, "the toy was told to")
        return await super().retrieve(space, query)

    @property
    def stored(self) -> Counter[str]:
        """How often each space was filled from its beginning."""
        return Counter(space for kind, space, ids in self.log if "add" in kind and "s1-t0" in ids)


def forgetting(tmp_path: Path, url: str, out: str) -> list[str]:
    data = write_data(tmp_path / "d.jsonl", **facts())
    words = ["forgetting", "--url", url, "--system", "toy", "--data", str(data), "--targets", "2", "--concurrency", "1"]
    return [*words, "--patience", "0", "--out", str(tmp_path / out)]


def leaks(tmp_path: Path, url: str, out: str) -> list[str]:
    words = ["leaks", "--url", url, "--system", "toy", "--pairs", "2", "--patience", "0"]
    return [*words, "--out", str(tmp_path / out)]


async def killed(toy: Watched, words: list[str]) -> None:
    """The command as a process, killed where the toy stops."""
    command = command_path("memdock-eval")
    quiet = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(command, *words, stdin=quiet, stdout=quiet, stderr=quiet)
    try:
        async with asyncio.timeout(60):
            await toy.stopped.wait()
    finally:
        process.kill()
        await process.wait()
    toy.go.set()


async def again(words: list[str]) -> Any:
    done = await asyncio.to_thread(invoke, *words)
    assert "Traceback" not in done.output
    return done


async def test_forgetting_goes_on_behind_the_cases_that_are_done(tmp_path: Path) -> None:
    toy = Watched(lambda toy: len(toy.calls("retrieve")) == 60)
    async with served_at(toy, tmp_path / "toy") as url:
        await killed(toy, forgetting(tmp_path, url, "out"))
        done = set(toy.stored)
        assert len(done) > 1
        assert not (tmp_path / "out/summary.json").exists()
        assert any(toy.kept.values()), "a kill gives nothing back"
        assert (await again(forgetting(tmp_path, url, "out"))).exit_code == 0
        assert sorted(toy.stored.values()) == [1] * 5 + [2], "only the case that was cut off is stored anew"
        assert not any(toy.kept.values())
        asked = len(toy.log)
        assert (await again(forgetting(tmp_path, url, "out"))).exit_code == 0
        assert len(toy.log) == asked, "what is finished asks nothing"
        await again(forgetting(tmp_path, url, "at once"))
    for file in ("targets.jsonl", "neighbours.jsonl", "summary.json"):
        assert (tmp_path / "out" / file).read_bytes() == (tmp_path / "at once" / file).read_bytes()


@pytest.mark.parametrize("moment", ["at rest", "after Forget", "after Reset"])
async def test_leaks_go_on_behind_the_moments_that_are_done(tmp_path: Path, moment: str) -> None:
    def stops(toy: Watched) -> bool:
        resets = len(toy.calls("reset"))
        return {
            "at rest": len(toy.calls("retrieve")) == 30,
            "after Forget": len(toy.calls("forget")) == 2,
            "after Reset": resets > 16 and toy.calls("forget") != [],
        }[moment]

    toy = Watched(stops)
    async with served_at(toy, tmp_path / "toy") as url:
        await killed(toy, leaks(tmp_path, url, "out"))
        assert any(toy.kept.values())
        assert (await again(leaks(tmp_path, url, "out"))).exit_code == 0
        assert not any(toy.kept.values()), "the spaces of the attempt that was killed, too"
        await again(leaks(tmp_path, url, "at once"))
    for file in ("trials.jsonl", "summary.json"):
        assert (tmp_path / "out" / file).read_bytes() == (tmp_path / "at once" / file).read_bytes()
    assert all(orjson.loads((tmp_path / out / "manifest.json").read_bytes())["finished"] for out in ("out", "at once"))


async def test_what_failed_for_want_of_infrastructure_is_asked_again(tmp_path: Path) -> None:
    toy = Watched(lambda _: False)
    toy.fault = "STORE_UNREACHABLE"
    async with served_at(toy, tmp_path / "toy") as url:
        done = await again(leaks(tmp_path, url, "out"))
        assert (done.exit_code, "the same command goes on from here" in done.output) == (3, True)
        assert orjson.loads((tmp_path / "out/manifest.json").read_bytes())["finished"] is None
        toy.fault = None
        assert (await again(leaks(tmp_path, url, "out"))).exit_code == 0
    assert not any(row["blame"] for row in lines(tmp_path / "out", "trials.jsonl"))
    assert summary(tmp_path / "out")["systems"]["toy"]["at rest"]["leaks"]["of"] == 48


async def test_what_the_system_itself_failed_at_is_not_asked_again(tmp_path: Path) -> None:
    toy = Watched(lambda _: False)
    toy.fault = "INTERNAL"
    async with served_at(toy, tmp_path / "toy") as url:
        assert "the same command" not in (await again(leaks(tmp_path, url, "out"))).output
        asked = len(toy.log)
        assert (await again(leaks(tmp_path, url, "out"))).exit_code == 3
        assert len([call for call in toy.log[asked:] if call[0] != "reset"]) == 0


async def test_a_folder_of_another_configuration_version_or_suite_is_refused_with_a_word(tmp_path: Path) -> None:
    toy = Watched(lambda _: False)
    async with served_at(toy, tmp_path / "toy") as url:
        words = forgetting(tmp_path, url, "out")
        assert (await again(words)).exit_code == 0
        manifest = tmp_path / "out/manifest.json"
        before = (tmp_path / "out/targets.jsonl").read_bytes()
        other = await again([*words, "--targets", "3"])
        assert (other.exit_code, "targets: then 2, now 3" in other.output) == (2, True)
        k = await again([*words, "--k", "3"])
        assert k.exit_code == 2
        assert "another configuration" in k.output
        wrong = await again(leaks(tmp_path, url, "out"))
        assert (wrong.exit_code, "holds results of forgetting" in wrong.output) == (2, True)
        told = orjson.loads(manifest.read_bytes())
        for content, sentence in (
            (orjson.dumps(told | {"schema_version": 9}), "has schema version 9, and this version knows 1"),
            (orjson.dumps(told | {"mood": 1}), "mood: Unexpected keyword argument"),
            (b"{", "is no suite's"),
        ):
            manifest.write_bytes(content)
            refused = await again(words)
            assert (refused.exit_code, sentence in " ".join(refused.output.split())) == (2, True), refused.output
            assert manifest.read_bytes() == content
        assert (tmp_path / "out/targets.jsonl").read_bytes() == before
