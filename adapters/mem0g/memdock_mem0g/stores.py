"""The two graph stores: transactions and erasure, each in its own Cypher, on the connection that mem0 has opened."""

import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """An edge of the graph, by the names that the store has for it: small letters, `_` for blanks."""

    source: str
    name: str
    destination: str


class Store(Protocol):
    """What is asked of a graph store beside mem0's own queries."""

    name: str
    keeps: str
    """What it keeps of erased rows in its own files."""

    def transaction(self) -> Any:
        """A context: what mem0 and this store write inside is there as a whole afterwards, or not at all."""

    def relations(self, space: str) -> list[Relation]:
        """All relations of a space."""

    def names(self, space: str) -> list[str]:
        """The names of all nodes of a space."""

    def erase(self, space: str, relations: Sequence[Relation]) -> None:
        """Erases relations, and the nodes of the space at which none is left."""

    def erase_space(self, space: str) -> None:
        """Erases all nodes and relations of a space."""

    def close(self) -> None:
        """Closes the connection."""


_STATEMENTS = 500
"""So many a connection of Kuzu's."""


class Kuzu:
    """Kuzu embedded. mem0 has one connection for all threads: one statement, or one transaction, at a time."""

    name = "kuzu"
    keeps = "deleted rows stay in Kuzu's file until it writes over them"

    def __init__(self, graph: Any) -> None:
        self._graph = graph
        self._lock = threading.RLock()
        self._in_transaction = False
        self._ended = False
        self._asked = 0
        graph.kuzu_execute = self._execute
        self._set_up()

    def _set_up(self) -> None:
        # Statements are small: with more threads an add takes half as long again.
        self._graph.graph.set_max_threads_for_exec(1)

    def _renew(self) -> None:
        """Takes another connection: Kuzu keeps each statement as long as the connection that it came by, some 15 kB."""
        self._graph.graph.close()
        self._graph.graph = type(self._graph.graph)(self._graph.db)
        self._set_up()
        self._asked = 0

    def _execute(self, query: str, parameters: dict[str, Any] | None = None) -> list[dict[str, Any]]:
        with self._lock:
            if self._asked >= _STATEMENTS and not self._in_transaction:
                self._renew()
            self._asked += 1
            try:
                return list(self._graph.graph.execute(query, parameters).rows_as_dict())
            except RuntimeError:
                self._ended = True  # Kuzu has rolled back what was open
                raise

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """See `Store`. Others wait: no model is to be asked inside."""
        with self._lock:
            self._execute("BEGIN TRANSACTION")
            self._in_transaction, self._ended = True, False
            try:
                yield
                self._execute("COMMIT")
            except BaseException:
                if not self._ended:
                    self._execute("ROLLBACK")
                raise
            finally:
                self._in_transaction = False

    def relations(self, space: str) -> list[Relation]:
        """See `Store`."""
        rows = self._execute(
            "MATCH (n:Entity {user_id: $space})-[r:CONNECTED_TO]->(m:Entity {user_id: $space}) "
            "RETURN n.name AS source, r.name AS name, m.name AS destination",
            {"space": space},
        )
        return [Relation(**row) for row in rows]

    def names(self, space: str) -> list[str]:
        """See `Store`."""
        rows = self._execute("MATCH (n:Entity {user_id: $space}) RETURN n.name AS name", {"space": space})
        return [row["name"] for row in rows]

    def erase(self, space: str, relations: Sequence[Relation]) -> None:
        """See `Store`."""
        for relation in relations:
            self._execute(
                "MATCH (n:Entity {user_id: $space, name: $source})-[r:CONNECTED_TO {name: $name}]->"
                "(m:Entity {user_id: $space, name: $destination}) DELETE r",
                {
                    "space": space,
                    "source": relation.source,
                    "name": relation.name,
                    "destination": relation.destination,
                },
            )
        self._execute(
            "MATCH (n:Entity {user_id: $space}) WHERE NOT EXISTS { MATCH (n)-[:CONNECTED_TO]-(:Entity) } DELETE n",
            {"space": space},
        )

    def erase_space(self, space: str) -> None:
        """See `Store`."""
        self._execute("MATCH (n:Entity {user_id: $space}) DETACH DELETE n", {"space": space})

    def close(self) -> None:
        """See `Store`."""
        with self._lock:
            self._graph.graph.close()
            self._graph.db.close()


def relation_type(name: str) -> str:
    """A name as Cypher takes it for a type without quotes: letters, digits and `_`, no digit first."""
    word = re.sub(r"[\W_]+", "_", name).strip("_")
    return f"_{word}" if not word or word[0].isdigit() else word


class Neo4j:
    """Neo4j, with a transaction for each thread that opens one."""

    name = "neo4j"
    keeps = "Neo4j keeps deleted rows in its transaction log until that is pruned"

    def __init__(self, graph: Any, database: str) -> None:
        self._driver = graph.graph._driver  # noqa: SLF001 - langchain's graph has no transactions
        self._database = database
        self._open = threading.local()
        graph.graph.query = self._query
        clean = graph._remove_spaces_from_entities  # noqa: SLF001 - mem0 writes what it leaves into its Cypher
        graph._remove_spaces_from_entities = lambda found: [  # noqa: SLF001
            {**each, "relationship": relation_type(each["relationship"])} for each in clean(found)
        ]

    def _query(self, query: str, params: dict[str, Any] | None = None) -> list[dict[str, Any]]:
        transaction = getattr(self._open, "transaction", None)
        if transaction is not None:
            found: list[dict[str, Any]] = transaction.run(query, params or {}).data()
            return found
        with self._driver.session(database=self._database) as session:
            rows: list[dict[str, Any]] = session.run(query, params or {}).data()
            return rows

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """See `Store`."""
        with self._driver.session(database=self._database) as session, session.begin_transaction() as transaction:
            self._open.transaction = transaction
            try:
                yield
                # mem0 marks relations that no longer hold and keeps them, where no search and no list shows them.
                self._query("MATCH (n:`__Entity__`)-[r]->() WHERE r.valid = false DELETE r")
                transaction.commit()
            finally:
                self._open.transaction = None

    def relations(self, space: str) -> list[Relation]:
        """See `Store`."""
        rows = self._query(
            "MATCH (n:`__Entity__` {user_id: $space})-[r]->(m:`__Entity__` {user_id: $space}) "
            "RETURN n.name AS source, type(r) AS name, m.name AS destination",
            {"space": space},
        )
        return [Relation(**row) for row in rows]

    def names(self, space: str) -> list[str]:
        """See `Store`."""
        rows = self._query("MATCH (n:`__Entity__` {user_id: $space}) RETURN n.name AS name", {"space": space})
        return [row["name"] for row in rows]

    def erase(self, space: str, relations: Sequence[Relation]) -> None:
        """See `Store`."""
        self._query(
            "UNWIND $relations AS each MATCH (n:`__Entity__` {user_id: $space, name: each.source})-[r]->"
            "(m:`__Entity__` {user_id: $space, name: each.destination}) WHERE type(r) = each.name DELETE r",
            {
                "space": space,
                "relations": [
                    {"source": each.source, "name": each.name, "destination": each.destination} for each in relations
                ],
            },
        )
        self._query("MATCH (n:`__Entity__` {user_id: $space}) WHERE NOT (n)--() DELETE n", {"space": space})

    def erase_space(self, space: str) -> None:
        """See `Store`."""
        self._query("MATCH (n:`__Entity__` {user_id: $space}) DETACH DELETE n", {"space": space})

    def close(self) -> None:
        """See `Store`."""
        self._driver.close()
