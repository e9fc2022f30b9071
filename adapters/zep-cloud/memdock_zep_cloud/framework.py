"""Zep Cloud itself, by its own client: what it answers becomes plain records, what it refuses an error.

The only file that knows the service. Each message bears its turn's id, session and time in its metadata, so that its
episode can be found and told again however far the request came, and nothing has to be kept here.
"""

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from memdock.adapter.patience import patient
from memdock.errors import MemdockError, error
from memdock.types import Turn

ResultT = TypeVar("ResultT")

MESSAGES_A_CALL = 30
MESSAGE_CHARACTERS = 2500
"""A message's most, of the smallest plan; a longer turn is several messages."""
QUERY_CHARACTERS = 400
MOST_FACTS = 50
"""Limits of the service."""
_PAGE = 50
_IDS_A_CALL = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """A message as Zep keeps it. `said`: the turn's time, where it had one."""

    uuid: str
    turn_id: str
    session_id: str
    said: datetime | None
    processed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """An edge of the user's graph. `episodes`: the messages that it was drawn from."""

    uuid: str
    text: str
    score: float | None
    valid_at: datetime | None
    invalid_at: datetime | None
    episodes: tuple[str, ...]


class Zep:
    """The service at `url`. `answer_s` and `patience_s` are seconds, as `HostedSettings` has them."""

    def __init__(self, url: str, key: str, *, answer_s: float, patience_s: float) -> None:
        os.environ.pop("ZEP_API_URL", None)  # its client takes that for the address, whatever it is given
        import httpx
        from zep_cloud.client import AsyncZep

        self._http: Any = patient(
            httpx.AsyncClient(timeout=answer_s), "Zep Cloud", once=_adds_messages, patience_s=patience_s
        )
        self._zep: Any = AsyncZep(base_url=url, api_key=key, timeout=answer_s, httpx_client=self._http)
        self._known: set[str] = set()

    async def close(self) -> None:
        """Closes its connections."""
        await self._http.aclose()

    async def check(self) -> None:
        """Raises where the service is away, or does not know the key."""
        await _told(self._zep.project.get())

    async def add(self, user: str, thread: str, turns: Sequence[Turn]) -> list[list[str]]:
        """Sends turns of one session, at most `MESSAGES_A_CALL` messages; the ids of each turn's episodes."""
        from zep_cloud.types import Message

        pieces = [message_pieces(turn.text) for turn in turns]
        messages = [
            Message(
                role=turn.role,
                name=turn.name or None,
                content=piece,
                created_at=None if turn.time is None else turn.time.isoformat(),
                metadata=_metadata(turn),
            )
            for turn, texts in zip(turns, pieces, strict=True)
            for piece in texts
        ]
        for _ in range(2):  # once more where somebody has deleted the user or the thread since it was made
            await self._make(user, thread)
            with _unless_unknown() as answers:
                answers.append(await _told(self._zep.thread.add_messages(thread, messages=messages)))
            if answers:
                break
            self._known -= {user, thread}
        uuids = [uuid for answer in answers for uuid in answer.message_uuids or ()]
        if len(uuids) != len(messages) or not all(isinstance(each, str) and each for each in uuids):
            raise error("PROVIDER_PROTOCOL_ERROR", "Zep Cloud did not name the messages that it has taken.")
        return [[uuids.pop(0) for _ in texts] for texts in pieces]

    async def processed(self, episode: str) -> bool:
        """Whether the facts of an episode are in the graph."""
        with _unless_unknown() as found:
            found.append(await _told(self._zep.graph.episode.get(episode)))
        return any(each.processed for each in found)

    async def facts_of(self, episode: str) -> list[str]:
        """The ids of the facts that an episode tells."""
        with _unless_unknown() as found:
            found.append(await _told(self._zep.graph.episode.get_nodes_and_edges(episode)))
        return [edge.uuid_ for each in found for edge in each.edges or ()]

    async def search(self, user: str, query: str, *, k: int, reranker: str) -> list[Fact]:
        """The facts that fit, best first; none for an unknown user."""
        asked = {"query": query[:QUERY_CHARACTERS], "limit": min(k, MOST_FACTS), "scope": "edges", "reranker": reranker}
        with _unless_unknown() as found:
            answer = await _told(self._zep.graph.search(user_id=user, **asked))
            found += [_fact(edge, scored=reranker == "cross_encoder") for edge in answer.edges or ()]
        return found

    async def facts(self, user: str) -> list[Fact]:
        """All facts of a user, by id."""
        found = [_fact(edge, scored=False) async for edge in self._pages(self._zep.graph.edge, "get_by_user_id", user)]
        return sorted(found, key=lambda fact: fact.uuid)

    async def episodes_of_turns(self, user: str, turn_ids: Collection[str]) -> list[Episode]:
        """The episodes of turns, in no order."""
        wanted = set(turn_ids)
        listed = self._pages(self._zep.graph.episode, "list_by_user_id", user)
        return [each async for one in listed if (each := _episode(one)) is not None and each.turn_id in wanted]

    async def episodes(self, user: str, uuids: Sequence[str]) -> list[Episode]:
        """Episodes by their ids, those that there are."""
        found: list[Episode] = []
        for start in range(0, len(uuids), _IDS_A_CALL):
            part = list(uuids[start : start + _IDS_A_CALL])
            listed = self._pages(self._zep.graph.episode, "list_by_user_id", user, mentioned_node_uuids=part)
            found += [each async for one in listed if (each := _episode(one)) is not None]
        return found

    async def erase(self, episodes: Collection[str], facts: Collection[str]) -> None:
        """Deletes episodes, and facts that stand on them; what is gone already is no error."""
        for uuid in episodes:
            with _unless_unknown():
                await _told(self._zep.graph.episode.delete(uuid))
        for uuid in facts:
            with _unless_unknown():
                await _told(self._zep.graph.edge.delete(uuid))

    async def messages(self, thread: str) -> tuple[set[str], bool]:
        """The ids of the messages that a thread holds, and whether these are all."""
        found: set[str] = set()
        with _unless_unknown():
            while True:
                page = await _told(self._zep.thread.get(thread, limit=_PAGE, cursor=len(found)))
                new = {message.uuid_ for message in page.messages or ()} - found
                found |= new
                if not new or len(found) == page.total_count:
                    return found, len(found) == (page.total_count or 0)
        return found, True

    async def entities(self, user: str) -> int:
        """How many entities the user's graph holds, with summaries that Zep writes of what was said about them."""
        return len([None async for _ in self._pages(self._zep.graph.node, "get_by_user_id", user)])

    async def erase_user(self, user: str) -> None:
        """Deletes a user with threads and graph; an unknown one is no error."""
        self._known = {each for each in self._known if not each.startswith(user)}
        with _unless_unknown():
            await _told(self._zep.user.delete(user))

    async def has_user(self, user: str) -> bool:
        """Whether there is such a user."""
        with _unless_unknown() as found:
            await _told(self._zep.user.get(user))
            found.append(user)
        return bool(found)

    async def _make(self, user: str, thread: str) -> None:
        """Makes the user and the thread where they are missing."""
        if user not in self._known:
            await self._made(lambda: self.has_user(user), lambda: self._zep.user.add(user_id=user))
        if thread not in self._known:
            making = partial(self._zep.thread.create, thread_id=thread, user_id=user)
            await self._made(lambda: self._has_thread(thread), making)
        self._known |= {user, thread}

    async def _made(self, there: Callable[[], Awaitable[bool]], make: Callable[[], Awaitable[Any]]) -> None:
        if await there():
            return
        try:
            await _told(make())
        except MemdockError:
            if not await there():  # it may have been made, although the answer was lost
                raise

    async def _has_thread(self, thread: str) -> bool:
        with _unless_unknown() as found:
            found.append(await _told(self._zep.thread.get(thread, limit=1)))
        return bool(found)

    async def _pages(self, part: Any, call: str, user: str, **more: Any) -> AsyncIterator[Any]:
        """Every row of a listing; none for an unknown user."""
        cursor, seen = "", {""}
        while True:
            asked = {**more, "limit": _PAGE, **({"cursor": cursor} if cursor else {})}
            with _unless_unknown() as pages:
                pages.append(await _told(getattr(part.with_raw_response, call)(user, **asked)))
            for page in pages:
                for row in page.data or ():
                    yield row
            cursor = pages[0].headers.get("zep-next-cursor", "") if pages else ""
            if cursor in seen:
                return
            seen.add(cursor)


