"""Eight shards of a run in RUMBA's shape, merged: every figure and table is that of one run."""

from pathlib import Path
from random import Random
from typing import Any

import orjson
import pytest
from click.testing import CliRunner, Result

from memdock_evaluator.cli import main
from memdock_evaluator.dataset import taxonomy
from memdock_evaluator.report.writing import write_report
from memdock_evaluator.run.choice import Shard
from memdock_evaluator.run.settings import IngestUnit
from support.evaluation import question, ran, served_url, session, settings
from support.large_rows import DIALOGUES, QUESTIONS, SESSIONS, TURNS
from support.toys import ToySystem

SHARDS = 8
WORDS = [f"word{number}" for number in range(400)]


def write_shape(path: Path) -> Path:
    """As many dialogues, sessions, turns and questions as RUMBA has in one of its languages, in short turns."""
    random = Random(11)
    with path.open("wb") as file:
        for number in range(DIALOGUES):
            sessions = [
                session(
                    f"2024-{index // 28 + 1:02}-{index % 28 + 1:02}T19:30:00",
                    *(" ".join(random.choices(WORDS, k=8)) for _ in range(TURNS)),
                )
                for index in range(SESSIONS)
            ]
            count = len(range(number, QUESTIONS, DIALOGUES))
            record = {
                "dialogue_id": str(number),
                "language": "en",
                "sessions": sessions,
                "questions": [_question(random, place, sessions) for place in range(count)],
            }
            file.write(orjson.dumps(record) + b"\n")
    return path


def _question(random: Random, place: int, sessions: list[dict[str, Any]]) -> dict[str, Any]:
    index, turn = random.randrange(SESSIONS), random.randrange(TURNS)
    text = sessions[index]["turns"][turn]["text"].split()
    semantic = taxonomy.TYPES[place % len(taxonomy.TYPES)]
    if semantic == "Abstention":
        return question(f"q{place}", " ".join(random.choices(WORDS, k=3)), abstention=True, tags={"semantic": semantic})
    return question(
        f"q{place}",
        " ".join(random.sample(text, 3)),
        text[-1],
        evidence_turns=[f"s{index + 1}-t{turn}"],
        tags={"semantic": semantic},
    )


def invoke(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def figures(out: Path) -> dict[str, Any]:
    """What is computed, but for ids and times."""
    names = ["outcomes.jsonl", "statistics.json", *sorted(f"tables/{path.name}" for path in out.glob("tables/*"))]
    found: dict[str, Any] = {name: (out / name).read_bytes() for name in names if not name.startswith("tables/latency")}
    summary = orjson.loads((out / "summary.json").read_bytes())
    del summary["run_id"]
    for system in summary["systems"].values():
        for language in system["languages"].values():
            del language["latency_ms"]
    return {**found, "summary.json": summary}


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_eight_shards_in_rumbas_shape_are_one_run(tmp_path: Path) -> None:
    data = write_shape(tmp_path / "d.jsonl")
    options: dict[str, Any] = {
        "systems": ("toy",),
        "baselines": ("oracle",),
        "ingest_unit": IngestUnit(name="session"),
        "call_timeout_s": 60.0,
        "flush_timeout_s": 300.0,
    }
    async with served_url(ToySystem(), tmp_path / "toy") as url:
        end, _ = await ran(settings(data, tmp_path / "whole", url=url, **options))
        assert (end.complete, end.expected) == (True, 2 * QUESTIONS)
        for number in range(1, SHARDS + 1):
            shard = Shard(number=number, of=SHARDS)
            end, _ = await ran(settings(data, tmp_path / f"shard-{number}", url=url, shard=shard, **options))
            assert end.complete
    write_report(tmp_path / "whole")
    said = invoke("merge", tmp_path / "merged", *(tmp_path / f"shard-{number}" for number in range(SHARDS, 0, -1)))
    assert said.exit_code == 0, said.output
    wanted, found = figures(tmp_path / "whole"), figures(tmp_path / "merged")
    assert found.keys() == wanted.keys()
    for name, content in wanted.items():
        assert found[name] == content, name
    assert len(wanted) > 30
    said = invoke("verify", tmp_path / "merged")
    assert said.exit_code == 0, said.output
