"""graphiti itself: episodes in, facts out, asked so that a failure is one.

With `stores` the only file that knows the framework. What graphiti reads from the environment it reads as it is
imported: `cli` sets that before.
"""

import functools
import logging
from collections.abc import Collection, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from graphiti_core import Graphiti
from graphiti_core.cross_encoder.client import CrossEncoderClient
from graphiti_core.edges import EntityEdge, EpisodicEdge
from graphiti_core.embedder.openai import OpenAIEmbedder, OpenAIEmbedderConfig
from graphiti_core.errors import GroupsEdgesNotFoundError
from graphiti_core.llm_client.config import LLMConfig
from graphiti_core.llm_client.openai_generic_client import OpenAIGenericClient
from graphiti_core.nodes import EntityNode, EpisodeType, EpisodicNode, Node
from graphiti_core.search.search_config_recipes import EDGE_HYBRID_SEARCH_RRF
from graphiti_core.search.search_filters import ComparisonOperator, DateFilter, SearchFilters
from graphiti_core.utils.maintenance.graph_data_operations import clear_data
from graphiti_core.utils.text_utils import MAX_SUMMARY_CHARS, truncate_at_sentence
from openai import AsyncOpenAI
from tenacity import stop_after_attempt, wait_fixed

from memdock.adapter.command import ModelAt
from memdock_graphiti.stores import StoreAt, driver_of, open_store

