"""What the reference memory costs beside bare PostgreSQL: `PYTHONPATH=tests python -m bench.bench_pgvector`.

Store: 20,000 ready vectors through the store function, without words (dense) and with them (hybrid), beside a raw
binary COPY of the same vectors, without index and ledger; then the rate of the whole AddTurns path. Retrieve: its time
in the store in a space of 250 memories beside the same SQL by hand. Index: 100,000 memories in one space, recall@10 and
latency of the HNSW index beside the exact scan. Every cap is a ratio inside this run, the median of interleaved rounds.
Vectors are those of real text by the bundled model, with jitter. Exit code 1 when a cap is broken.
"""

import argparse
import logging
import statistics
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace

import structlog
import uvloop

from bench.pgvector_parts import (
    DIMENSION,
    MODEL,
    ReadyEmbedder,
    Vectors,
    Watch,
    database,
    embed,
    jittered,
    pairs,
    postgres,
    ready_chunks,
    real_texts,
)
from memdock import usage
from memdock.client import connect_async
from memdock.server import ServeOptions, Server
from memdock.system import SystemInfo
from memdock.types import Query, Software
from memdock_pgvector.chunks import new_chunk_id
from memdock_pgvector.database import Database
from memdock_pgvector.hnsw import Indexes
from memdock_pgvector.pg_ledger import PgLedger
from memdock_pgvector.ranking import Fusion, Search, exact_statement, search_exactly
from memdock_pgvector.rows import ReadyChunk
from memdock_pgvector.settings import Ranking
from memdock_pgvector.store import add_chunks
from memdock_pgvector.system import RagSystem
from memdock_pgvector.terms import count_terms

STORED = 20_000
SMALL = 250
LARGE = 100_000
MIN_STORE_RATIO = 0.4
MIN_WORDED_STORE_RATIO = 0.15
MAX_RETRIEVE_RATIO = 2.0
MIN_RECALL = 0.98
MIN_SPEEDUP = 5.0
INFO = SystemInfo(name="bench", adapter=Software(name="", version=""), framework=Software(name="", version=""))


def told(what: str, figure: float, word: str, cap: float) -> bool:
    """Prints one cap and whether it holds."""
    holds = figure <= cap if word == "at most" else figure >= cap
    print(f"  {what}: {figure:.2f} ({word} {cap:g}) {'ok' if holds else 'BROKEN'}")
    return holds


async def copy_raw(opened: Database, vectors: Vectors) -> float:
    """Milliseconds of a binary COPY of numbered vectors into a bare table."""
    async with opened.connection() as connection:
        await connection.execute("DROP TABLE IF EXISTS raw; CREATE TABLE raw (id bigint, embedding vector)")
    with Watch() as watch:
        async with (
            opened.transaction() as connection,
            connection.cursor() as cursor,
            cursor.copy("COPY raw FROM STDIN (FORMAT binary)") as copy,
        ):
            copy.set_types(["int8", "vector"])
            for number, vector in enumerate(vectors):
                await copy.write_row((number, vector))
    return watch.ms


async def store(opened: Database, ready: list[ReadyChunk]) -> float:
    """Milliseconds of the store function for the same vectors with their turns, into a space of its own."""
    fresh = [replace(one, chunk=replace(one.chunk, id=new_chunk_id())) for one in ready]
    with Watch() as watch:
        async with opened.transaction() as connection:
            await add_chunks(connection, "stored", fresh, embedder=MODEL, dimension=DIMENSION)
    async with opened.connection() as connection:
        await connection.execute("TRUNCATE chunk, term, space, new_vector")
    return watch.ms


async def add_turns(opened: Database, texts: list[str], vectors: Vectors, count: int) -> float:
    """Milliseconds of `count` pairs through AddTurns over gRPC and Flush: admission, ledger, store."""
    system = RagSystem(INFO, opened, ReadyEmbedder(vectors), Ranking(fusion=Fusion.DENSE))
    turns = [turn for pair, _ in zip(pairs(texts), range(count), strict=False) for turn in pair]
    async with (
        Server(system, PgLedger(opened), ServeOptions()) as server,
        connect_async(f"grpc://127.0.0.1:{server.ports['grpc']}") as client,
    ):
        with Watch() as watch:
            for start in range(0, len(turns), 256):
                await client.add_turns("whole", turns[start : start + 256])
            await client.flush("whole")
        await client.reset("whole")
    return watch.ms


