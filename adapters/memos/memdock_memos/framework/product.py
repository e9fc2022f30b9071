"""The product server of MemOS, as its handlers in this process: extraction, PostgreSQL, and its own search."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from memdock.adapter.command import ModelAt, models_of
from memdock.errors import error
from memdock.types import Component, Model, Query
from memdock_memos.framework.losses import no_losses
from memdock_memos.framework.start import load
from memdock_memos.stored import Said, Stored


class Product:
    """See `stored.Framework`. A space is a user of MemOS's with one cube of the same name.

    `add`: "fine" extracts memories, "fast" keeps what was said. `search`: "fine" has the chat model rewrite what was
    found for the question. `dedup`: what a search does about memories that are alike, by MemOS's words.
    """

    def __init__(
        self,
        url: str,
        folder: Path,
        chat: ModelAt,
        embedder: ModelAt,
        *,
        max_tokens: int,
        add: str,
        search: str,
        dedup: str,
    ) -> None:
        load(folder, chat, embedder, max_tokens)
        from memdock_memos.framework.server import open_server

        with no_losses():
            self._server = open_server(url)
        self._store = self._server.store
        self._add, self._search, self._dedup = add, search, dedup
        self.models: tuple[Model, ...] = models_of(chat, embedder)
        self.config: Mapping[str, Any] = {
            "memory": "product", "store": "postgres", "add": add, "search": search, "dedup": dedup, "relativity": 0,
        }  # fmt: skip
        self.scores = search == "fast"
        self.may_keep_nothing = add == "fine"

    def add(self, space: str, said: Said) -> list[str]:
        if all(message["role"] == "system" for message in said.messages):
            return []  # MemOS keeps nothing of it
        from memos.api.product_models import APIADDRequest

        info = {"group": said.group} | ({} if said.said_at is None else {"said_at": said.said_at.isoformat()})
        request = APIADDRequest(
            user_id=space,
            session_id=said.session_id,
            writable_cube_ids=[space],
            async_mode="sync",
            mode=self._add,
            messages=[_taken(message) for message in said.messages],
            info=info,
        )
        with no_losses():
            answer = self._server.add.handle_add_memories(request)
        told = {each["memory_id"] for each in answer.data}
        held = {each.memory_id for each in self.memories(space, [said.group])}
        if told != held or not (held or self.may_keep_nothing):
            raise error("INTERNAL", f"MemOS says that it stored {len(told)} memories, and holds {len(held)}.")
        return sorted(held)

    def search(self, space: str, query: Query) -> list[Stored]:
        from memos.api.product_models import APISearchRequest

        request = APISearchRequest(
            query=query.text,
            user_id=space,
            readable_cube_ids=[space],
            mode=self._search,
            top_k=query.top_k,
            relativity=0,
            dedup=self._dedup,
            filter=_filter(query),
            include_preference=False,
            search_tool_memory=False,
            include_skill_memory=False,
        )
        with no_losses():
            answer = self._server.search.handle_search_memories(request)
        listed = [each for cube in answer.data["text_mem"] for each in cube["memories"]]
        found = {each["id"]: each for each in reversed(listed)}  # a fine search may give one in several words
        held = {each.memory_id: each for each in self._store.memories(space, ids=list(found))}
        return [
            replace(
                held[memory_id],
                text=found[memory_id]["memory"],
                score=float(found[memory_id]["metadata"]["relativity"]) if self.scores else None,
            )
            for memory_id in dict.fromkeys(each["id"] for each in listed)
            if memory_id in held
        ][: query.top_k]

    def memories(self, space: str, groups: Sequence[str] | None = None) -> list[Stored]:
        found: list[Stored] = self._store.memories(space, groups=groups)
        return found

    def memory(self, space: str, memory_id: str) -> Stored | None:
        found: list[Stored] = self._store.memories(space, ids=[memory_id])
        return found[0] if found else None

    def erase(self, space: str, groups: Sequence[str]) -> None:
        if memory_ids := [each.memory_id for each in self.memories(space, groups)]:
            self._store.delete_node_by_prams(writable_cube_ids=[space], memory_ids=memory_ids)

    def clear(self, space: str) -> None:
        self._store.clear(user_name=space)

    def left(self, space: str, memory_ids: Sequence[str]) -> Mapping[Component, int]:
        return {
            Component.VECTOR: len(self._store.memories(space, ids=memory_ids)),
            Component.GRAPH: self._store.edges_of(memory_ids),
        }

    def check(self) -> None:
        self._store.check()

    def close(self) -> None:
        self._store.close()


def _taken(message: Mapping[str, str]) -> dict[str, str]:
    """MemOS wants a tool's message to answer a call, of which a turn tells nothing: the assistant says it."""
    if message["role"] != "tool":
        return dict(message)
    return {**message, "role": "assistant", "content": f"tool: {message['content']}"}


def _filter(query: Query) -> dict[str, Any] | None:
    tests: list[dict[str, Any]] = []
    if query.session_ids:
        tests.append({"session_id": {"in": list(query.session_ids)}})
    bounds = {"gte": query.since, "lt": query.until}
    if times := {word: moment.isoformat() for word, moment in bounds.items() if moment is not None}:
        tests.append({"info.said_at": times})
    return {"and": tests} if tests else None
