"""A small memory system in memory that asks a model about every turn and query, with every feature; for the suite."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import aiohttp

from memdock import usage
from memdock.errors import InternalError
from memdock.system import Batch, Outcome, SystemInfo
from memdock.types import (
    Component,
    Erasure,
    Feature,
    Memory,
    Query,
    Residue,
    Selection,
    Software,
    Source,
    Support,
    Turn,
    TurnError,
    TurnState,
)

NOTHING_LEFT = (Residue(component=Component.RAW_TURNS, verified=True),)
MODEL = "small"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A turn with the id of its memory."""

    memory_id: str
    turn: Turn

    def memory(self, score: float | None = None) -> Memory:
        turn = self.turn
        day = turn.time.astimezone(ZoneInfo(turn.time_zone or "UTC")).date() if turn.time and turn.time_zone else None
        return Memory(
            memory_id=self.memory_id,
            text=turn.text,
            kind="turn",
            score=score,
            time=turn.time,
            sources=(Source(session_id=turn.session_id, turn_id=turn.turn_id),),
            metadata={"day": day.isoformat()} if day else {},
        )


class Remembering:
    """Keeps each turn as it is, by words. `model_url` ends in `/v1`; the model says what is worth keeping."""

    def __init__(self, model_url: str, features: Sequence[Feature] = tuple(Feature)) -> None:
        self.info = SystemInfo(
            name="remembering",
            adapter=Software(name="remembering", version="1"),
            framework=Software(name="dict", version="1"),
            features=dict.fromkeys(features, Support.NATIVE),
        )
        self._url = f"{model_url}/chat/completions"
        self._count = 0
        self.spaces: dict[str, list[Kept]] = {}

    async def start(self) -> None:
        self._session = aiohttp.ClientSession()

    async def close(self) -> None:
        await self._session.close()

    async def ask(self, purpose: str, text: str) -> str:
        """What the model says; a failure of it is an error."""
        body = {"model": MODEL, "messages": [{"role": "user", "content": text}]}
        async with self._session.post(self._url, json=body) as answer:
            if answer.status != 200:
                raise InternalError("PROVIDER_PROTOCOL_ERROR", f"the model answers with status {answer.status}")
            try:
                document: dict[str, Any] = await answer.json()
                said: str = document["choices"][0]["message"]["content"]
            except (ValueError, KeyError, aiohttp.ClientError):
                raise InternalError("PROVIDER_PROTOCOL_ERROR", "the model answers with what is no answer") from None
        counted = document["usage"]
        usage.count(
            model=MODEL,
            purpose=purpose,
            calls=1,
            input_tokens=counted["prompt_tokens"],
            output_tokens=counted["completion_tokens"],
        )
        return said

    async def add(self, space: str, turns: Sequence[Turn], *, final: bool) -> Batch:
        return Batch(outcomes=[await self._add(space, turn) for turn in turns])

    async def _add(self, space: str, turn: Turn) -> Outcome:
        try:
            said = await self.ask("extraction", turn.text)
        except InternalError as error:
            failed = TurnError(reason=error.reason, message=error.message, retryable=True)
            return Outcome(state=TurnState.FAILED, error=failed)
        if not said:
            return Outcome(state=TurnState.NO_MEMORY)
        return Outcome(state=TurnState.SEARCHABLE, memory_ids=(self.keep(space, turn),))

    def keep(self, space: str, turn: Turn) -> str:
        """Stores the turn; the memory's id."""
        self._count += 1
        kept = Kept(memory_id=f"m{self._count:06}", turn=turn)
        self.spaces.setdefault(space, []).append(kept)
        return kept.memory_id

    async def retrieve(self, space: str, query: Query) -> Sequence[Memory]:
        await self.ask("search", query.text)
        return self.ranked(space, query)

    def ranked(self, space: str, query: Query) -> list[Memory]:
        """Those that share a word with the query, the most words first; of last month's one half more."""
        asked = set(query.text.lower().split())
        found = []
        for kept in self.spaces.get(space, ()):
            shared = len(asked & set(kept.turn.text.lower().split()))
            if shared and _fits(kept.turn, query):
                found.append(kept.memory(shared + (0.5 if _last_month(kept.turn, query) else 0.0)))
        return sorted(found, key=lambda memory: -(memory.score or 0.0))[: query.top_k]

    async def forget(self, space: str, selection: Selection, *, dry_run: bool) -> Erasure:
        held = self.spaces.get(space, [])
        gone = [
            kept for kept in held if kept.memory_id in selection.memory_ids or kept.turn.turn_id in selection.turn_ids
        ]
        if not dry_run:
            self.spaces[space] = [kept for kept in held if kept not in gone]
        ids = {kept.memory_id for kept in gone}
        return Erasure(
            erased_memory_ids=tuple(kept.memory_id for kept in gone),
            erased_turn_ids=tuple(kept.turn.turn_id for kept in gone),
            not_found=tuple(one for one in selection.memory_ids if one not in ids),
            residual=NOTHING_LEFT,
        )

    async def reset(self, space: str) -> Sequence[Residue]:
        self.spaces.pop(space, None)
        return NOTHING_LEFT

    async def list_memories(self, space: str, *, after: str, limit: int) -> Sequence[Memory]:
        return [kept.memory() for kept in self.spaces.get(space, ()) if kept.memory_id > after][:limit]


def _fits(turn: Turn, query: Query) -> bool:
    if query.session_ids and turn.session_id not in query.session_ids:
        return False
    if query.since is not None and (turn.time is None or turn.time < query.since):
        return False
    return query.until is None or (turn.time is not None and turn.time < query.until)


def _last_month(turn: Turn, query: Query) -> bool:
    if query.reference_time is None or turn.time is None or "last month" not in query.text:
        return False
    now = query.reference_time.astimezone(ZoneInfo(query.time_zone or "UTC"))
    before = now.replace(day=1) - timedelta(days=1)
    then = turn.time.astimezone(UTC)
    return (then.year, then.month) == (before.year, before.month)


def now() -> datetime:
    """For a system that forgets when things were said."""
    return datetime.now(UTC)
