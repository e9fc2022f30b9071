"""The parts of `bench_run` that are processes of their own: a scripted model and a memory system that do little.

`python -m bench.run_parts model FOLDER` and `... memory FOLDER`, with `tests` on the path; each writes its port to
`FOLDER/model` or `FOLDER/memory`. `... run DATA OUT MODEL MEMORY` is a run without its report.
"""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import orjson
import uvloop
from rich.console import Console

from memdock.server import ServeOptions, Server
from memdock.sqlite_ledger import SqliteLedger
from memdock.system import Batch, Outcome, SystemInfo
from memdock.types import (
    Erasure,
    Feature,
    Memory,
    Query,
    Residue,
    Selection,
    Software,
    Source,
    Support,
    Turn,
    TurnState,
)
from memdock_evaluator.answer.endpoint import ModelEndpoint, ModelSettings
from memdock_evaluator.interrupting import run_until_told
from memdock_evaluator.run.evaluation import evaluate
from memdock_evaluator.run.progress import show_progress
from memdock_evaluator.run.settings import DataSource, IngestUnit, RunSettings

LATENCY_S, AT_ONCE = 0.2, 64
JUDGE = "judge"
"""The name of the model that gives verdicts; any other answers."""


def _reply(content: str) -> bytes:
    body = orjson.dumps(
        {
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content}}],
            "usage": {"prompt_tokens": 900, "completion_tokens": 20, "total_tokens": 920},
        }
    )
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


_ANSWER, _VERDICT = _reply("The kettle stands at the dacha."), _reply('{"verdict": 2, "reason": "the same place"}')
_IS_JUDGE = orjson.dumps({"model": JUDGE})[1:-1]


class ModelProtocol(asyncio.Protocol):
    """Just enough HTTP: a request is whole when its `Content-Length` is there, and is answered `LATENCY_S` later."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport, self._received = cast(asyncio.Transport, transport), bytearray()

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            head = bytes(self._received[:end]).lower()
            size = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
            whole = end + 4 + size
            if len(self._received) < whole:
                return
            is_judge = _IS_JUDGE in self._received[end:whole]
            del self._received[:whole]
            asyncio.get_running_loop().call_later(LATENCY_S, self._answer, _VERDICT if is_judge else _ANSWER)

    def _answer(self, reply: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(reply)


class LastTurns:
    """A memory system that gives the last turns of a space, whatever is asked."""

    info = SystemInfo(
        name="last-turns",
        adapter=Software(name="last-turns", version="1"),
        framework=Software(name="none", version="0"),
        features={Feature.SOURCES: Support.NATIVE},
    )

    def __init__(self) -> None:
        self._turns: dict[str, list[Turn]] = {}

    async def add(self, space: str, turns: Sequence[Turn], *, final: bool) -> Batch:
        held = self._turns.setdefault(space, [])
        held += turns
        del held[:-10]
        return Batch(
            outcomes=[Outcome(state=TurnState.SEARCHABLE, memory_ids=(f"m-{turn.turn_id}",)) for turn in turns]
        )

    async def retrieve(self, space: str, query: Query) -> Sequence[Memory]:
        return [
            Memory(
                memory_id=f"m-{turn.turn_id}",
                text=turn.text,
                kind="turn",
                score=None,
                time=turn.time,
                sources=(Source(session_id=turn.session_id, turn_id=turn.turn_id),),
            )
            for turn in self._turns.get(space, [])[-query.top_k :]
        ]

    async def forget(self, space: str, selection: Selection, *, dry_run: bool) -> Erasure:
        raise AssertionError("a run forgets nothing")

    async def reset(self, space: str) -> Sequence[Residue]:
        self._turns.pop(space, None)
        return ()

    async def list_memories(self, space: str, *, after: str, limit: int) -> Sequence[Memory]:
        raise AssertionError("it does not declare that it lists memories")


async def _serve_model(folder: Path) -> None:
    server = await asyncio.get_running_loop().create_server(ModelProtocol, "127.0.0.1", 0, backlog=1024)
    _tell(folder / "model", server.sockets[0].getsockname()[1])
    await server.serve_forever()


async def _serve_memory(folder: Path) -> None:
    ledger = SqliteLedger(folder / "ledger.db")
    async with Server(LastTurns(), ledger, ServeOptions(drain_s=1.0, batch_turns=64)) as server:
        _tell(folder / "memory", server.ports["grpc"])
        await asyncio.Event().wait()


def _tell(path: Path, port: int) -> None:
    """Writes it so that it is there whole."""
    path.with_suffix(".new").write_text(str(port))
    path.with_suffix(".new").rename(path)


def _run(data: str, out: str, model: str, memory: str) -> None:
    """All of a run up to its rows and its manifest."""

    def asked(purpose: str, name: str) -> ModelSettings:
        return ModelSettings(endpoint=ModelEndpoint(purpose=purpose, url=model, model=name, concurrency=AT_ONCE))

    settings = RunSettings(
        data=(DataSource(path=data),),
        out=out,
        url=memory,
        systems=("last-turns",),
        baselines=("oracle",),
        ingest_unit=IngestUnit(name="session"),
        concurrency=32,
        answerer=asked("answer", "answers"),
        judge=asked("judge", JUDGE),
        trial=False,
    )
    run_until_told(evaluate(settings, show_progress(Console(stderr=True))))


if __name__ == "__main__":
    if sys.argv[1] == "run":
        _run(*sys.argv[2:])
    else:
        uvloop.run({"model": _serve_model, "memory": _serve_memory}[sys.argv[1]](Path(sys.argv[2])))
