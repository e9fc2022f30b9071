"""What the bench of the reference memory is made of: real text, ready vectors, a PostgreSQL that is thrown away."""

import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import cycle, islice
from pathlib import Path

import numpy as np
import yaml
from numpy.typing import NDArray

import memdock_evaluator
from memdock.adapter.postgres import EmbeddedPostgres
from memdock.types import Turn
from memdock_embedder.backends import Embedded, InputType
from memdock_embedder.bundled import BundledEmbedder
from memdock_pgvector.chunks import Chunk, new_chunk_id
from memdock_pgvector.database import Database
from memdock_pgvector.migrate import migrate
from memdock_pgvector.rows import ReadyChunk

Vectors = NDArray[np.float32]

DIALOGUES = Path(memdock_evaluator.__file__).parent / "data" / "dialogues"
MODEL, DIMENSION = "ready", 384


class ReadyEmbedder:
    """Answers vectors that are there already, in turn: the model's own time is not what is measured."""

    model, dimension = MODEL, DIMENSION

    def __init__(self, vectors: Vectors) -> None:
        self._vectors = cycle(vectors)

    async def embed(self, texts: Sequence[str], input_type: InputType) -> Embedded:
        """The next vectors."""
        return Embedded(vectors=np.array(list(islice(self._vectors, len(texts)))), tokens=0, calls=0)

    async def close(self) -> None:
        """Nothing is held."""


def real_texts(count: int, longest: int) -> list[str]:
    """Turns of the data set that comes with the evaluator, in both languages, cut to `longest` characters."""
    files = [yaml.safe_load(path.read_text()) for path in sorted(DIALOGUES.glob("*.yaml"))]
    turns = [turn for file in files for session in file["sessions"] for turn in session["turns"]]
    texts = [" ".join(str(turn[language]).split())[:longest] for language in ("ru", "en") for turn in turns]
    step = max(1, len(texts) // count)
    return texts[::step][:count]


async def embed(texts: Sequence[str]) -> Vectors:
    """Vectors of texts by the bundled model."""
    embedder = BundledEmbedder()
    vectors = (await embedder.embed(texts, "passage")).vectors
    await embedder.close()
    return vectors


def jittered(vectors: Vectors, count: int, *, share: float, seed: int) -> Vectors:
    """`count` unit vectors around the given ones: noise of `share` times their length is added, in all directions."""
    numbers = np.random.default_rng(seed)
    base = vectors[numbers.integers(len(vectors), size=count)]
    noise = numbers.standard_normal(base.shape, dtype=np.float32) * np.float32(share / np.sqrt(base.shape[1]))
    made = base + noise
    return np.asarray(made / np.linalg.norm(made, axis=1, keepdims=True), dtype=np.float32)


def pairs(texts: Sequence[str]) -> Iterator[tuple[Turn, Turn]]:
    """A user's turn and its reply, without end; ten pairs a session."""
    for number, (said, reply) in enumerate(zip(cycle(texts), cycle(texts[1:]), strict=False)):
        session_id = f"s{number // 10}"
        yield (
            Turn(turn_id=f"{number}u", session_id=session_id, role="user", text=said),
            Turn(turn_id=f"{number}a", session_id=session_id, role="assistant", text=reply),
        )


def ready_chunks(texts: Sequence[str], vectors: Vectors, *, with_terms: bool) -> list[ReadyChunk]:
    """One chunk a vector."""
    chunks = [Chunk(id=new_chunk_id(), turns=pair) for pair in islice(pairs(texts), len(vectors))]
    return [
        ReadyChunk(chunk=chunk, vector=vector, terms=chunk.terms if with_terms else {})
        for chunk, vector in zip(chunks, vectors, strict=True)
    ]


@asynccontextmanager
async def postgres() -> AsyncIterator[str]:
    """The address of a PostgreSQL that lasts as long as the block."""
    with tempfile.TemporaryDirectory(prefix="memdock-bench-") as folder:
        server = EmbeddedPostgres(Path(folder))
        await server.start()
        try:
            yield server.url
        finally:
            await server.stop()


@asynccontextmanager
async def database(url: str, schema: str) -> AsyncIterator[Database]:
    """A fresh schema, opened."""
    await migrate(url, schema)
    opened = Database(url, schema)
    await opened.open()
    try:
        yield opened
    finally:
        await opened.close()


class Watch:
    """Milliseconds of a block: `with Watch() as watch: ...; watch.ms`."""

    ms = 0.0

    def __enter__(self) -> "Watch":
        self._began = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.ms = (time.perf_counter() - self._began) * 1000
