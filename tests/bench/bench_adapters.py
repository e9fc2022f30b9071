"""What our code costs around a framework: `PYTHONPATH=tests python -m bench.bench_adapters`.

For each adapter whose environment is built: AddTurns until Flush is done, and Retrieve, over gRPC, less the time inside
the framework's own functions; the median of the differences, and of the rounds. Models are scripted and answer at once.
Data are kept in memory (`/dev/shm`), since a disk's waits are no code; beside it what is ours on the disk, where an add
waits for four commits. Exit code 1 where the share in memory is above the cap.

Beside it, for information: how fast the reference memory stores and searches ready vectors, and mem0 without a model
(`infer=False`) on the same PostgreSQL. The reference memory is asked over gRPC and keeps a ledger, mem0 is called by
its own functions.
"""

import argparse
import asyncio
import json
import logging
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import structlog

from bench.bench_pgvector import INFO, told
from bench.pgvector_parts import ReadyEmbedder, Vectors, Watch, database, embed, jittered, postgres, real_texts
from memdock.client import connect_async
from memdock.server import ServeOptions, Server
from memdock.types import Turn
from memdock_pgvector.pg_ledger import PgLedger
from memdock_pgvector.ranking import Fusion
from memdock_pgvector.settings import Ranking
from memdock_pgvector.system import RagSystem
from support.adapters import ADAPTERS, ROOT, Adapter, to_models, to_service
from support.model_server import ModelServer
from support.model_thread import in_thread, models_in_thread
from support.processes import clean_environment
from support.words import embed_words

MAX_SHARE_MS = 5.0
DISK = tempfile.gettempdir()
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else DISK
WARM = 5
FUNCTIONS = {
    "mem0": ("mem0:Memory.add", "mem0:Memory.search"),
    "mem0g": (
        "mem0.memory.kuzu_memory:MemoryGraph._retrieve_nodes_from_data",
        "mem0.memory.kuzu_memory:MemoryGraph._establish_nodes_relations_from_data",
        "mem0.memory.kuzu_memory:MemoryGraph._search_graph_db",
        "mem0.memory.kuzu_memory:MemoryGraph._get_delete_entities_from_search_output",
        "mem0.memory.kuzu_memory:MemoryGraph._delete_entities",
        "mem0.memory.kuzu_memory:MemoryGraph._add_entities",
        "mem0.memory.kuzu_memory:MemoryGraph.search",
        "openai.resources.embeddings:Embeddings.create",
        "kuzu:Connection.execute",
    ),
    "graphiti": (
        "graphiti_core:Graphiti.add_episode",
        "graphiti_core:Graphiti.search_",
        "graphiti_core.nodes:EpisodicNode.save",
        "graphiti_core.nodes:EpisodicNode.get_by_uuids",
    ),
    "cortex": (
        "cortex.memory_system:AgenticMemorySystem.add_note",
        "cortex.memory_system:AgenticMemorySystem.search",
        "chromadb.api.client:Client.get_collection",
        "chromadb.api.client:Client.get_or_create_collection",
        "chromadb.api.models.Collection:Collection.get",
        "chromadb.api.models.Collection:Collection.upsert",
        "chromadb.api.models.Collection:Collection.query",
    ),
    "memos": (
        "memos.api.handlers.add_handler:AddHandler.handle_add_memories",
        "memos.api.handlers.search_handler:SearchHandler.handle_search_memories",
    ),
    "memos-light": (
        "memos.memories.textual.general:GeneralTextMemory.extract",
        "memos.memories.textual.general:GeneralTextMemory.add",
        "memos.embedders.universal_api:UniversalAPIEmbedder.embed",
        "qdrant_client.qdrant_client:QdrantClient.collection_exists",
        "qdrant_client.qdrant_client:QdrantClient.scroll",
    ),
    "zep-cloud": ("httpx:AsyncHTTPTransport.handle_async_request", "memdock_zep_cloud.system:settled"),
    "mem0-hosted": ("httpx:AsyncHTTPTransport.handle_async_request", "memdock_mem0_hosted.system:settled"),
}
"""The functions of the framework, and of its store, that an add and a search of its adapter call.

Of a hosted service: its answers, and the waiting until it has worked a turn in; its own client is counted as ours.
"""


def built(name: str) -> Path | None:
    """The Python of an adapter's environment, where it is built."""
    command = [sys.executable, str(ROOT / "adapters/environment.py"), name, "--built"]
    done = subprocess.run(command, env=clean_environment(), stdout=subprocess.PIPE, text=True, check=False)
    return None if done.returncode else Path(done.stdout.strip()) / "bin/python"


def commit_ms() -> float:
    """The median time of a small commit of SQLite that waits for the disk."""
    with (
        tempfile.TemporaryDirectory(dir=DISK) as folder,
        closing(sqlite3.connect(f"{folder}/a", isolation_level=None)) as db,
    ):
        db.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE a (b)")
        times = []
        for _ in range(50):
            with Watch() as watch:
                db.execute("INSERT INTO a VALUES (1)")
            times.append(watch.ms)
    return statistics.median(times)


