"""mem0's hosted service itself, by its own client: what it answers becomes plain records, what it refuses an error.

The only file that knows the service. Each add bears a `group` of ours in its metadata, so that its memories can be
found again however far it came.
"""

import logging
import os
from collections.abc import Awaitable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from memdock.adapter.patience import patient
from memdock.errors import MemdockError, error

Record = dict[str, Any]

MOST_MEMORIES = 1000
"""What one search may give."""
_PAGE = 200
_GROUPS_A_CALL = 20
"""A filter for more is not sent: all memories are listed then."""
_MOST_EVENTS = 2000
"""How many of the latest events are looked through for those of a space."""
_DONE = ("SUCCEEDED", "FAILED")
_ROLES = {"tool": "assistant"}
"""mem0 knows user, assistant and system."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A write that mem0 has accepted; `group` and `user` where its payload tells them."""

    event_id: str
    done: bool
    failed: bool
    user: str
    group: str


class Mem0Platform:
    """The service at `url`. `answer_s` and `patience_s` are seconds, as `HostedSettings` has them."""

    def __init__(self, url: str, key: str, folder: Path, *, answer_s: float, patience_s: float) -> None:
        os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(folder)}
        import httpx
        from mem0.client.main import AsyncMemoryClient

        class Client(AsyncMemoryClient):  # type: ignore[misc]  # it has no types
            """Without a question to the service as it is made, which blocks and has no time-out: `check` asks it."""

            def _validate_api_key(self) -> None:
                self.org_id = self.project_id = "not asked for"  # only for operations of projects, which it has none of

        logger = logging.getLogger("mem0")
        logger.propagate = False  # its log holds addresses and answers
        logger.handlers[:] = [logging.NullHandler()]
        self._http: Any = patient(httpx.AsyncClient(timeout=answer_s), "mem0", once=_adds, patience_s=patience_s)
        self._mem0: Any = Client(api_key=key, host=url, client=self._http)

    async def close(self) -> None:
        """Closes its connections."""
        await self._http.aclose()

    async def check(self) -> None:
        """Raises where the service is away, or does not know the key."""
        await self._get("/v1/ping/")

    async def add(self, user: str, messages: Sequence[Record], metadata: Record, *, said: datetime | None) -> str:
        """Gives messages to mem0; the id of the event that tells when they are worked in."""
        told = [{**each, "role": _ROLES.get(each["role"], each["role"])} for each in messages]
        timed = {} if said is None else {"timestamp": int(said.timestamp())}
        answer = await _told(self._mem0.add(told, user_id=user, metadata=metadata, **timed))
        return _text(_object(answer), "event_id")

    async def event(self, event_id: str) -> Event:
        """What became of a write."""
        return _event(_object(await self._get(f"/v1/event/{event_id}/")))

    async def pending(self, user: str) -> list[Event]:
        """The writes of a user that are not done, of the latest that mem0 lists."""
        found: list[Event] = []
        path, seen = "/v1/events/", 0
        while path and seen < _MOST_EVENTS:
            page = _object(await self._get(path))
            rows = _rows(page)
            seen += len(rows)
            found += [each for each in map(_event, rows) if not each.done and each.user == user]
            following = urlsplit(str(page.get("next") or ""))  # the key goes to the service's own address alone
            path = f"{following.path}?{following.query}" if following.path else ""
        return found

    async def search(self, user: str, query: str, *, k: int, sessions: Sequence[str]) -> list[Record]:
        """The memories that fit, best first."""
        filters = _filters(user, [{"metadata": {"session_id": each}} for each in sessions])
        asking = self._mem0.search(query, filters=filters, top_k=min(k, MOST_MEMORIES), threshold=0.0)
        return [_memory(row) for row in _rows(_object(await _told(asking)))]

    async def memories(self, user: str, groups: Collection[str] | None = None) -> list[Record]:
        """All memories of a user, or of some of its adds."""
        if groups is not None and not groups:
            return []
        few = groups if groups is not None and len(groups) <= _GROUPS_A_CALL else ()
        filters = _filters(user, [{"metadata": {"group": each}} for each in few])
        found: list[Record] = []
        page = 1
        while True:
            answer = _object(await _told(self._mem0.get_all(filters=filters, page=page, page_size=_PAGE)))
            rows = _rows(answer)
            found += [_memory(row) for row in rows]
            if not rows or not answer.get("next"):
                break
            page += 1
        unique = {row["id"]: row for row in found}
        return [row for row in unique.values() if groups is None or row["group"] in groups]

    async def erase(self, memory_ids: Collection[str]) -> None:
        """Deletes memories; what is gone already is no error."""
        for memory_id in memory_ids:
            await _told(self._mem0.delete(memory_id), unknown=True)

    async def erase_user(self, user: str) -> str:
        """Has all memories of a user deleted; the id of the event that tells when they are, or nothing."""
        answer = _object(await _told(self._mem0.delete_all(user_id=user), unknown=True) or {})
        return str(answer.get("event_id") or "")

    async def _get(self, path: str) -> Any:
        """A call that mem0's client does not have, or has as it is made only."""

        async def ask() -> Any:
            answer = await self._http.get(path)
            answer.raise_for_status()
            return answer.json()

        return await _told(ask())


