"""MemOS's vector store on Qdrant's local mode: one folder for all collections, one call at a time."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memos.configs.vec_db import QdrantVecDBConfig
from memos.vec_dbs.qdrant import QdrantVecDB
from qdrant_client import QdrantClient

from memdock.adapter.model_calls import check_calls


class Folder:
    """A folder of collections; MemOS's own class would want a folder for each, and loses writes under threads."""

    def __init__(self, path: Path, dimension: int) -> None:
        self._path, self._dimension = path, dimension
        self._lock = threading.RLock()
        self._client = QdrantClient(path=str(path), force_disable_check_same_thread=True)
        for name in self._client._client.collections:  # noqa: SLF001 - of its local mode
            self._erase_well(name)

    def collection(self, name: str) -> "Collection":
        """A collection, made where it is missing."""
        with self._lock:
            found = Collection(_Serial(self._client, self._lock), self._config(name))
            if not self._client.collection_exists(name):
                found.create_collection()
                self._erase_well(name)
            return found

    def existing(self, name: str) -> "Collection | None":
        """A collection, if there is one."""
        with self._lock:
            return self.collection(name) if self._client.collection_exists(name) else None

    def drop(self, name: str) -> None:
        """Deletes a collection and its files; harmless where there is none."""
        with self._lock:
            self._client.delete_collection(name)

    def close(self) -> None:
        """Closes all collections."""
        with self._lock:
            self._client.close()

    def _config(self, name: str) -> QdrantVecDBConfig:
        return QdrantVecDBConfig(
            collection_name=name, vector_dimension=self._dimension, distance_metric="cosine", path=str(self._path)
        )

    def _erase_well(self, name: str) -> None:
        """What is deleted is written over in the collection's file."""
        self._client._client.collections[name].storage.storage.execute("PRAGMA secure_delete=ON")  # noqa: SLF001


class Collection(QdrantVecDB):  # type: ignore[misc]
    """MemOS's own methods, on a client that is open."""

    def __init__(self, client: Any, config: QdrantVecDBConfig) -> None:
        self.client, self.config = client, config

    def add(self, data: list[Any]) -> None:
        """Nothing after a failure of a model: a vector that is none would be in the way of every search."""
        check_calls()
        super().add(data)


class _Serial:
    """A client that does one thing at a time."""

    def __init__(self, client: QdrantClient, lock: Any) -> None:
        self._inner, self._lock = client, lock

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._inner, name)

        def locked(*given: Any, **more: Any) -> Any:
            with self._lock:
                return method(*given, **more)

        return locked