async def measure_store(url: str, texts: list[str], vectors: Vectors, rounds: int) -> bool:
    """Prints the rates of storing; tells whether the caps hold."""
    dense = ready_chunks(texts, vectors, with_terms=False)
    hybrid = ready_chunks(texts, vectors, with_terms=True)
    async with database(url, "bench-store") as opened:
        figures = []
        for _ in range(rounds):
            figures.append((await copy_raw(opened, vectors), await store(opened, dense), await store(opened, hybrid)))
        whole = await add_turns(opened, texts, vectors, 4_000)
    raw, plain, worded = (statistics.median(column) for column in zip(*figures, strict=True))
    print(f"\nstoring {len(vectors):,} ready vectors of {DIMENSION} dimensions, rows a second")
    print(f"  raw binary COPY           {len(vectors) / raw * 1000:>9,.0f}")
    print(f"  store function            {len(vectors) / plain * 1000:>9,.0f}")
    print(f"  ... with terms (hybrid)   {len(vectors) / worded * 1000:>9,.0f}")
    print(f"  AddTurns to Flush, pairs  {4_000 / whole * 1000:>9,.0f}")
    plain_ratio = statistics.median(raw / plain for raw, plain, _ in figures)
    worded_ratio = statistics.median(raw / worded for raw, _, worded in figures)
    held = [
        told("store function beside raw COPY", plain_ratio, "at least", MIN_STORE_RATIO),
        told("store function with terms beside raw COPY", worded_ratio, "at least", MIN_WORDED_STORE_RATIO),
    ]
    return all(held)


async def retrieve_ms(system: RagSystem, text: str) -> float:
    """What the system itself tells of its time in the store."""
    with usage.collect() as meter:
        await system.retrieve("small", Query(text=text))
    return next(one.ms for one in meter.timing if one.stage == "store")


async def by_hand_ms(opened: Database, fusion: Fusion, search: Search) -> float:
    """The same statement with the same parameters on a connection that is held."""
    async with opened.connection() as connection:
        statement, parameters = exact_statement(fusion, search), search.parameters() | {"space": "small"}
        with Watch() as watch:
            cursor = await connection.execute(statement, parameters, prepare=True)
            await cursor.fetchall()
    return watch.ms


async def measure_retrieve(url: str, texts: list[str], vectors: Vectors, calls: int) -> bool:
    """Prints the time of Retrieve in the store; tells whether the cap holds."""
    held = []
    print(f"\nRetrieve in a space of {SMALL} memories, median ms in the store")
    async with database(url, "bench-retrieve") as opened:
        async with opened.transaction() as connection:
            ready = ready_chunks(texts, vectors[:SMALL], with_terms=True)
            await add_chunks(connection, "small", ready, embedder=MODEL, dimension=DIMENSION)
        for fusion in (Fusion.DENSE, Fusion.HYBRID):
            system = RagSystem(INFO, opened, ReadyEmbedder(vectors), Ranking(fusion=fusion))
            times = []
            for number in range(calls):
                text = texts[number % len(texts)][:60]
                search = Search(embedder=MODEL, vector=vectors[number], terms=list(count_terms(text)), top_k=10)
                if number % 2:
                    by_hand_first = await by_hand_ms(opened, fusion, search)
                    times.append((await retrieve_ms(system, text), by_hand_first))
                else:
                    times.append((await retrieve_ms(system, text), await by_hand_ms(opened, fusion, search)))
            system_ms, hand_ms = (statistics.median(column) for column in zip(*times[20:], strict=True))
            print(f"  {fusion}: {system_ms:.2f}, the same SQL by hand {hand_ms:.2f}")
            held.append(told(f"Retrieve beside its SQL, {fusion}", system_ms / hand_ms, "at most", MAX_RETRIEVE_RATIO))
    return all(held)


