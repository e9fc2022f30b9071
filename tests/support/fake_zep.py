"""A fake of Zep Cloud's API v3, after its published client zep-cloud 3.30.0 and its documentation.

Messages of a user become facts one after another; a message whose model fails is tried again until it works, for the
service has no word for one that failed. Deleting an episode takes its message, its facts, and entities that it alone
names; summaries of others keep its words, as the service says of itself.
"""

import asyncio
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import aiohttp
from aiohttp import web

from support.hosted_service import Handler, RefusedError, Service, body_of, check_fields, likeness, query_of

_ROLES = {"norole", "system", "assistant", "user", "function", "tool"}
_FILTERS = {"filters": dict, "limit": int, "cursor": str, "uuid_cursor": str, "direction": str, "order_by": str}
_SEARCH = {
    "bfs_origin_node_uuids": list, "center_node_uuid": str, "graph_id": str, "limit": int, "max_characters": int,
    "mmr_lambda": float, "reranker": str, "return_raw_results": bool, "scope": str, "search_filters": dict,
    "user_id": str,
}  # fmt: skip
_PAGE = 50


@dataclass(slots=True, kw_only=True)
class _Episode:
    uuid: str
    thread_id: str
    user_id: str
    message: dict[str, Any]
    processed: bool = False

    @property
    def json(self) -> dict[str, Any]:
        return {
            "uuid": self.uuid,
            "content": self.message["content"],
            "created_at": self.message["created_at"],
            "metadata": self.message["metadata"],
            "role_type": self.message["role"],
            "source": "message",
            "thread_id": self.thread_id,
            "processed": self.processed,
        }


@dataclass(slots=True, kw_only=True)
class _User:
    user_id: str
    queue: asyncio.Queue[str] = field(default_factory=asyncio.Queue)
    edges: dict[str, dict[str, Any]] = field(default_factory=dict)
    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)


