"""The small system with one fault each, of the kinds that the suite must not let pass."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from memdock.convert import read_turn
from memdock.errors import AlreadyExistsError, InternalError
from memdock.service import Call, Method, Service
from memdock.system import Outcome
from memdock.types import Memory, Query, Turn, TurnState
from memdock.v1 import memory_pb2 as pb
from support.remembering import Remembering, now


class DropsEveryTenth(Remembering):
    """Says of every tenth turn of a space that it can be found, and keeps nothing of it."""

    def __init__(self, model_url: str) -> None:
        super().__init__(model_url)
        self._came: Counter[str] = Counter()

    async def _add(self, space: str, turn: Turn) -> Outcome:
        self._came[space] += 1
        if self._came[space] % 10:
            return await super()._add(space, turn)
        return Outcome(state=TurnState.SEARCHABLE)


class AnswersNothingOnFailure(Remembering):
    """A search whose model fails finds nothing, as many frameworks do."""

    async def retrieve(self, space: str, query: Query) -> Sequence[Memory]:
        try:
            return await super().retrieve(space, query)
        except InternalError:
            return []


class ForgetsOneIndexOnly(Remembering):
    """Keeps a second index by words, without sources, that no erasure of single turns reaches."""

    def __init__(self, model_url: str) -> None:
        super().__init__(model_url)
        self._words: dict[str, dict[str, Memory]] = {}

    def keep(self, space: str, turn: Turn) -> str:
        memory_id = super().keep(space, turn)
        copy = Memory(memory_id=f"w{memory_id}", text=turn.text, time=turn.time, score=0.0)
        self._words.setdefault(space, {})[memory_id] = copy
        return memory_id

    def ranked(self, space: str, query: Query) -> list[Memory]:
        found = super().ranked(space, query)
        there = {memory.memory_id for memory in found}
        asked = set(query.text.lower().split())
        more = [
            copy
            for memory_id, copy in self._words.get(space, {}).items()
            if memory_id not in there and asked & set(copy.text.lower().split()) and not query.session_ids
        ]
        return [*found, *more][: query.top_k]

    async def reset(self, space: str) -> Any:
        self._words.pop(space, None)
        return await super().reset(space)


class LeaksAcrossSpaces(Remembering):
    """Searches every space, the asker's first."""

    def ranked(self, space: str, query: Query) -> list[Memory]:
        names = [space, *(name for name in list(self.spaces) if name != space)]
        found = [memory for name in names for memory in super(LeaksAcrossSpaces, self).ranked(name, query)]
        return [replace(memory, sources=()) for memory in found[: query.top_k]]


class IgnoresFilters(Remembering):
    """Takes a filter and looks at everything."""

    def ranked(self, space: str, query: Query) -> list[Memory]:
        return super().ranked(space, replace(query, session_ids=(), since=None, until=None))


class TimesByNow(Remembering):
    """Takes the moment of storing for the moment of saying."""

    def keep(self, space: str, turn: Turn) -> str:
        return super().keep(space, replace(turn, time=now()))


class _Wrapped:
    """A service around the engine's, of which one call is changed."""

    def __init__(self, service: Service, system: Remembering) -> None:
        self._service = service
        self._system = system

    async def call(self, method: Method, request: Any, call: Call) -> Any:
        return await self._service.call(method, request, call)


class DoneWhilePending(_Wrapped):
    """Flush says done at once."""

    async def call(self, method: Method, request: Any, call: Call) -> Any:
        if isinstance(request, pb.FlushRequest):
            request.timeout.FromMilliseconds(1)
        answer = await super().call(method, request, call)
        if isinstance(answer, pb.FlushResponse):
            answer.done = True
        return answer


class StoresTwiceOnRetry(_Wrapped):
    """A turn that is sent again is a duplicate, and is stored once more."""

    async def call(self, method: Method, request: Any, call: Call) -> Any:
        answer = await super().call(method, request, call)
        if isinstance(answer, pb.AddTurnsResponse):
            for turn, result in zip(request.turns, answer.results, strict=True):
                if result.duplicate:
                    self._system.keep(request.space_id, read_turn(turn))
        return answer


class OneTooMany(_Wrapped):
    """Retrieve gives one memory more than was asked for."""

    async def call(self, method: Method, request: Any, call: Call) -> Any:
        if isinstance(request, pb.RetrieveRequest) and (request.top_k or 10) < 100 and request.HasField("top_k"):
            request.top_k += 1 if request.top_k else 0
        return await super().call(method, request, call)


class TellsTexts(_Wrapped):
    """A refusal of a turn repeats it."""

    async def call(self, method: Method, request: Any, call: Call) -> Any:
        try:
            return await super().call(method, request, call)
        except AlreadyExistsError as error:
            raise AlreadyExistsError(error.reason, f"{request.turns[0].text} is there already") from None
