"""The graph databases that graphiti stands on: Neo4j, FalkorDB, or Kuzu inside this process.

Kuzu is the one that needs mending; graphiti's makers call its driver deprecated, as Kuzu itself is no longer kept.
"""

import asyncio
import contextlib
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from graphiti_core.driver.driver import GraphDriver, GraphProvider
from graphiti_core.driver.falkordb_driver import FalkorDriver
from graphiti_core.driver.kuzu_driver import KuzuDriver
from graphiti_core.driver.neo4j_driver import Neo4jDriver
from graphiti_core.graph_queries import INDEX_TO_LABEL_KUZU_MAPPING, get_fulltext_indices


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
    """The driver, with its indexes made."""
    if at.neo4j_url:
        driver = Neo4jDriver(at.neo4j_url, at.neo4j_user, at.neo4j_password)
    elif at.falkordb_url:
        driver = FalkorDriver(**_falkordb(at.falkordb_url))
    else:
        driver = await asyncio.to_thread(EmbeddedKuzu, at.folder / "graph.kuzu")
    await driver.build_indices_and_constraints()
    return driver


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
    """graphiti's driver of Kuzu with what it lacks: its indexes, a database's name, and an end."""

    def __init__(self, path: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # the README says it
            super().__init__(str(path))
        self._database = ""

    async def build_indices_and_constraints(self, delete_existing: bool = False) -> None:  # noqa: ARG002
        """graphiti's own makes none for Kuzu, and its searches then fail.

        Made anew at each start: after a kill Kuzu plays its log back without them, and then falls over (SIGSEGV) when a
        row is deleted that they lack.
        """
        for name, table in INDEX_TO_LABEL_KUZU_MAPPING.items():
            with contextlib.suppress(RuntimeError):  # there is none yet
                await self.client.execute(f"CALL DROP_FTS_INDEX('{table}', '{name}')")
        for query in get_fulltext_indices(self.provider):
            await self.client.execute(query)

    async def execute_query(self, cypher_query_: str, **kwargs: Any) -> Any:
        """Without the bound on what a keyword search finds: Kuzu applies it to all groups together, before graphiti
        picks the group's own, so that a small group beside a large one would find nothing.
        """
        return await super().execute_query(cypher_query_.replace(", TOP := $limit)", ")"), **kwargs)

    async def close(self) -> None:
        """Writes what is in its log into its file, and lets go of it."""
        with contextlib.suppress(RuntimeError):  # it refuses while something is still read; the log keeps all of it
            await self.client.execute("CHECKPOINT")
        self.client.close()
        await asyncio.to_thread(self.db.close)
