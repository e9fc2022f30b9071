"""SIGKILL at random moments of a run's length: what goes on ends as if nothing had happened."""

import asyncio
import os
import random
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson
import pytest

from support.evaluation import QUESTIONS, served_url, write_data
from support.model_server import ModelServer, serve_models
from support.processes import clean_environment, command_path
from support.served import until
from support.toys import ToySystem

MOMENTS, KILLS, AT_ONCE = 30, 3, 2
DIALOGUES, CONCURRENCY, LATENCY_S = 10, 2, 0.03
SYSTEMS = 2

DIFFER = ("manifest.json", "timings.jsonl", "report.", "tables/latency", "tables/cost", "tables/systems")
"""What holds ids and times of a run, and what the memory system's own models have cost: a kill lets it answer twice."""


def answer(body: dict[str, Any]) -> str:
    """The same whenever the same is asked."""
    return f"Bublik {len(str(body['messages'])) % 7}"


def verdict(body: dict[str, Any]) -> str:
    return f'{{"verdict": {len(str(body["messages"])) % 4}}}'


@dataclass(slots=True, kw_only=True)
class Killed:
    """A run with models of its own; `url` is the memory system that all share."""

    out: Path
    data: Path
    url: str
    answers: ModelServer
    verdicts: ModelServer

    @property
    def calls(self) -> int:
        return len(self.answers.requests) + len(self.verdicts.requests)

    @asynccontextmanager
    async def started(self) -> AsyncIterator[asyncio.subprocess.Process]:
        """The command's process, from where it has begun to work or gone on; it does not outlive the block."""
        flags = ["--data", self.data, "--out", self.out, "--url", self.url, "--system", "toy", "--baseline", "oracle"]
        models = ["--answer-url", self.answers.url, "--answer-model", "m"]
        models += ["--judge-url", self.verdicts.url, "--judge-model", "m"]
        goes_on = (self.out / "manifest.json").exists()
        with self.log.open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                *map(str, (command_path("memdock-eval"), "run", *flags, *models)),
                *("--concurrency", str(CONCURRENCY), "--keep", "--no-trial"),
                env=clean_environment(),
                stdout=log,
                stderr=log,
            )
        try:
            await until(lambda: self._has_begun(goes_on) or process.returncode is not None, within_s=60.0)
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()

    @property
    def log(self) -> Path:
        return self.out.with_suffix(".log")

    def _has_begun(self, goes_on: bool) -> bool:
        said = self.log.read_text()
        return "the run in" in said if goes_on else (self.out / "manifest.json").exists()

    async def finish(self) -> tuple[float, float]:
        """Runs to the end; how long the work took and how long the figures made of it, in seconds."""
        async with self.started() as process:
            began = time.monotonic()
            await until((self.out / "outcomes.jsonl").exists, within_s=60.0)
            worked = time.monotonic()
            await process.wait()
            assert process.returncode == 0, self.log.read_text()
            return worked - began, time.monotonic() - worked

    async def kill(self, after_s: float) -> bool:
        """Whether it was killed before its end."""
        async with self.started() as process:
            await asyncio.wait([asyncio.create_task(process.wait())], timeout=after_s)
        return process.returncode == -signal.SIGKILL

    @property
    def stage(self) -> str:
        """Of the newest file."""
        if (self.out / "outcomes.jsonl").exists():
            return "figures"
        parts = sorted(self.out.rglob("parts/**/*.jsonl"), key=lambda path: path.stat().st_mtime_ns)
        return parts[-1].name.partition("-")[0] if parts else "nothing yet"


@asynccontextmanager
async def a_run(out: Path, data: Path, url: str) -> AsyncIterator[Killed]:
    async with (
        serve_models(ModelServer(chat=answer, latency_s=LATENCY_S)) as answers,
        serve_models(ModelServer(chat=verdict, latency_s=LATENCY_S)) as verdicts,
    ):
        yield Killed(out=out, data=data, url=url, answers=answers, verdicts=verdicts)


