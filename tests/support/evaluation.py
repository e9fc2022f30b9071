"""Small runs of the evaluator against a toy that is really served."""

import io
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
from rich.console import Console

from memdock.server import ServeOptions, Server
from memdock.sqlite_ledger import SqliteLedger
from memdock.system import System
from memdock_evaluator.results.rows import Row
from memdock_evaluator.run.evaluation import RunEnd, evaluate
from memdock_evaluator.run.progress import show_progress
from memdock_evaluator.run.settings import DataSource, RunSettings
from support.toys import ToySystem

NO_SUCH = "There is no such information."


def session(time: str, *texts: str) -> dict[str, Any]:
    """A sitting in which user and assistant take turns."""
    roles = ("user", "assistant")
    return {"time": time, "turns": [{"role": roles[n % 2], "text": text} for n, text in enumerate(texts)]}


def question(question_id: str, text: str, *answers: str, **fields: Any) -> dict[str, Any]:
    """A question of one's own data."""
    return {"question_id": question_id, "question": text, "answers": answers or (NO_SUCH,), **fields}


SESSIONS = [
    session(
        "2024-03-04T20:15:00", "My cat is called Bublik", "What a fine name", "He is ginger", "Ginger cats are bold"
    ),
    session("2024-03-11T09:00:00", "Yesterday I bought a green bicycle", "Enjoy the ride"),
    session("2024-05-06T18:30:00", "My sister Olga moved to Perm", "Is it far"),
]
QUESTIONS = [
    question(
        "q0",
        "What is my cat called",
        "Bublik",
        date="2024-06-01T10:00:00",
        evidence_turns=["s1-t0"],
        tags={"topic": "secret-topic-pets"},
    ),
    question("q1", "Where did my sister Olga move", "Perm", date="2024-06-01T10:00:00", evidence_sessions=[3]),
    question("q2", "Which instrument does grandfather play", date="2024-06-01T10:00:00", abstention=True),
    question("q3", "What colour is my bicycle", "green", date="2024-04-01T10:00:00", evidence_turns=["s2-t0"]),
]


def write_data(
    path: Path,
    *,
    dialogues: Sequence[str] = ("0", "1"),
    languages: Sequence[str] = ("en",),
    sessions: Sequence[Any] = SESSIONS,
    questions: Sequence[Any] = QUESTIONS,
) -> Path:
    """A file of one's own format; every dialogue has the same words."""
    lines = [
        orjson.dumps({"dialogue_id": name, "language": language, "sessions": sessions, "questions": questions})
        for language in languages
        for name in dialogues
    ]
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


class Recorder(ToySystem):
    """A toy that keeps every turn and query as it came."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.turns: dict[str, list[Any]] = {}
        self.queries: list[tuple[str, Any]] = []

    async def add(self, space: str, turns: Any, *, final: bool) -> Any:
        self.turns.setdefault(space, []).extend(turns)
        return await super().add(space, turns, final=final)

    async def retrieve(self, space: str, query: Any) -> Any:
        self.queries.append((space, query))
        return await super().retrieve(space, query)


@asynccontextmanager
async def served_url(system: System, folder: Path, **options: Any) -> AsyncIterator[str]:
    """The gRPC address of `system`, served with a ledger in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    async with Server(system, SqliteLedger(folder / "ledger.db"), ServeOptions(drain_s=1.0, **options)) as server:
        yield f"grpc://127.0.0.1:{server.ports['grpc']}"


def settings(data: Path, out: Path | str, **fields: Any) -> RunSettings:
    """A run of the file, impatient so that a test is quick, and without a trial, whose calls a test would count."""
    defaults: Mapping[str, Any] = {
        "patience_s": 0.2,
        "call_timeout_s": 10.0,
        "flush_timeout_s": 10.0,
        "trial": False,
    }
    return RunSettings(data=(DataSource(path=str(data)),), out=str(out), **{**defaults, **fields})


async def ran(run: RunSettings) -> tuple[RunEnd, str]:
    """The end of a run, and what it said meanwhile."""
    said = io.StringIO()
    end = await evaluate(run, show_progress(Console(file=said, width=200)))
    return end, said.getvalue()


def rows(out: Path) -> list[Row]:
    """The rows of a run's folder."""
    return [Row.from_json(line) for line in (out / "outcomes.jsonl").read_bytes().splitlines()]


def row_of(out: Path, question_id: str, **fields: Any) -> Row:
    """The only row of a question (in a dialogue, of a system ...)."""
    found = [
        row
        for row in rows(out)
        if row.question_id == question_id and all(getattr(row, name) == value for name, value in fields.items())
    ]
    assert len(found) == 1, f"{len(found)} rows of {question_id} {fields}"
    return found[0]