def _adds(request: Any) -> bool:
    return bool(request.url.path.endswith("/v3/memories/add/"))


def _filters(user: str, one_of: Sequence[Record] = ()) -> Record:
    """mem0 takes "equals" alone for metadata: one of several is an OR of them."""
    mine: list[Record] = [{"user_id": user}]
    return {"AND": [*mine, {"OR": list(one_of)}]} if one_of else {"AND": mine}


def _memory(row: Any) -> Record:
    """A memory with what we told mem0 of it; one that others have put in has no group."""
    found, metadata = _object(row), row.get("metadata") or {}
    ours: Mapping[str, Any] = metadata if isinstance(metadata, dict) else {}
    return {
        "id": _text(found, "id"),
        "text": _text(found, "memory"),
        "score": found.get("score"),
        "group": str(ours.get("group", "")),
        "said_at": str(ours.get("said_at", "")),
    }


def _event(row: Any) -> Event:
    found = _object(row)
    status, payload = _text(found, "status"), found.get("payload")
    told: Mapping[str, Any] = payload if isinstance(payload, dict) else {}
    metadata = told.get("metadata")
    return Event(
        event_id=_text(found, "id"),
        done=status in _DONE,
        failed=status == "FAILED",
        user=str(told.get("user_id", "")),
        group=str(metadata.get("group", "")) if isinstance(metadata, dict) else "",
    )


def _object(answer: Any) -> Record:
    if not isinstance(answer, dict):
        raise error("PROVIDER_PROTOCOL_ERROR", "mem0's answer is no JSON object.")
    return answer


def _rows(answer: Record) -> list[Any]:
    rows = answer.get("results")
    if not isinstance(rows, list):
        raise error("PROVIDER_PROTOCOL_ERROR", "mem0's answer has no list of results.")
    return rows


def _text(found: Record, name: str) -> str:
    value = found.get(name)
    if not isinstance(value, str) or not value:
        raise error("PROVIDER_PROTOCOL_ERROR", f"mem0's answer has no {name}.")
    return value


async def _told(work: Awaitable[Any], *, unknown: bool = False) -> Any:
    """An exception of mem0's client by its kind; its words may hold a text of a turn and are left out.

    `unknown`: what is not there is `None`, and no error.
    """
    try:
        return await work
    except MemdockError:
        raise
    except Exception as fault:
        status, kind = _status(fault), type(fault).__name__
        if unknown and status == "404":
            return None
        if status:
            raise error("PROVIDER_PROTOCOL_ERROR", f"mem0 refused the request (HTTP {status}).") from fault
        raise error("INTERNAL", f"mem0's client failed ({kind}).") from fault


def _status(fault: Exception) -> str:
    """The HTTP status behind an exception of the client's, or of httpx."""
    code = str(getattr(fault, "error_code", ""))
    if code.startswith("HTTP_"):
        return code.removeprefix("HTTP_")
    return str(getattr(getattr(fault, "response", None), "status_code", ""))
