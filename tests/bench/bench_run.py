"""A run of RUMBA's size against the least that its model calls can take: `python -m bench.bench_run [RUNS]`.

With `tests` on the path. 85 dialogues of 35 sessions x 14 turns of 694 characters, 1,543 questions; a memory system
that does next to nothing behind the protocol, and the baseline `oracle`; one provider that answers and judges after
0.2 s, at 64 calls at once. Model and memory system are processes of their own. A run is measured from the start of its
process to its manifest; report and statistics are left out (`bench_statistics`).

*bare*: as many calls by a plain loop of aiohttp, just before each run: the least that this machine can do. *ideal*:
calls x 0.2 s / 64, and nothing else. The best of RUNS (3) counts, for a machine that is busy with something else says
nothing of the run: the processor time of the evaluator and the machine's load stand beside it. Exit code 1 where that
run takes more than 1.15 of its bare loop, or any more than 1 GB.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import aiohttp
import orjson

from bench.run_parts import AT_ONCE, JUDGE, LATENCY_S
from memdock_evaluator.results.manifest import Manifest

RATIO, MEGABYTES, RUNS = 1.15, 1000, 3
DIALOGUES, QUESTIONS = 85, 1543
SESSIONS, TURNS, TURN_CHARACTERS = 35, 14, 694
UNITS = 2
"""The memory system and the baseline."""
CALLS = UNITS * 2 * QUESTIONS
_WORDS = ("дача", "электричка", "поликлиника", "рассада", "ипотека", "маршрутка", "кот", "огород", "чайник", "вокзал")


def main() -> int:
    """Measures and prints; 0 where the caps are held."""
    with tempfile.TemporaryDirectory(prefix="memdock-bench-") as made:
        folder = Path(made)
        data = write_data(folder / "rumba.jsonl")
        ideal_s = CALLS * LATENCY_S / AT_ONCE
        print(f"{CALLS:,} calls at {AT_ONCE} at once, {LATENCY_S:g} s each: ideal {ideal_s:.2f} s", flush=True)
        best, most = float("inf"), 0.0
        for number in range(int(sys.argv[1]) if len(sys.argv) > 1 else RUNS):
            with part("model", folder) as model, part("memory", folder) as memory:
                url, out = f"http://127.0.0.1:{model}/v1", folder / f"run-{number}"
                bare_s = asyncio.run(bare(url))
                run_s, own_s, megabytes = evaluated(data, out, url, f"grpc://127.0.0.1:{memory}")
            counted(out)
            print(f"bare loop {bare_s:.2f} s ({bare_s / ideal_s:.3f} of the ideal)")
            print(f"run {run_s:.2f} s ({run_s / ideal_s:.3f} of the ideal, {run_s / bare_s:.3f} of the bare loop)")
            load = f"{own_s:.1f} s of a processor, and as much as {os.getloadavg()[0]:.0f} processes wanted one"
            print(f"  the evaluator took {load}; its peak memory {megabytes:.0f} MB", flush=True)
            best, most = min(best, run_s / bare_s), max(most, megabytes)
    print(f"best {best:.3f} of its bare loop; the cap is {RATIO}")
    return int(best > RATIO or most > MEGABYTES)


def write_data(path: Path) -> Path:
    """The dialogues; the same every time."""
    random = Random(7)
    with path.open("wb") as file:
        for number in range(DIALOGUES):
            file.write(orjson.dumps(_dialogue(number, random)) + b"\n")
    return path


def _dialogue(number: int, random: Random) -> dict[str, object]:
    sessions = [
        {
            "time": f"2024-{1 + place // 28:02}-{1 + place % 28:02}T10:00:00",
            "turns": [{"role": ("user", "assistant")[turn % 2], "text": _text(random)} for turn in range(TURNS)],
        }
        for place in range(SESSIONS)
    ]
    questions = [
        {
            "question_id": f"q{place}",
            "question": f"Где стоит чайник номер {number}-{place}?",
            "answers": ["На даче"],
            "date": "2024-06-01T10:00:00",
            "evidence_turns": [f"s{1 + place % SESSIONS}-t0"],
        }
        for place in range(len(range(number, QUESTIONS, DIALOGUES)))
    ]
    return {"dialogue_id": f"{number}", "language": "ru", "sessions": sessions, "questions": questions}


def _text(random: Random) -> str:
    return " ".join(random.choices(_WORDS, k=TURN_CHARACTERS // 7))[:TURN_CHARACTERS]


@contextmanager
def part(name: str, folder: Path) -> Iterator[int]:
    """A process of `run_parts`; its port."""
    words = [sys.executable, "-m", "bench.run_parts", name, str(folder)]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    try:
        while not (folder / name).exists():
            if process.poll() is not None:
                sys.exit(f"the part {name!r} ended with {process.returncode}")
            time.sleep(0.02)
        yield int((folder / name).read_text())
    finally:
        process.kill()
        process.wait()
        (folder / name).unlink(missing_ok=True)


async def bare(url: str) -> float:
    """Seconds of the calls alone, with prompts of the run's size, by the plainest loop."""
    body = orjson.dumps({"model": JUDGE, "messages": [{"role": "user", "content": "слово " * 1200}], "seed": 0})
    places = asyncio.Semaphore(AT_ONCE)

    async def call() -> None:
        async with places, session.post(f"{url}/chat/completions", data=body) as answer:
            orjson.loads(await answer.read())

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        started = time.perf_counter()
        await asyncio.gather(*(call() for _ in range(CALLS)))
        return time.perf_counter() - started


def evaluated(data: Path, out: Path, model: str, memory: str) -> tuple[float, float, float]:
    """Wall seconds, processor seconds and peak megabytes of the evaluator's process."""
    words = [sys.executable, "-m", "bench.run_parts", "run", str(data), str(out), model, memory]
    started = time.perf_counter()
    process = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    wall_s = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"the run ended with {process.returncode}")
    return wall_s, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def counted(out: Path) -> None:
    """Ends where the run is not what was to be measured."""
    manifest = Manifest.from_json((out / "manifest.json").read_bytes(), place="manifest.json")
    answered = sum(each.coverage.scored for each in manifest.totals.values())
    stored = manifest.totals["last-turns"].ingest.searchable
    if (answered, stored) != (UNITS * QUESTIONS, DIALOGUES * SESSIONS * TURNS):
        sys.exit(f"{answered} questions were scored and {stored} turns stored")


if __name__ == "__main__":
    sys.exit(main())
