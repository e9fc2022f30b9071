"""mem0's graph memory itself: opened without telemetry, and asked so that a failure is one.

The only file that knows the framework. Of mem0 it runs the graph alone: its search answers relations, and the vector
memory beside it, which costs two more chat calls a turn, has no part in what the graph holds or finds.
"""

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memdock.adapter.command import ModelAt, models_of
from memdock.errors import error
from memdock_mem0g.stores import Kuzu, Neo4j, Relation, Store

_ALL = 1_000_000
_FIELDS: Mapping[str, tuple[str, ...]] = {
    "extract_entities": ("entity", "entity_type"),
    "establish_relationships": ("source", "relationship", "destination"),
    "delete_graph_memory": ("source", "relationship", "destination"),
}
"""What mem0 asks its model for, by tools, and the fields of each matter in their calls."""
_vectors: ContextVar[dict[str, list[float]] | None] = ContextVar("memdock_mem0g_vectors", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Neo4jAt:
    """A Neo4j server."""

    url: str
    user: str
    password: str = field(repr=False)
    database: str = "neo4j"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What an add has done to the graph. `names` were said; mem0 may have taken a near node for one of them."""

    added: tuple[Relation, ...]
    removed: tuple[Relation, ...]
    names: tuple[str, ...]


class GraphMemory:
    """mem0's graph memory. Methods block, and may be called from several threads.

    `threshold`: how near two names are, by their vectors, to be one node; mem0's own is 0.7.
    """

    def __init__(
        self,
        folder: Path,
        chat: ModelAt,
        embedder: ModelAt,
        *,
        max_tokens: int,
        threshold: float,
        neo4j: Neo4jAt | None,
    ) -> None:
        os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(folder)}
        os.environ.pop("OPENROUTER_API_KEY", None)  # with it all chats would go to that service, whatever is set here
        from mem0.configs.base import MemoryConfig
        from mem0.utils.factory import GraphStoreFactory

        logger = logging.getLogger("mem0")
        logger.propagate = False  # its log holds texts of turns
        logger.handlers[:] = [logging.NullHandler()]
        place = {"db": str(folder / "graph.kuzu")} if neo4j is None else _neo4j(neo4j)
        config = MemoryConfig(
            llm={
                "provider": "openai",
                "config": {
                    "model": chat.model, "openai_base_url": chat.url, "api_key": chat.key, "max_tokens": max_tokens,
                },
            },
            embedder={
                "provider": "openai",
                "config": {
                    "model": embedder.model, "openai_base_url": embedder.url, "api_key": embedder.key,
                    "embedding_dims": embedder.dimension,
                },
            },
            graph_store={
                "provider": "kuzu" if neo4j is None else "neo4j", "config": place, "threshold": threshold,
            },
        )  # fmt: skip
        try:
            self._graph = GraphStoreFactory.create(config.graph_store.provider, config)
        except RuntimeError as problem:  # Kuzu's only kind
            raise OSError(f"the graph in {folder} cannot be opened: {problem}") from problem
        self._graph.embedding_model._pass_dimensions_to_api = False  # noqa: SLF001 - many embedders refuse the field
        self._graph.embedding_model.embed = _once(self._graph.embedding_model.embed)
        self._graph.llm.generate_response = _strict(self._graph.llm.generate_response)
        self.store: Store = Kuzu(self._graph) if neo4j is None else Neo4j(self._graph, neo4j.database)
        self.models = models_of(chat, embedder)

    def add(
        self, space: str, text: str, note: Callable[[Change], None], holds: Callable[[Relation], bool] | None = None
    ) -> Change:
        """mem0's own steps of an add; all models are asked before anything is written, in one transaction.

        `note` is called inside it: what it raises undoes the add. `holds` is given for an old text that is added again:
        it makes nothing outdated any more, and its relations that do not hold are left out.
        """
        graph, whose = self._graph, {"user_id": space}
        token = _vectors.set({})
        try:
            kinds = graph._retrieve_nodes_from_data(text, whose)  # noqa: SLF001 - mem0's add, taken apart
            said = graph._establish_nodes_relations_from_data(text, whose, kinds)  # noqa: SLF001
            outdated = [] if holds else self._outdated(text, whose, list(kinds))
            names = tuple(dict.fromkeys(each[end] for each in said for end in ("source", "destination")))
            for name in names:
                graph.embedding_model.embed(name)
            with self.store.transaction():
                removed = _relations(graph._delete_entities(outdated, whose))  # noqa: SLF001
                added = _relations(graph._add_entities(said, whose, kinds))  # noqa: SLF001
                ended = [each for each in added if holds and not holds(each)]
                if removed or ended:
                    self.store.erase(space, ended)  # and the nodes that all these leave alone
                added = tuple(each for each in added if each not in ended)
                change = Change(added=added, removed=tuple(each for each in removed if each not in added), names=names)
                note(change)
            return change
        finally:
            _vectors.reset(token)

    def _outdated(self, text: str, whose: dict[str, str], names: list[str]) -> Any:
        near = self._graph._search_graph_db(node_list=names, filters=whose)  # noqa: SLF001
        return self._graph._get_delete_entities_from_search_output(near, text, whose)  # noqa: SLF001

    def search(self, space: str, query: str) -> list[Relation]:
        """All relations at nodes that are near to what the query names, in mem0's order; each once."""
        found = self._graph.search(query, {"user_id": space}, limit=_ALL)
        return list(dict.fromkeys(_relation(each) for each in found))


def _strict(generate: Callable[..., Any]) -> Callable[..., Any]:
    """mem0 takes a reply without the call that it asked for, or with a wrong one, for "nothing was said"."""

    def ask(messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        name = tools[0]["function"]["name"]
        may_be_silent = name == "delete_graph_memory"
        try:
            reply = generate(messages=messages, tools=tools, tool_choice="auto" if may_be_silent else "required")
        except ValueError:
            raise _unusable(name, "arguments that are no JSON") from None
        calls = [call["arguments"] for call in reply["tool_calls"] if call["name"] == name]
        if may_be_silent:
            return {"tool_calls": [{"name": name, "arguments": _matter(name, call)} for call in calls]}
        if not calls:
            raise _unusable(name, "no call of it")
        # Of several calls mem0 would look at the first alone.
        matters = [_matter(name, each) for call in calls for each in _list(name, call)]
        return {"tool_calls": [{"name": name, "arguments": {"entities": matters}}]}

    return ask


def _list(name: str, call: Any) -> list[Any]:
    found = call.get("entities") if isinstance(call, dict) else None
    if not isinstance(found, list):
        raise _unusable(name, "a call without its list")
    return found


def _matter(name: str, given: Any) -> dict[str, str]:
    fields = _FIELDS[name]
    if not isinstance(given, dict) or not all(isinstance(given.get(each), str) and given[each] for each in fields):
        raise _unusable(name, f"a call without {', '.join(fields)}")
    return {each: given[each].replace("`", "") for each in fields}  # it would end a label in Neo4j's Cypher


def _unusable(name: str, what: str) -> Exception:
    return error("PROVIDER_PROTOCOL_ERROR", f"The model was asked to call {name} and answered {what}.")


def _once(embed: Callable[..., list[float]]) -> Callable[..., list[float]]:
    """Inside an add each name is embedded once, and never while the graph is locked."""

    def embed_once(text: str, *more: Any) -> list[float]:
        known = _vectors.get()
        if known is None:
            return embed(text, *more)
        if text not in known:
            known[text] = embed(text, *more)
        return known[text]

    return embed_once


def _relations(results: Sequence[Sequence[Mapping[str, str]]]) -> tuple[Relation, ...]:
    return tuple(dict.fromkeys(_relation(row) for rows in results for row in rows))


def _relation(row: Mapping[str, str]) -> Relation:
    return Relation(source=row["source"], name=row["relationship"], destination=row.get("destination") or row["target"])


def _neo4j(at: Neo4jAt) -> dict[str, Any]:
    return {
        "url": at.url, "username": at.user, "password": at.password, "database": at.database, "base_label": True,
    }  # fmt: skip