async def timed(ask: Callable[[Search], Awaitable[object]], searches: list[Search]) -> tuple[list[object], float]:
    """The answers, and the median milliseconds."""
    answers, times = [], []
    for search in searches:
        with Watch() as watch:
            answers.append(await ask(search))
        times.append(watch.ms)
    return answers, statistics.median(times)


def found_ids(answer: object) -> set[object]:
    """The chunks of an answer."""
    return {chunk.id for chunk, _ in answer} if isinstance(answer, list) else set()


async def measure_index(url: str, texts: list[str], vectors: Vectors, queries: Vectors) -> bool:
    """Prints the curve; tells whether it has the wanted point."""
    searches = [Search(embedder=MODEL, vector=query, terms=(), top_k=10) for query in queries]
    async with database(url, "bench-index") as opened:
        for start in range(0, len(vectors), 10_000):
            ready = ready_chunks(texts, vectors[start : start + 10_000], with_terms=False)
            async with opened.transaction() as connection:
                await add_chunks(connection, "large", ready, embedder=MODEL, dimension=DIMENSION)
        ranking = Ranking(fusion=Fusion.DENSE, index_from=len(vectors))
        builder = Indexes(opened, ranking)
        with Watch() as watch:
            await builder._converge()
        print(f"\n{len(vectors):,} memories in one space; the index was built in {watch.ms / 1000:.0f} s")
        async with opened.connection() as connection:

            async def exactly(search: Search) -> object:
                return await search_exactly(connection, "large", Fusion.DENSE, search)

            await timed(exactly, searches[:3])
            exact, exact_ms = await timed(exactly, searches)
            print(f"  {'exact':<10} recall@10 1.000   {exact_ms:7.2f} ms")
            points = []
            for ef_search in (20, 40, 80, 120, 200, 400, 800):
                indexes = Indexes(opened, replace(ranking, ef_search=ef_search))
                await indexes._converge()

                async def by_index(search: Search, indexes: Indexes = indexes) -> object:
                    return await indexes.search(connection, "large", search)

                await timed(by_index, searches[:3])
                near, near_ms = await timed(by_index, searches)
                shares = [len(found_ids(a) & found_ids(b)) / 10 for a, b in zip(near, exact, strict=True)]
                recall = statistics.mean(shares)
                points.append((recall, exact_ms / near_ms))
                figures = f"recall@10 {recall:.3f}   {near_ms:7.2f} ms   {exact_ms / near_ms:5.1f} times"
                print(f"  ef {ef_search:<7} {figures}")
    best = max((speedup for recall, speedup in points if recall >= MIN_RECALL), default=0.0)
    return told(f"times faster than exact at recall {MIN_RECALL}", best, "at least", MIN_SPEEDUP)


async def measure(rounds: int, calls: int, large: int, share: float) -> bool:
    """All of it; tells whether every cap holds."""
    texts = real_texts(400, 160)
    base = await embed(texts)
    vectors = jittered(base, large, share=share, seed=1)
    queries = jittered(base, 200, share=share, seed=2)
    print(f"vectors of {len(base)} real texts by the bundled model, with jitter {share:g}")
    async with postgres() as url:
        held = [
            await measure_store(url, texts, vectors[:STORED], rounds),
            await measure_retrieve(url, texts, vectors, calls),
            await measure_index(url, texts, vectors, queries),
        ]
    return all(held)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="of storing")
    parser.add_argument("--calls", type=int, default=200, help="of Retrieve")
    parser.add_argument("--memories", type=int, default=LARGE, help="in the large space")
    parser.add_argument("--jitter", type=float, default=0.3, help="noise beside a vector's length")
    parsed = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    held = uvloop.run(measure(parsed.rounds, parsed.calls, parsed.memories, parsed.jitter))
    sys.exit(0 if held else 1)


if __name__ == "__main__":
    main()