class FakeZep(Service):
    """State by user. `slow_s`: how long it takes over a message beside what its model takes."""

    scheme = "Api-Key"
    base = "/api/v2"

    def __init__(self) -> None:
        super().__init__()
        self.users: dict[str, _User] = {}
        self.threads: dict[str, str] = {}
        self.episodes: dict[str, _Episode] = {}
        self.slow_s = 0.0

    def routes(self) -> Sequence[tuple[str, str, Handler]]:
        base = self.base
        return [
            ("GET", f"{base}/projects/info", self._project),
            ("POST", f"{base}/users", self._add_user),
            ("GET", f"{base}/users/{{user}}", self._get_user),
            ("DELETE", f"{base}/users/{{user}}", self._delete_user),
            ("POST", f"{base}/threads", self._create_thread),
            ("GET", f"{base}/threads/{{thread}}/messages", self._get_messages),
            ("POST", f"{base}/threads/{{thread}}/messages", self._add_messages),
            ("POST", f"{base}/graph/search", self._search),
            ("POST", f"{base}/graph/edge/user/{{user}}", self._list_edges),
            ("DELETE", f"{base}/graph/edge/{{uuid}}", self._delete_edge),
            ("POST", f"{base}/graph/node/user/{{user}}", self._list_nodes),
            ("POST", f"{base}/graph/episodes/user/{{user}}", self._list_episodes),
            ("GET", f"{base}/graph/episodes/{{uuid}}", self._get_episode),
            ("GET", f"{base}/graph/episodes/{{uuid}}/mentions", self._get_mentions),
            ("DELETE", f"{base}/graph/episodes/{{uuid}}", self._delete_episode),
        ]

    def texts(self) -> list[str]:
        edges = [edge["fact"] for user in self.users.values() for edge in user.edges.values()]
        nodes = [node["summary"] for user in self.users.values() for node in user.nodes.values()]
        return [*edges, *nodes, *(str(each.message["content"]) for each in self.episodes.values())]

    async def _project(self, request: web.Request) -> web.StreamResponse:
        query_of(request)
        return web.json_response({"project": {"name": "test"}})

    async def _add_user(self, request: web.Request) -> web.StreamResponse:
        more = {"disable_default_ontology": bool, "email": str, "first_name": str, "last_name": str, "metadata": dict,
                "time_zone": str}  # fmt: skip
        body = await body_of(request, {"user_id": str}, more)
        if body["user_id"] in self.users:
            raise RefusedError("user already exists", odd=False)
        user = self.users[body["user_id"]] = _User(user_id=body["user_id"])
        self.work(self._process(user))
        return web.json_response({"user_id": user.user_id}, status=201)

    async def _get_user(self, request: web.Request) -> web.StreamResponse:
        query_of(request)
        return web.json_response({"user_id": self._user(request).user_id})

    async def _delete_user(self, request: web.Request) -> web.StreamResponse:
        query_of(request)
        user = self._user(request).user_id
        del self.users[user]
        self.threads = {thread: owner for thread, owner in self.threads.items() if owner != user}
        self.episodes = {each.uuid: each for each in self.episodes.values() if each.user_id != user}
        return web.json_response({"message": "user deleted"})

    async def _create_thread(self, request: web.Request) -> web.StreamResponse:
        body = await body_of(request, {"thread_id": str, "user_id": str}, {})
        if body["user_id"] not in self.users:
            raise RefusedError("there is no such user")
        if body["thread_id"] in self.threads:
            raise RefusedError("the thread exists", odd=False)
        self.threads[body["thread_id"]] = body["user_id"]
        return web.json_response(body, status=201)

    async def _get_messages(self, request: web.Request) -> web.StreamResponse:
        asked, thread = query_of(request, "limit", "cursor", "lastn"), self._thread(request)
        held = [each for each in self.episodes.values() if each.thread_id == thread]
        start = int(asked.get("cursor", 0))
        page = held[start : start + int(asked.get("limit", _PAGE))]
        messages = [{**each.message, "uuid": each.uuid, "processed": each.processed} for each in page]
        return web.json_response({"messages": messages, "row_count": len(page), "total_count": len(held)})

    async def _add_messages(self, request: web.Request) -> web.StreamResponse:
        more = {"ignore_roles": list, "return_context": bool, "strict_ontology": bool}
        body, thread = await body_of(request, {"messages": list}, more), self._thread(request)
        if len(body["messages"]) > 30:
            raise RefusedError("more than 30 messages")
        for message in body["messages"]:
            _check_message(message)
        user = self.users[self.threads[thread]]
        uuids = []
        for message in body["messages"]:
            now = datetime.now(UTC).isoformat()
            kept = {
                **message,
                "created_at": message.get("created_at") or now,
                "metadata": message.get("metadata") or {},
            }
            episode = _Episode(uuid=str(uuid.uuid4()), thread_id=thread, user_id=user.user_id, message=kept)
            self.episodes[episode.uuid] = episode
            user.queue.put_nowait(episode.uuid)
            uuids.append(episode.uuid)
        return web.json_response({"message_uuids": uuids})

    async def _process(self, user: _User) -> None:
        while True:
            next_one = await user.queue.get()
            episode = self.episodes.get(next_one)
            while episode is not None:
                try:
                    await asyncio.sleep(self.slow_s)
                    facts = await self.told_by(episode.message["content"], episode.message["created_at"])
                    break
                except (aiohttp.ClientError, ValueError, KeyError):
                    await asyncio.sleep(0.1)
                    episode = self.episodes.get(episode.uuid)
            if episode is not None and episode.uuid in self.episodes:  # what is deleted meanwhile leaves nothing
                self._draw(user, episode, facts)
                episode.processed = True

    def _draw(self, user: _User, episode: _Episode, facts: Sequence[dict[str, Any]]) -> None:
        speaker = str(episode.message.get("name") or episode.message["role"])
        for told in facts:
            fact = str(told["fact"])
            source, target = (self._name(user, name, episode, fact) for name in (speaker, fact.partition(" ")[0]))
            same = next((edge for edge in user.edges.values() if edge["fact"] == fact), None)
            if same is not None:
                same["episodes"].append(episode.uuid)
                continue
            edge = {
                "uuid": str(uuid.uuid4()),
                "fact": fact,
                "name": "SAID",
                "created_at": datetime.now(UTC).isoformat(),
                "valid_at": told.get("valid_at", episode.message["created_at"]),
                "invalid_at": told.get("invalid_at"),
                "episodes": [episode.uuid],
                "source_node_uuid": source,
                "target_node_uuid": target,
            }
            user.edges[edge["uuid"]] = edge

    def _name(self, user: _User, name: str, episode: _Episode, fact: str) -> str:
        node = next((each for each in user.nodes.values() if each["name"] == name), None)
        if node is None:
            node = {"uuid": str(uuid.uuid4()), "name": name, "summary": "", "episodes": [],
                    "created_at": datetime.now(UTC).isoformat()}  # fmt: skip
            user.nodes[node["uuid"]] = node
        node["summary"] = f"{node['summary']} {fact}".strip()
        node["episodes"].append(episode.uuid)
        return str(node["uuid"])

    async def _search(self, request: web.Request) -> web.StreamResponse:
        body = await body_of(request, {"query": str, "user_id": str}, _SEARCH)
        if len(body["query"]) > 400 or not 1 <= body.get("limit", 10) <= 50 or body.get("scope", "edges") != "edges":
            raise RefusedError("a query of more than 400 characters, a limit out of 1 to 50, or another scope")
        if body.get("reranker", "rrf") not in ("rrf", "cross_encoder"):
            raise RefusedError("a reranker that this fake does not have")
        if body["user_id"] not in self.users:
            raise RefusedError("user not found", 404, odd=False)
        edges = [(likeness(body["query"], edge["fact"]), edge) for edge in self.users[body["user_id"]].edges.values()]
        ranked = sorted(edges, key=lambda pair: -pair[0])[: body.get("limit", 10)]
        if body.get("reranker") == "cross_encoder":
            return web.json_response({"edges": [{**edge, "score": score} for score, edge in ranked]})
        found = [{**edge, "score": float(place)} for place, (_, edge) in enumerate(ranked, 1)]
        return web.json_response({"edges": found} if found else {})

    async def _list_edges(self, request: web.Request) -> web.StreamResponse:
        return await self._page(request, self._user(request).edges, _FILTERS)

    async def _list_nodes(self, request: web.Request) -> web.StreamResponse:
        return await self._page(request, self._user(request).nodes, _FILTERS)

    async def _list_episodes(self, request: web.Request) -> web.StreamResponse:
        user = self._user(request).user_id
        known = {"cursor": str, "direction": str, "episode_metadata_filters": dict, "limit": int,
                 "mentioned_node_uuids": list, "order_by": str}  # fmt: skip
        rows = {each.uuid: each.json for each in self.episodes.values() if each.user_id == user}
        return await self._page(request, rows, known)

    async def _page(
        self, request: web.Request, rows: dict[str, dict[str, Any]], known: dict[str, type]
    ) -> web.StreamResponse:
        body = await body_of(request, {}, known)
        if wanted := body.get("mentioned_node_uuids"):
            if len(wanted) > 256:
                raise RefusedError("more than 256 uuids")
            rows = {each: row for each, row in rows.items() if each in wanted}
        if body.get("episode_metadata_filters") or body.get("filters"):
            raise RefusedError("a filter that this fake does not have")
        found = sorted(
            (row for row in rows.values() if row["uuid"] > body.get("cursor", "")), key=lambda row: row["uuid"]
        )
        page = found[: min(body.get("limit", 100), _PAGE)]
        more = {"Zep-Next-Cursor": page[-1]["uuid"]} if len(found) > len(page) else {}
        return web.json_response(page, headers=more)

    async def _get_episode(self, request: web.Request) -> web.StreamResponse:
        query_of(request)
        return web.json_response(self._episode(request).json)

    async def _get_mentions(self, request: web.Request) -> web.StreamResponse:
        query_of(request)
        episode = self._episode(request)
        user = self.users[episode.user_id]
        edges = [edge for edge in user.edges.values() if episode.uuid in edge["episodes"]]
        nodes = [node for node in user.nodes.values() if episode.uuid in node["episodes"]]
        return web.json_response({"edges": edges, "nodes": nodes})

    async def _delete_episode(self, request: web.Request) -> web.StreamResponse:
        query_of(request)
        episode = self._episode(request)
        user = self.users[episode.user_id]
        del self.episodes[episode.uuid]
        user.edges = {each: edge for each, edge in user.edges.items() if episode.uuid not in edge["episodes"]}
        for node in user.nodes.values():
            node["episodes"] = [each for each in node["episodes"] if each != episode.uuid]
        user.nodes = {each: node for each, node in user.nodes.items() if node["episodes"]}
        return web.json_response({"message": "episode deleted"})

    async def _delete_edge(self, request: web.Request) -> web.StreamResponse:
        query_of(request)
        for user in self.users.values():
            if user.edges.pop(request.match_info["uuid"], None) is not None:
                return web.json_response({"message": "edge deleted"})
        raise RefusedError("edge not found", 404, odd=False)

    def _user(self, request: web.Request) -> _User:
        user = self.users.get(request.match_info["user"])
        if user is None:
            raise RefusedError("user not found", 404, odd=False)
        return user

    def _thread(self, request: web.Request) -> str:
        thread = request.match_info["thread"]
        if thread not in self.threads:
            raise RefusedError("thread not found", 404, odd=False)
        return thread

    def _episode(self, request: web.Request) -> _Episode:
        episode = self.episodes.get(request.match_info["uuid"])
        if episode is None:
            raise RefusedError("episode not found", 404, odd=False)
        return episode


def _check_message(message: dict[str, Any]) -> None:
    more = {"created_at": str, "metadata": dict, "name": str, "processed": bool, "uuid": str}
    check_fields(message, {"content": str, "role": str}, more)
    if message["role"] not in _ROLES or len(message["content"]) > 2500:
        raise RefusedError("a role that there is not, or more than 2500 characters")
    if message.get("created_at") and datetime.fromisoformat(message["created_at"]).tzinfo is None:
        raise RefusedError("created_at without an offset")
    if len(message.get("metadata") or {}) > 10:
        raise RefusedError("more than 10 keys of metadata")
