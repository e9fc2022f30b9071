"""One PostgreSQL for all tests of this folder, a schema of its own for each test, and a scripted model server."""

import hashlib
import itertools
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio

from memdock.adapter.postgres import EmbeddedPostgres
from memdock_embedder.backends import Embedder
from memdock_embedder.remote import RemoteEmbedder
from memdock_pgvector.database import Database
from memdock_pgvector.migrate import migrate
from support.model_server import ModelServer, serve_models

NUMBERS = itertools.count()
DIMENSION = 64


def embed_words(text: str) -> list[float]:
    """A vector in which texts that share words are near."""
    total = np.full(DIMENSION, 1e-3)
    for word in text.lower().split():
        seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")
        total += np.random.default_rng(seed).standard_normal(DIMENSION)
    return [float(number) for number in total]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that PostgreSQL's user may reach: pytest closes its own to all others whenever it starts."""
    with tempfile.TemporaryDirectory(prefix="memdock-test-") as name:
        yield Path(name)


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The address of a running PostgreSQL with pgvector."""
    with tempfile.TemporaryDirectory(prefix="memdock-test-") as name:
        yield from _postgres(Path(name))


def _postgres(folder: Path) -> Iterator[str]:
    server = EmbeddedPostgres(folder)
    # Without its watch: that lives on a loop, and the tests' loops come and go.
    server._join()
    yield server.url
    server._leave()


@pytest.fixture
def schema() -> str:
    return f"test-{next(NUMBERS)}"


@pytest_asyncio.fixture
async def database(postgres_url: str, schema: str) -> AsyncIterator[Database]:
    """An open database with fresh tables."""
    await migrate(postgres_url, schema)
    opened = Database(postgres_url, schema)
    await opened.open()
    yield opened
    await opened.close()


@pytest_asyncio.fixture
async def models() -> AsyncIterator[ModelServer]:
    """A model server that embeds by words."""
    async with serve_models(ModelServer(embed=embed_words)) as server:
        yield server


@pytest_asyncio.fixture
async def embedder(models: ModelServer) -> AsyncIterator[Embedder]:
    opened = await RemoteEmbedder.connect(models.url, "words")
    models.requests.clear()
    yield opened
    await opened.close()