def made(out: Path) -> dict[str, Any]:
    """The content of all files of a run but for `DIFFER`; the summary without the run's id and its times."""
    found: dict[str, Any] = {}
    for path in sorted(out.rglob("*")):
        name = path.relative_to(out).as_posix()
        if path.is_file() and not name.startswith(("parts/", ".", *DIFFER)):
            found[name] = path.read_bytes()
    summary = orjson.loads(found["summary.json"])
    del summary["run_id"], summary["cost"]["systems"]["toy"]
    for system in summary["systems"].values():
        for language in system["languages"].values():
            del language["latency_ms"]
    totals = orjson.loads((out / "manifest.json").read_bytes())["totals"]
    counts = {name: {key: each[key] for key in ("ingest", "coverage", "failed_turns")} for name, each in totals.items()}
    return {**found, "summary.json": summary, "manifest.json": counts}


def turns_held(toy: ToySystem, out: Path) -> list[Counter[str]]:
    """How often the memory system holds each turn, in each space of the run."""
    run_id = orjson.loads((out / "manifest.json").read_bytes())["run_id"]
    spaces = [kept for space, kept in toy.kept.items() if f"-{run_id}-" in space]
    return [Counter(turn.turn_id for memory in kept for turn in memory.turns) for kept in spaces]


def moments(rng: random.Random, worked_s: float, figured_s: float) -> list[list[float]]:
    """For each run the times after which its attempts are killed, counted from where each goes on.

    Spread evenly over the work, one in six over the making of the figures; those of one run lie far apart.
    """
    figures = MOMENTS // 6
    work = MOMENTS - figures
    points = [worked_s * (number + rng.random()) / work for number in range(work)]
    points += [worked_s + figured_s * (number + rng.random()) / figures for number in range(figures)]
    of_run = [points[first :: MOMENTS // KILLS] for first in range(MOMENTS // KILLS)]
    return [[after - before for before, after in pairwise([0.0, *run])] for run in of_run]


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_killed_at_thirty_moments_runs_end_as_if_nothing_had_happened(tmp_path: Path) -> None:
    """Ten runs, each killed three times on its way."""
    seed = int(os.environ.get("KILL_SEED", random.SystemRandom().getrandbits(32)))
    data = write_data(tmp_path / "d.jsonl", dialogues=[str(number) for number in range(DIALOGUES)])
    toy, places, told = ToySystem(delay_s=0.005), asyncio.Semaphore(AT_ONCE), Counter[str]()
    killed, more = 0, 0

    async with served_url(toy, tmp_path / "toy") as url:
        async with a_run(tmp_path / "straight", data, url) as straight:
            lengths = await straight.finish()
            wanted, once = made(straight.out), straight.calls
        held = turns_held(toy, straight.out)
        assert once == SYSTEMS * DIALOGUES * len(QUESTIONS) * 2

        async def one(number: int, waits: list[float]) -> None:
            nonlocal killed, more
            async with places, a_run(tmp_path / f"killed-{number}", data, url) as run:
                kills = 0
                for after_s in waits:
                    kills += await run.kill(after_s)
                    told[run.stage] += 1
                await run.finish()
                found, where = (
                    made(run.out),
                    f"killed after {', '.join(f'{each:.3f}' for each in waits)} s (seed {seed})",
                )
                assert found.keys() == wanted.keys()
                for name, content in wanted.items():
                    assert found[name] == content, f"{name}, {where}"
                assert turns_held(toy, run.out) == held, where
                assert 0 <= run.calls - once <= kills * CONCURRENCY * len(QUESTIONS), "no more than was in flight"
                killed, more = killed + kills, more + run.calls - once

        try:
            async with asyncio.TaskGroup() as group:
                for number, waits in enumerate(moments(random.Random(seed), *lengths)):
                    group.create_task(one(number, waits))
        finally:
            print(
                f"seed {seed} (KILL_SEED): undisturbed {lengths[0]:.1f} s and {lengths[1]:.1f} s for figures, "
                f"{once} calls; {killed} kills, {more} calls more; the newest parts when killed: {dict(told)}"
            )
    assert killed >= MOMENTS // 2
    assert held == [Counter({f"s{s}-t{t}": 1 for s, n in ((1, 4), (2, 2), (3, 2)) for t in range(n)})] * DIALOGUES
