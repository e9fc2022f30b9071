"""A fake of mem0's hosted service, API v3, after `mem0.client` of mem0ai 2.2.1 and the service's OpenAPI document.

Adds become memories in the background, an event each, several of one user's at once; an event whose model fails is
FAILED. Events and what was sent with them stay, as the service's do.
"""

import json
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import aiohttp
from aiohttp import web

from support.hosted_service import Handler, RefusedError, Service, body_of, check_fields, likeness, query_of

_ADD = {
    "user_id": str, "metadata": dict, "timestamp": int, "infer": bool, "custom_instructions": str,
    "custom_categories": list, "expiration_date": str, "structured_data_schema": dict,
}  # fmt: skip
_SEARCH = {"top_k": int, "threshold": float, "rerank": bool, "fields": list, "categories": list,
           "show_expired": bool, "reference_date": str}  # fmt: skip
_LIST = {"show_expired": bool, "start_date": str, "end_date": str, "categories": list, "fields": list}
_PAGE = 100


class FakeMem0(Service):
    """State by memory and by event."""

    scheme = "Token"

    def __init__(self) -> None:
        super().__init__()
        self.memories: dict[str, dict[str, Any]] = {}
        self.events: dict[str, dict[str, Any]] = {}

    def routes(self) -> Sequence[tuple[str, str, Handler]]:
        return [
            ("GET", "/v1/ping/", self._ping),
            ("POST", "/v3/memories/add/", self._add),
            ("POST", "/v3/memories/search/", self._search),
            ("POST", "/v3/memories/", self._list),
            ("DELETE", "/v1/memories/{memory}/", self._delete),
            ("DELETE", "/v1/memories/", self._delete_all),
            ("GET", "/v1/event/{event}/", self._event),
            ("GET", "/v1/events/", self._events),
        ]

    def texts(self) -> list[str]:
        payloads = [json.dumps(event["payload"], ensure_ascii=False) for event in self.events.values()]
        return [*payloads, *(str(row["memory"]) for row in self.memories.values())]

    async def _ping(self, request: web.Request) -> web.StreamResponse:
        query_of(request)
        return web.json_response({"status": "ok", "org_id": "o", "project_id": "p", "user_email": "a@example.com"})

    async def _add(self, request: web.Request) -> web.StreamResponse:
        body = await body_of(request, {"messages": list, "user_id": str}, _ADD)
        for message in body["messages"]:
            check_fields(message, {"role": str, "content": str}, {})
            if message["role"] not in ("user", "assistant", "system"):
                raise RefusedError("a role that there is not")
        event = self._begin("ADD", body)
        self.work(self._extract(event, body))
        return web.json_response({"event_id": event["id"], "status": "PENDING"})

    def _begin(self, kind: str, payload: dict[str, Any]) -> dict[str, Any]:
        now = datetime.now(UTC).isoformat()
        event: dict[str, Any] = {
            "id": str(uuid.uuid4()),
            "event_type": kind,
            "status": "PENDING",
            "payload": payload,
            "metadata": None,
            "results": [],
            "created_at": now,
            "updated_at": now,
        }
        self.events[event["id"]] = event
        return event

    async def _extract(self, event: dict[str, Any], body: dict[str, Any]) -> None:
        event["status"] = "RUNNING"
        said = datetime.fromtimestamp(body["timestamp"], UTC) if "timestamp" in body else datetime.now(UTC)
        try:
            found = [
                (message, fact)
                for message in body["messages"]
                for fact in await self.told_by(message["content"], said.isoformat())
            ]
        except (aiohttp.ClientError, ValueError, KeyError):
            event["status"] = "FAILED"
            return
        for _, fact in found:
            row = {
                "id": str(uuid.uuid4()),
                "memory": str(fact["fact"]),
                "user_id": body["user_id"],
                "metadata": dict(body.get("metadata") or {}),
                "categories": [],
                "created_at": said.isoformat(),
                "updated_at": said.isoformat(),
            }
            self.memories[row["id"]] = row
            event["results"].append({"id": row["id"], "event": "ADD", "data": {"memory": row["memory"]}})
        event["status"] = "SUCCEEDED"

    async def _search(self, request: web.Request) -> web.StreamResponse:
        body = await body_of(request, {"query": str, "filters": dict}, _SEARCH)
        if not 1 <= body.get("top_k", 10) <= 1000 or not 0 <= body.get("threshold", 0.1) <= 1:
            raise RefusedError("top_k out of 1 to 1000, or a threshold out of 0 to 1")
        rows = [{**row, "score": likeness(body["query"], row["memory"])} for row in self._fitting(body["filters"])]
        kept = [row for row in rows if row["score"] >= body.get("threshold", 0.1)]
        return web.json_response({"results": sorted(kept, key=lambda row: -row["score"])[: body.get("top_k", 10)]})

    async def _list(self, request: web.Request) -> web.StreamResponse:
        body = await body_of(request, {"filters": dict}, _LIST)
        if odd := set(request.query) - {"page", "page_size"}:
            raise RefusedError(f"{sorted(odd)[0]} is unknown")
        page, size = int(request.query.get("page", 1)), int(request.query.get("page_size", _PAGE))
        if page < 1 or not 1 <= size <= 200:
            raise RefusedError("a page before the first, or a page_size out of 1 to 200")
        rows = self._fitting(body["filters"])
        more = f"{self.url}/v3/memories/?page={page + 1}&page_size={size}" if page * size < len(rows) else None
        found = rows[(page - 1) * size : page * size]
        return web.json_response({"count": len(rows), "next": more, "previous": None, "results": found})

    def _fitting(self, filters: Mapping[str, Any]) -> list[dict[str, Any]]:
        _check(filters)
        if not any("user_id" in part for part in filters.get("AND", [filters])):
            raise RefusedError("filters without a user_id")
        return [row for row in self.memories.values() if _fits(row, filters)]

    async def _delete(self, request: web.Request) -> web.StreamResponse:
        query_of(request, "delete_linked")
        if self.memories.pop(request.match_info["memory"], None) is None:
            return web.json_response({"error": "Memory not found!"}, status=404)
        return web.json_response({"message": "Memory deleted successfully!"})

    async def _delete_all(self, request: web.Request) -> web.StreamResponse:
        user = query_of(request, "user_id", "agent_id", "app_id", "run_id").get("user_id", "")
        if not user or user == "*":
            raise RefusedError("this would delete the memories of everybody")
        event = self._begin("DELETE_ALL", {"user_id": user})
        self.work(self._erase(event, user))
        return web.json_response({"message": "Delete in progress. This may take some time.", "event_id": event["id"]})

    async def _erase(self, event: dict[str, Any], user: str) -> None:
        self.memories = {each: row for each, row in self.memories.items() if row["user_id"] != user}
        event["status"] = "SUCCEEDED"

    async def _event(self, request: web.Request) -> web.StreamResponse:
        query_of(request)
        event = self.events.get(request.match_info["event"])
        if event is None:
            raise RefusedError("Event not found or you don't have permission to access it.", 404)
        return web.json_response(event)

    async def _events(self, request: web.Request) -> web.StreamResponse:
        page = int(query_of(request, "page").get("page", 1))
        rows = list(reversed(self.events.values()))
        more = f"{self.url}/v1/events/?page={page + 1}" if page * _PAGE < len(rows) else None
        return web.json_response(
            {"count": len(rows), "next": more, "previous": None, "results": rows[(page - 1) * _PAGE : page * _PAGE]}
        )


def _check(condition: Any) -> None:
    """AND, OR, a user and equal metadata: what the service takes of its grammar, and this fake of that."""
    if not isinstance(condition, dict) or len(condition) != 1:
        raise RefusedError("a condition of another form")
    ((name, value),) = condition.items()
    if name in ("AND", "OR") and isinstance(value, list) and value:
        for each in value:
            _check(each)
    elif not (name == "user_id" and isinstance(value, str)) and not (
        name == "metadata" and isinstance(value, dict) and all(isinstance(each, str) for each in value.values())
    ):
        raise RefusedError(f"a condition that this fake does not have: {name}")


def _fits(row: Mapping[str, Any], condition: Mapping[str, Any]) -> bool:
    ((name, value),) = condition.items()
    if name == "AND":
        return all(_fits(row, each) for each in value)
    if name == "OR":
        return any(_fits(row, each) for each in value)
    if name == "user_id":
        return bool(row["user_id"] == value)
    return all((row["metadata"] or {}).get(key) == wanted for key, wanted in value.items())
