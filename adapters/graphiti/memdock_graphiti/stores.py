"""The graph databases that graphiti stands on: Neo4j, FalkorDB, or Kuzu inside this process.

Kuzu is the one that needs mending; graphiti's makers call its driver deprecated, as Kuzu itself is no longer kept.
"""

import asyncio
import contextlib
import re
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from graphiti_core.driver.driver import GraphDriver, GraphProvider
from graphiti_core.driver.falkordb_driver import FalkorDriver
from graphiti_core.driver.kuzu_driver import KuzuDriver
from graphiti_core.driver.neo4j_driver import Neo4jDriver

from memdock.errors import error

_KEYWORD_SEARCH = re.compile(
    r"CALL QUERY_FTS_INDEX\('(?P<table>\w+)'.*?\)\s*YIELD node(?: AS (?P<name>\w+))?, score", re.DOTALL
)
_STATEMENTS = 500
"""So many a connection of Kuzu's."""
_TEXTS = {"RelatesToNode_": "fact", "Entity": "name", "Episodic": "content", "Community": "name"}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreAt:
    """Where the graph is kept: at most one of the two addresses, else a Kuzu file in `folder`."""

    folder: Path
    neo4j_url: str = ""
    neo4j_user: str = "neo4j"
    neo4j_password: str = field(default="", repr=False)
    falkordb_url: str = field(default="", repr=False)

    @property
    def name(self) -> str:
        """The kind of database."""
        return "neo4j" if self.neo4j_url else "falkordb" if self.falkordb_url else "kuzu"


async def open_store(at: StoreAt) -> GraphDriver:
    """The driver, with its indexes made. Raises STORE_UNREACHABLE with what the database's client says."""
    try:
        # In a thread graphiti's drivers find no event loop, or they would make indexes beside us.
        driver = await asyncio.to_thread(_driver, at)
        await driver.build_indices_and_constraints()
    except Exception as fault:
        said = (str(fault).strip() or type(fault).__name__).splitlines()[0].rstrip(".:")
        place = f" in {at.folder}" if at.name == "kuzu" else ""
        raise error("STORE_UNREACHABLE", f"The graph database ({at.name}{place}) cannot be opened: {said}.") from fault
    return driver


def _driver(at: StoreAt) -> GraphDriver:
    if at.neo4j_url:
        return Neo4jDriver(at.neo4j_url, at.neo4j_user, at.neo4j_password)
    if at.falkordb_url:
        return FalkorDriver(**_falkordb(at.falkordb_url))
    return EmbeddedKuzu(at.folder / "graph.kuzu")


def driver_of(driver: GraphDriver, group: str) -> GraphDriver:
    """The driver that sees a group: FalkorDB keeps a graph a group."""
    return driver.clone(database=group) if driver.provider == GraphProvider.FALKORDB else driver


def _falkordb(url: str) -> dict[str, Any]:
    parts = urlsplit(url)
    return {
        "host": parts.hostname or "localhost",
        "port": parts.port or 6379,
        "username": unquote(parts.username) if parts.username else None,
        "password": unquote(parts.password) if parts.password else None,
    }


class EmbeddedKuzu(KuzuDriver):  # type: ignore[misc]  # graphiti is not here when this is checked
    """graphiti's driver of Kuzu with what it lacks: keyword search that survives a kill, a database's name, an end.

    Kuzu's own keyword indexes are not used: after a kill it plays its log back without them, and falls over (SIGSEGV),
    then or at each later start, by a row that was deleted. The words are looked for in the texts themselves.
    """

    def __init__(self, path: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # the README says it
            super().__init__(str(path))
        self._database = ""
        self._asked = self._running = 0
        self.client: Any  # the driver's connection

    async def _execute(self, query: str, **values: Any) -> Any:
        """Kuzu keeps each statement as long as the connection that it came by, some 15 kB: a new one now and then."""
        self._asked += 1
        if self._asked > _STATEMENTS and not self._running:
            before = self.client
            self.client = type(before)(self.db, max_concurrent_queries=1)
            self._asked = 0
            await asyncio.to_thread(before.close)
        self._running += 1
        try:
            return await super().execute_query(query, **values)
        finally:
            self._running -= 1

    async def execute_query(self, cypher_query_: str, **kwargs: Any) -> Any:
        """A keyword search ranks texts by the query's words in them: a word weighs the less the more texts hold it.

        What scores the same comes in one order: Kuzu's threads would leave it to chance, and what is cut with it.
        """
        cypher_query_ = cypher_query_.replace("ORDER BY score DESC", "ORDER BY score DESC, uuid")
        asked = _KEYWORD_SEARCH.search(cypher_query_)
        if asked is None:
            return await self._execute(cypher_query_, **kwargs)
        words = sorted(set(re.findall(r"\w+", kwargs.pop("query").lower())))
        if not words:
            return [], None, None
        table, node = asked["table"], asked["name"] or "node"
        own = " AND node.group_id IN $group_ids" if kwargs.get("group_ids") else ""
        scan = (
            f"UNWIND $words AS word MATCH (node:{table}) WHERE contains(lower(node.{_TEXTS[table]}), word){own}"
            " WITH word, collect(node.uuid) AS holders WITH holders, 1.0 / size(holders) AS weight"
            " UNWIND holders AS holder WITH holder, round(sum(weight), 9) AS score"
            f" MATCH ({node}:{table} {{uuid: holder}})"
        )
        query = cypher_query_.replace(asked[0], scan)
        return await self._execute(query, words=words, **kwargs)

    async def close(self) -> None:
        """Writes what is in its log into its file, and lets go of it."""
        with contextlib.suppress(RuntimeError):  # it refuses while something is still read; the log keeps all of it
            await self.client.execute("CHECKPOINT")
        self.client.close()
        await asyncio.to_thread(self.db.close)
