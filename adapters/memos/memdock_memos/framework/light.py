"""MemOS's light text memory (`general_text`): extraction by the same prompt, and Qdrant on disk."""

import copy
import hashlib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from math import fsum, hypot
from pathlib import Path
from typing import Any

from memdock.adapter.command import ModelAt, models_of
from memdock.types import Component, Model, Query
from memdock_memos.framework.extraction import read_extraction
from memdock_memos.framework.losses import no_losses
from memdock_memos.framework.start import load
from memdock_memos.stored import Said, Stored


class Light:
    """See `stored.Framework`. MemOS's search knows no user here, so each space has a collection of its own.

    All vectors are in this process's memory.
    """

    def __init__(self, folder: Path, chat: ModelAt, embedder: ModelAt, *, max_tokens: int) -> None:
        load(folder, chat, embedder, max_tokens)
        from memos.api.config import APIConfig
        from memos.configs.memory import GeneralTextMemoryConfig
        from memos.memories.textual.general import GeneralTextMemory
        from memos.vec_dbs.factory import VecDBFactory

        from memdock_memos.framework.vectors import Folder

        VecDBFactory.backend_to_class["qdrant"] = lambda _config: None  # a collection is given for each add
        store = {"collection_name": "none", "vector_dimension": embedder.dimension, "path": str(folder / "qdrant")}
        config = GeneralTextMemoryConfig(
            extractor_llm=APIConfig.get_memreader_config(),
            embedder=APIConfig.get_embedder_config(),
            vector_db={"backend": "qdrant", "config": store},
        )
        self._general = GeneralTextMemory(config)
        self._general.parse_json_result = read_extraction
        self._folder = Folder(folder / "qdrant", embedder.dimension)
        self.models: tuple[Model, ...] = models_of(chat, embedder)
        self.config: Mapping[str, Any] = {"memory": "light", "store": "qdrant"}
        self.scores = True
        self.may_keep_nothing = True

    def add(self, space: str, said: Said) -> list[str]:
        said_at = None if said.said_at is None else said.said_at.isoformat()
        with no_losses():
            found = self._general.extract([_message(each) for each in said.messages])
            for each in found:
                each.metadata.info = {"group": said.group, "session_id": said.session_id, "said_at": said_at}
            if found:
                memory = copy.copy(self._general)
                memory.vector_db = self._folder.collection(_name(space))
                memory.add(found)
        return [each.id for each in found]

    def search(self, space: str, query: Query) -> list[Stored]:
        collection = self._folder.existing(_name(space))
        if collection is None:
            return []
        with no_losses():
            asked = self._general.embedder.embed([query.text])[0]
        near = [item for item in collection.get_all() if _fits(item, query)]
        ranked = [replace(_stored(item), score=_cosine(asked, item.vector)) for item in near]
        return sorted(ranked, key=lambda each: (-(each.score or 0.0), each.memory_id))[: query.top_k]

    def memories(self, space: str, groups: Sequence[str] | None = None) -> list[Stored]:
        collection = self._folder.existing(_name(space))
        found = [] if collection is None else [_stored(item) for item in collection.get_all()]
        return [each for each in found if groups is None or each.group in groups]

    def memory(self, space: str, memory_id: str) -> Stored | None:
        found = self._held(space, [memory_id])
        return found[0] if found else None

    def erase(self, space: str, groups: Sequence[str]) -> None:
        collection = self._folder.existing(_name(space))
        memory_ids = [each.memory_id for each in self.memories(space, groups)]
        if collection is not None and memory_ids:
            collection.delete(memory_ids)

    def clear(self, space: str) -> None:
        self._folder.drop(_name(space))

    def left(self, space: str, memory_ids: Sequence[str]) -> Mapping[Component, int]:
        return {Component.VECTOR: len(self._held(space, memory_ids))}

    def check(self) -> None:
        """Its store is in this process."""

    def close(self) -> None:
        self._folder.close()

    def _held(self, space: str, memory_ids: Sequence[str]) -> list[Stored]:
        collection = self._folder.existing(_name(space))
        known = [each for each in memory_ids if _is_uuid(each)]
        return [_stored(item) for item in collection.get_by_ids(known)] if collection is not None and known else []


def _name(space: str) -> str:
    """A collection's name is its folder's: of letters that any file system keeps apart."""
    return hashlib.sha256(space.encode()).hexdigest()


def _message(message: Mapping[str, str]) -> dict[str, str]:
    """This memory's prompt shows no time of a message, but for its text."""
    time = message.get("chat_time")
    return {"role": message["role"], "content": f"[{time}]: {message['content']}" if time else message["content"]}


def _info(item: Any) -> Mapping[str, Any]:
    info: Mapping[str, Any] = item.payload["metadata"]["info"]
    return info


def _stored(item: Any) -> Stored:
    info = _info(item)
    return Stored(
        memory_id=item.id,
        text=item.payload["memory"],
        group=info["group"],
        said_at=info["said_at"] and datetime.fromisoformat(info["said_at"]),
    )


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """As Qdrant's search has it; but in local mode each search of its own changes the last digits of its vectors."""
    product = fsum(x * y for x, y in zip(one, other, strict=True))
    return round(product / (hypot(*one) * hypot(*other) or 1.0), 9)


def _fits(item: Any, query: Query) -> bool:
    info, said_at = _info(item), _stored(item).said_at
    if query.session_ids and info["session_id"] not in query.session_ids:
        return False
    if query.since is None and query.until is None:
        return True
    return (
        said_at is not None
        and (query.since is None or query.since <= said_at)
        and (query.until is None or said_at < query.until)
    )


def _is_uuid(word: str) -> bool:
    try:
        return str(uuid.UUID(word)) == word
    except ValueError:
        return False