def inside(python: Path, what: str, options: dict[str, Any]) -> Any:
    """What `bench.adapter_inside` measures in that environment."""
    environment = clean_environment({"PYTHONPATH": str(ROOT / "tests")})
    command = [str(python), "-m", "bench.adapter_inside", what]
    done = subprocess.run(
        command, input=json.dumps(options), env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


@contextmanager
def asked_by(adapter: Adapter, url: str) -> Iterator[dict[str, str]]:
    """The options by which the adapter reaches the models at `url`, or a fake of its service that asks them."""
    if adapter.service is None:
        yield to_models(url)
        return
    service = adapter.service()
    service.model_url = url
    with in_thread(service.serving, adapter.name):
        yield to_service(service)


def measure_share(adapter: Adapter, python: Path, texts: list[str], calls: int, rounds: int) -> bool:
    """Prints an adapter's own share, the median of its rounds; tells whether the caps hold."""
    server = ModelServer(chat=adapter.chat, embed=embed_words)
    with models_in_thread(server), asked_by(adapter, server.url) as given:
        words = [*adapter.flags, *(word for pair in given.items() for word in pair)]
        options = {"words": words, "functions": FUNCTIONS[adapter.name], "texts": texts, "calls": calls}
        measured = [
            tuple(inside(python, adapter.home, {**options, "folder": each}) for each in (MEMORY, DISK))
            for _ in range(rounds)
        ]
    held = True
    for call in ("add", "retrieve"):
        in_memory = [medians(memory[call]) for memory, _ in measured]
        whole, within, ours = (statistics.median(column) for column in zip(*in_memory, strict=True))
        on_disk = statistics.median(medians(disk[call])[2] for _, disk in measured)
        print(f"  {adapter.name:<12}{call:<10}{whole:>9.1f}{within:>11.1f}{ours:>9.2f}{on_disk:>9.2f}", end="")
        held = told(f"  {ours / within:.2f} of the framework's; ours", ours, "at most", MAX_SHARE_MS) and held
    return held


def medians(times: Sequence[tuple[float, float]]) -> tuple[float, float, float]:
    """Of whole calls, of the framework in them, and of what is ours: milliseconds, without the first calls."""
    whole, within = zip(*times[WARM:], strict=True)
    ours = [total - part for total, part in times[WARM:]]
    return statistics.median(whole), statistics.median(within), statistics.median(ours)


async def reference(url: str, space: str, texts: list[str], vectors: Vectors, searches: int) -> dict[str, float]:
    """The reference memory over gRPC: messages a second until Flush is done, ms a search."""
    turns = [
        Turn(turn_id=f"t{n}", session_id=f"s{n // 20}", role=("user", "assistant")[n % 2], text=text)
        for n, text in enumerate(texts)
    ]
    async with database(url, "bench-adapters") as opened:
        system = RagSystem(INFO, opened, ReadyEmbedder(vectors), Ranking(fusion=Fusion.DENSE))
        async with (
            Server(system, PgLedger(opened), ServeOptions()) as server,
            connect_async(f"grpc://127.0.0.1:{server.ports['grpc']}") as client,
        ):
            with Watch() as storing:
                for start in range(0, len(turns), 256):
                    await client.add_turns(space, turns[start : start + 256])
                await client.flush(space)
            with Watch() as searching:
                for text in texts[:searches]:
                    await client.retrieve(space, text)
    return {"messages_a_second": len(texts) / storing.ms * 1000, "search_ms": searching.ms / searches}


async def measure_stores(python: Path, texts: list[str], rounds: int, searches: int) -> None:
    """Prints both memories' rates on one PostgreSQL, in rounds that take turns."""
    vectors = jittered(await embed(texts[:400]), len(texts), share=0.3, seed=1)
    rows = []
    async with postgres() as url:
        for number in range(rounds):
            options = {"database": url, "space": f"r{number}", "texts": texts, "searches": searches}
            plain = await asyncio.to_thread(inside, python, "plain", {**options, "vectors": vectors.tolist()})
            rows.append((await reference(url, f"r{number}", texts, vectors, searches), plain))
    print(f"\n{len(texts)} messages with ready vectors of {vectors.shape[1]} dimensions on one PostgreSQL")
    for figure, words in (("messages_a_second", "stored, messages a second"), ("search_ms", "search, ms")):
        ours, theirs = (statistics.median(row[place][figure] for row in rows) for place in (0, 1))
        ratio = statistics.median(row[0][figure] / row[1][figure] for row in rows)
        print(f"  {words:<28}reference {ours:>8.1f}   mem0 without a model {theirs:>8.1f}   ratio {ratio:.2f}")


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=40, help="of AddTurns and of Retrieve in a round")
    parser.add_argument("--messages", type=int, default=400, help="that both stores take")
    parser.add_argument("--rounds", type=int, default=3, help="of each measurement")
    parsed = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    pythons = {adapter.name: built(adapter.home) for adapter in ADAPTERS}
    texts = real_texts(max(parsed.calls + 1, parsed.messages), 160)
    texts = [f"{place} {text}".strip() for place, text in enumerate(texts)]
    print(f"one commit on this disk: {commit_ms():.2f} ms")
    print("median ms of a call             whole  framework     ours  on disk")
    held = True
    for adapter in ADAPTERS:
        python = pythons[adapter.name]
        if python is None:
            print(f"  {adapter.name:<12}not measured: no environment is built")
            continue
        held = measure_share(adapter, python, texts, parsed.calls, parsed.rounds) and held
    if (mem0 := pythons.get("mem0")) is not None:
        asyncio.run(measure_stores(mem0, texts[: parsed.messages], parsed.rounds, searches=100))
    sys.exit(0 if held else 1)


if __name__ == "__main__":
    main()