def message_pieces(text: str) -> list[str]:
    """The text in pieces that a message may hold, cut at a space where there is one near the end.

    A turn of the protocol's longest text is `MESSAGES_A_CALL` pieces at most.
    """
    pieces = []
    while len(text) > MESSAGE_CHARACTERS:
        end = text.rfind(" ", MESSAGE_CHARACTERS * 9 // 10, MESSAGE_CHARACTERS) + 1 or MESSAGE_CHARACTERS
        pieces.append(text[:end])
        text = text[end:]
    return [*pieces, text]


def _adds_messages(request: Any) -> bool:
    return bool(request.method == "POST" and request.url.path.endswith("/messages"))


def _metadata(turn: Turn) -> dict[str, str]:
    said = {} if turn.time is None else {"said_at": turn.time.isoformat()}
    return {"turn_id": turn.turn_id, "session_id": turn.session_id, **said}


def _episode(found: Any) -> Episode | None:
    """`None` where it is no message of ours."""
    told: Mapping[str, Any] = found.metadata or {}
    if not isinstance(told.get("turn_id"), str) or not isinstance(told.get("session_id"), str):
        return None
    said = told.get("said_at")
    return Episode(
        uuid=found.uuid_,
        turn_id=told["turn_id"],
        session_id=told["session_id"],
        said=_time(said),
        processed=bool(found.processed),
    )


def _fact(edge: Any, *, scored: bool) -> Fact:
    return Fact(
        uuid=edge.uuid_,
        text=edge.fact,
        score=edge.score if scored else None,
        valid_at=_time(edge.valid_at),
        invalid_at=_time(edge.invalid_at),
        episodes=tuple(edge.episodes or ()),
    )


def _time(text: str | None) -> datetime | None:
    """RFC 3339 as Zep writes it."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise error("PROVIDER_PROTOCOL_ERROR", "Zep Cloud gave a time that is none of RFC 3339.")
    return moment


@contextmanager
def _unless_unknown() -> Iterator[list[Any]]:
    """Passes over 404: the list that it gives stays as it was."""
    try:
        yield []
    except _UnknownError:
        return


class _UnknownError(Exception):
    """404."""


async def _told(work: Awaitable[ResultT]) -> ResultT:
    """An exception of Zep's client by its kind; its words may hold a text of a turn and are left out."""
    try:
        return await work
    except MemdockError:
        raise
    except Exception as fault:
        status, kind = getattr(fault, "status_code", None), type(fault).__name__
        if status == 404:
            raise _UnknownError from None
        if status is not None:
            raise error("PROVIDER_PROTOCOL_ERROR", f"Zep Cloud refused the request (HTTP {status}).") from fault
        if type(fault).__module__.startswith("pydantic"):
            raise error("PROVIDER_PROTOCOL_ERROR", f"Zep Cloud's answer has another form ({kind}).") from fault
        raise error("INTERNAL", f"Zep Cloud's client failed ({kind}).") from fault