_TIMED = "a conversation"
_UNTIMED = "a conversation, it is not known when"
_NO_TIME = (
    "It is not known when this was said, REFERENCE_TIME is not that time: resolve no relative date by it, and leave "
    "valid_at and invalid_at null where the message names no date."
)
_adding: ContextVar[str] = ContextVar("memdock_graphiti_adding", default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """An edge between two entities. `episodes`: the ids of those that it came from, the oldest first; `time` is that of
    the oldest. All times are `None` where one of them was said at an unknown time.
    """

    fact_id: str
    text: str
    episodes: tuple[str, ...]
    score: float | None = None
    time: datetime | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What an erasure has left: `facts` and entities that hold something of it, `episodes` (raw texts), and `worded`,
    facts that stand on other episodes too and keep the words of an erased one, which said them first.
    """

    facts: int
    episodes: int
    worded: int = 0


class Graph:
    """graphiti on its database; a `group` is a space. Coroutines of one event loop."""

    def __init__(self, graphiti: Any) -> None:
        self._graphiti = graphiti
        self._driver = graphiti.driver

    @classmethod
    async def open(cls, at: StoreAt, chat: ModelAt, embedder: ModelAt, *, response_format: str) -> "Graph":
        """`response_format`: how the chat model is asked for JSON, "json_schema" or "json_object"."""
        for name in ("graphiti_core", "neo4j", "falkordb"):
            logger = logging.getLogger(name)  # their logs hold texts of turns
            logger.handlers[:], logger.propagate = [logging.NullHandler()], False
        # Its own waits for half a minute and more where a model answers no JSON; the client below tries again by itself
        # where a server fails or asks to wait.
        retry = OpenAIGenericClient._generate_response_with_retry.retry  # noqa: SLF001 - there is no setting for it
        retry.stop, retry.wait = stop_after_attempt(2), wait_fixed(1)
        model = OpenAIGenericClient(
            LLMConfig(model=chat.model),
            client=AsyncOpenAI(api_key=chat.key, base_url=chat.url),
            structured_output_mode=response_format,
        )
        model._clean_input = _clean  # noqa: SLF001 - its own breaks emoji and Persian words
        graphiti = Graphiti(
            graph_driver=await open_store(at),
            llm_client=model,
            embedder=OpenAIEmbedder(
                OpenAIEmbedderConfig(embedding_model=embedder.model),
                client=AsyncOpenAI(api_key=embedder.key, base_url=embedder.url),
            ),
            cross_encoder=_NoReranker(),
        )
        graphiti.retrieve_episodes = functools.partial(_earlier, graphiti.retrieve_episodes)
        return cls(graphiti)

    async def add(self, group: str, episode: str, text: str, said: datetime | None, *, name: str) -> list[str]:
        """Adds an episode under an id of ours; the ids of the facts that stand on it, none where it tells none."""
        driver = driver_of(self._driver, group)
        when = said or datetime.now(UTC)  # graphiti wants one; what was said later then still replaces what came before
        await EpisodicNode(
            uuid=episode,
            name=name,
            group_id=group,
            source=EpisodeType.message,
            source_description=_TIMED if said else _UNTIMED,
            content=text,
            valid_at=when,
        ).save(driver)
        token = _adding.set(episode)
        try:
            added = await self._graphiti.add_episode(
                name=name,
                episode_body=text,
                source_description="",
                reference_time=when,
                group_id=group,
                uuid=episode,
                custom_extraction_instructions=None if said else _NO_TIME,
            )
        finally:
            _adding.reset(token)
        return list(dict.fromkeys(str(edge.uuid) for edge in added.edges if episode in edge.episodes))

    async def search(self, group: str, query: str, *, k: int | None) -> list[Fact]:
        """The facts that are true now, best first, at most `k` of them; `None`: all, in that order."""
        if k is None:
            k = max(1, len(await self._edges(group)))
        config = EDGE_HYBRID_SEARCH_RRF.model_copy(deep=True)
        config.limit = k
        config.edge_config.sim_min_score = -1.0  # its 0.6 cuts results, and what is cut differs from model to model
        true_now = SearchFilters(
            invalid_at=[
                [DateFilter(comparison_operator=ComparisonOperator.is_null)],
                [DateFilter(date=datetime.now(UTC), comparison_operator=ComparisonOperator.greater_than)],
            ]
        )
        found = await self._graphiti.search_(query, config=config, group_ids=[group], search_filter=true_now)
        return await self._facts(group, found.edges, found.edge_reranker_scores)

    async def facts(self, group: str, fact_ids: Collection[str] | None = None) -> list[Fact]:
        """Every fact of a group, ended ones too, or those of these ids, by id."""
        edges = await self._edges(group)
        wanted = [edge for edge in edges if fact_ids is None or edge.uuid in fact_ids]
        return await self._facts(group, sorted(wanted, key=lambda edge: str(edge.uuid)))

    async def erase(self, group: str, episodes: Collection[str]) -> Left:
        """Erases episodes, the facts and entities that stand on them alone, and their part in what stays.

        Not by `remove_episode`: that keeps old summaries where a model fails, asks it a call for each ten other
        episodes of each entity, does not see what a kill has left half done, and leaves facts ended that the episode
        had ended. Repeatable; asks no model.
        """
        gone, driver = set(episodes), driver_of(self._driver, group)
        edges = await self._edges(group)
        entities = await EntityNode.get_by_group_ids(driver, [group])
        raw = await EpisodicNode.get_by_uuids(driver, sorted(gone))
        mentions = await self._mentions(group)
        lost = [edge for edge in edges if gone >= set(edge.episodes)]
        kept = [edge for edge in edges if not gone >= set(edge.episodes)]
        shared = [edge for edge in kept if gone & set(edge.episodes)]
        worded = sum(edge.episodes[0] in gone for edge in shared)
        for edge in shared:
            edge.episodes = [each for each in edge.episodes if each not in gone]
        ended = {each for episode in raw for each in episode.entity_edges}
        ends = {edge.valid_at for edge in lost if edge.valid_at is not None}
        revived = [edge for edge in kept if edge.uuid in ended and edge not in shared and edge.invalid_at in ends]
        for edge in revived:
            edge.invalid_at = edge.expired_at = None
        for edge in (*shared, *revived):
            await edge.load_fact_embedding(driver)
            await edge.save(driver)
        await EntityEdge.delete_by_uuids(driver, [edge.uuid for edge in lost])
        await self._erase_entities(group, entities, kept, mentions, gone, whole=_unfinished(raw, mentions))
        await Node.delete_by_uuids(driver, sorted(gone))
        return await self._left(group, gone, {edge.fact for edge in lost} - {edge.fact for edge in kept}, worded)

    async def reset(self, group: str) -> Left:
        """Erases all of a group."""
        driver = driver_of(self._driver, group)
        await clear_data(driver, group_ids=[group])
        episodes = await EpisodicNode.get_by_group_ids(driver, [group])
        entities = await EntityNode.get_by_group_ids(driver, [group])
        return Left(facts=len(await self._edges(group)) + len(entities), episodes=len(episodes))

    async def check(self) -> None:
        """Raises while the database is away."""
        await self._driver.execute_query("RETURN 1 AS one")

    async def close(self) -> None:
        """Ends the connections to models and database."""
        await self._graphiti.llm_client.client.close()
        await self._graphiti.embedder.client.close()
        await self._driver.close()

    async def _erase_entities(
        self,
        group: str,
        entities: Sequence[Any],
        kept: Sequence[Any],
        mentions: dict[str, set[str]],
        gone: set[str],
        *,
        whole: bool,
    ) -> None:
        """Deletes entities that nothing speaks of any longer, and writes the summaries of the others anew where an
        erased episode had a part in them (`whole`: all of them): from the facts that are left, as graphiti begins one.
        """
        driver = driver_of(self._driver, group)
        facts: dict[str, list[str]] = {}
        for edge in sorted(kept, key=lambda edge: _utc(edge.created_at) or datetime.max.replace(tzinfo=UTC)):
            for entity in {edge.source_node_uuid, edge.target_node_uuid}:
                facts.setdefault(entity, []).append(edge.fact)
        unspoken = [each for each in entities if each.uuid not in facts and mentions.get(each.uuid, set()) <= gone]
        await Node.delete_by_uuids(driver, [each.uuid for each in unspoken])
        for entity in entities:
            if entity in unspoken or not (whole or mentions.get(entity.uuid, set()) & gone):
                continue
            entity.summary = truncate_at_sentence("\n".join(facts.get(entity.uuid, [])), MAX_SUMMARY_CHARS)
            await entity.load_name_embedding(driver)
            await entity.save(driver)

    async def _left(self, group: str, gone: set[str], texts: set[str], worded: int) -> Left:
        driver = driver_of(self._driver, group)
        entities = await EntityNode.get_by_group_ids(driver, [group])
        citing = sum(bool(gone & set(edge.episodes)) for edge in await self._edges(group))
        telling = sum(any(text in entity.summary for text in texts) for entity in entities)
        episodes = await EpisodicNode.get_by_uuids(driver, sorted(gone))
        return Left(facts=citing + telling + worded, episodes=len(episodes), worded=worded)

    async def _edges(self, group: str) -> list[Any]:
        try:
            found: list[Any] = await EntityEdge.get_by_group_ids(driver_of(self._driver, group), [group])
        except GroupsEdgesNotFoundError:
            return []
        return found

    async def _mentions(self, group: str) -> dict[str, set[str]]:
        """The episodes that mention each entity."""
        found: dict[str, set[str]] = {}
        try:
            edges = await EpisodicEdge.get_by_group_ids(driver_of(self._driver, group), [group])
        except GroupsEdgesNotFoundError:
            return found
        for edge in edges:
            found.setdefault(edge.target_node_uuid, set()).add(edge.source_node_uuid)
        return found

    async def _facts(self, group: str, edges: Sequence[Any], scores: Sequence[float] = ()) -> list[Fact]:
        ids = sorted({each for edge in edges for each in edge.episodes})
        raw = await EpisodicNode.get_by_uuids(driver_of(self._driver, group), ids) if ids else []
        said = {each.uuid: _utc(each.valid_at) if each.source_description == _TIMED else None for each in raw}
        return [
            _fact(edge, [said.get(each) for each in edge.episodes], scores[place] if scores else None)
            for place, edge in enumerate(edges)
        ]


class _NoReranker(CrossEncoderClient):  # type: ignore[misc]  # graphiti is not here when this is checked
    """graphiti's own would ask a model of OpenAI's; the searches here rank without one."""

    async def rank(self, query: str, passages: list[str]) -> list[tuple[str, float]]:
        """Never asked."""
        raise NotImplementedError


def _clean(text: str) -> str:
    """A text without what JSON cannot carry or a model cannot read."""
    return "".join(each for each in text.encode(errors="ignore").decode() if each >= " " or each in "\n\r\t")


async def _earlier(retrieve: Any, reference_time: datetime, last_n: int, **more: Any) -> list[Any]:
    """The episodes before the one that is being added, which is stored already."""
    found = await retrieve(reference_time, last_n=last_n + 1, **more)
    return [each for each in found if each.uuid != _adding.get()][-last_n:]


def _unfinished(raw: Sequence[Any], mentions: dict[str, set[str]]) -> bool:
    """Whether an episode may have been cut off while it was written: its words may stand in any summary."""
    mentioned = {each for episodes in mentions.values() for each in episodes}
    return any(not episode.entity_edges or episode.uuid not in mentioned for episode in raw)


def _fact(edge: Any, said: Sequence[datetime | None], score: float | None) -> Fact:
    times = [each for each in said if each is not None]
    timed = bool(times) and len(times) == len(said)
    return Fact(
        fact_id=str(edge.uuid),
        text=str(edge.fact),
        episodes=tuple(edge.episodes),
        score=score,
        time=min(times) if timed else None,
        valid_from=_utc(edge.valid_at) if timed else None,
        valid_to=_utc(edge.invalid_at) if timed else None,
    )


def _utc(moment: datetime | None) -> datetime | None:
    """Kuzu gives times back in UTC without saying so."""
    return moment.replace(tzinfo=UTC) if moment is not None and moment.tzinfo is None else moment
