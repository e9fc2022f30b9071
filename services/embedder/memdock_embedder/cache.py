"""Embeddings kept in a file by a hash of model, kind and text, so that the same text is embedded once.

The file holds no text, but a vector tells something about the text it came from: whoever must erase a text erases the
cache too.
"""

import asyncio
import hashlib
import sqlite3
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from memdock_embedder.backends import Embedded, Embedder, EmbedderError, InputType

_SCHEMA = "CREATE TABLE IF NOT EXISTS embedding (key BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID"
_LOOKUP_KEYS = 500
_BUSY_TIMEOUT_S = 30.0


class CachedEmbedder:
    """Wraps an embedder; the file may be shared by several processes. One that cannot be used is an `EmbedderError`."""

    def __init__(self, embedder: Embedder, path: Path) -> None:
        self._embedder = embedder
        self.path = path
        self.model = embedder.model
        self.dimension = embedder.dimension
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, check_same_thread=False, timeout=_BUSY_TIMEOUT_S, isolation_level=None)
            _write_ahead(self._db)
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.execute(_SCHEMA)
        except (OSError, sqlite3.Error) as cause:
            raise EmbedderError(
                "VALIDATION_FAILED", f"the embedding cache {path} cannot be opened, name another file: {cause}"
            ) from cause
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="embedding-cache")

    async def embed(self, texts: Sequence[str], input_type: InputType) -> Embedded:
        """See `Embedder.embed`. `tokens` and `calls` count what was really embedded."""
        loop = asyncio.get_running_loop()
        keys = [self._key(text, input_type) for text in texts]
        found = await loop.run_in_executor(self._thread, self._read, keys)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        fresh = await self._embedder.embed(list(missing.values()), input_type)
        if missing:
            made = dict(zip(missing, fresh.vectors, strict=True))
            await loop.run_in_executor(self._thread, self._write, made)
            found |= made
        vectors = np.array([found[key] for key in keys], dtype=np.float32).reshape(len(keys), self.dimension)
        return Embedded(vectors=vectors, tokens=fresh.tokens, estimated=fresh.estimated, calls=fresh.calls)

    def _key(self, text: str, input_type: InputType) -> bytes:
        return hashlib.sha256("\0".join((self.model, input_type, text)).encode()).digest()

    def _read(self, keys: Sequence[bytes]) -> dict[bytes, np.ndarray[tuple[int], np.dtype[np.float32]]]:
        found = {}
        with _file_errors():
            for start in range(0, len(keys), _LOOKUP_KEYS):
                part = keys[start : start + _LOOKUP_KEYS]
                marks = ",".join("?" * len(part))
                rows = self._db.execute(f"SELECT key, vector FROM embedding WHERE key IN ({marks})", part)  # noqa: S608
                found.update({key: np.frombuffer(vector, dtype="<f4") for key, vector in rows})
        return found

    def _write(self, made: dict[bytes, np.ndarray[tuple[int], np.dtype[np.float32]]]) -> None:
        rows = [(key, vector.astype("<f4").tobytes()) for key, vector in made.items()]
        with _file_errors(), self._db:  # commits, or rolls back
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany("INSERT OR IGNORE INTO embedding VALUES (?, ?)", rows)

    async def close(self) -> None:
        """Closes the file and the wrapped embedder."""
        self._thread.shutdown(wait=True)
        self._db.close()
        await self._embedder.close()


@contextmanager
def _file_errors() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as cause:
        raise EmbedderError("PROVIDER_UNREACHABLE", f"the embedding cache cannot be used now: {cause}") from cause


def _write_ahead(database: sqlite3.Connection) -> None:
    """SQLite waits for nobody in this one change, and fails where another process has just begun with the file."""
    end = time.monotonic() + _BUSY_TIMEOUT_S
    while True:
        try:
            database.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(0.01)
