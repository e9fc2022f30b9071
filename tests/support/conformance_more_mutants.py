"""More faults, one or two for each check: small changes of the system, or of what goes in and out of the engine."""

import asyncio
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from memdock.errors import AlreadyExistsError, InternalError, InvalidArgumentError, NotFoundError
from memdock.service import Call, Method, Service
from memdock.system import Batch, Outcome
from memdock.types import Erasure, Feature, Memory, Query, Selection, Turn, TurnState
from memdock.v1 import memory_pb2 as pb
from support.conformance import Wrap
from support.remembering import Remembering

Answering = Callable[["Changed", Any, Call], Any]


class Changed:
    """A service of which the calls of one kind are answered by `answer`; `inner` is the sound one."""

    def __init__(self, inner: Service, system: Remembering, kind: type, answer: Answering) -> None:
        self.inner = inner
        self.system = system
        self.seen: set[tuple[str, str]] = set()
        self._kind = kind
        self._answer = answer

    async def call(self, method: Method, request: Any, call: Call) -> Any:
        self.method = method
        if isinstance(request, self._kind):
            return await self._answer(self, request, call)
        return await self.inner.call(method, request, call)

    async def sound(self, request: Any, call: Call) -> Any:
        """What the engine answers."""
        return await self.inner.call(self.method, request, call)


def changed(kind: type, answer: Answering) -> Wrap:
    """A wrapper for `target_of`."""
    return lambda service, system: Changed(service, system, kind, answer)


def after(kind: type, change: Callable[[Any], object]) -> Wrap:
    """Changes the answers of a kind of call."""

    async def answer(mutant: Changed, request: Any, call: Call) -> Any:
        sound = await mutant.inner.call(mutant.method, request, call)
        change(sound)
        return sound

    return changed(kind, answer)


def before(kind: type, change: Callable[[Any], object]) -> Wrap:
    """Changes the requests of a kind of call."""

    async def answer(mutant: Changed, request: Any, call: Call) -> Any:
        change(request)
        return await mutant.inner.call(mutant.method, request, call)

    return changed(kind, answer)


def _set(**values: Any) -> Callable[[Any], object]:
    def change(message: Any) -> None:
        for name, value in values.items():
            setattr(message, name, value)

    return change


def _clear(*names: str) -> Callable[[Any], object]:
    def change(message: Any) -> None:
        for name in names:
            message.ClearField(name)

    return change


def _reverse(name: str) -> Callable[[Any], object]:
    def change(message: Any) -> None:
        items = list(getattr(message, name))
        message.ClearField(name)
        getattr(message, name).extend(reversed(items))

    return change


async def _turn_by_turn(mutant: Changed, request: Any, call: Call) -> Any:
    results = []
    for turn in request.turns:
        one = pb.AddTurnsRequest(space_id=request.space_id, turns=[turn])
        results += (await mutant.sound(one, call)).results
        await asyncio.sleep(0.001)
    return pb.AddTurnsResponse(results=results)


async def _asks_about_duplicates(mutant: Changed, request: Any, call: Call) -> Any:
    answer = await mutant.sound(request, call)
    for turn, result in zip(request.turns, answer.results, strict=True):
        if result.duplicate:
            await mutant.system.ask("extraction", turn.text)
    return answer


async def _gives_up_on_failed(mutant: Changed, request: Any, call: Call) -> Any:
    answer = await mutant.sound(request, call)
    for result in answer.results:
        if result.duplicate and result.state == pb.TURN_STATE_PENDING:
            result.state = pb.TURN_STATE_FAILED
            result.error.CopyFrom(pb.TurnError(reason="INTERNAL", message="given up"))
    return answer


async def _unknown_space(mutant: Changed, request: Any, call: Call) -> Any:
    if request.space_id not in mutant.system.spaces:
        raise NotFoundError("PATH_NOT_FOUND", "there is no such space")
    return await mutant.sound(request, call)


def _empty(response: type) -> Answering:
    async def answer(mutant: Changed, request: Any, call: Call) -> Any:
        return response()

    return answer


async def _wrong_class(mutant: Changed, request: Any, call: Call) -> Any:
    try:
        return await mutant.sound(request, call)
    except AlreadyExistsError as error:
        raise InvalidArgumentError(error.reason, error.message, fields=error.fields) from None


_PLACES = 64


class FlushesTakePlaces:
    """At most so many calls at once, Flushes among them."""

    def __init__(self, inner: Service, system: Remembering) -> None:
        self._inner = inner
        self._places = asyncio.Semaphore(_PLACES)

    async def call(self, method: Method, request: Any, call: Call) -> Any:
        async with self._places:
            return await self._inner.call(method, request, call)


class Buffers(Remembering):
    """Waits for a second turn."""

    async def add(self, space: str, turns: Sequence[Turn], *, final: bool) -> Batch:
        return await super().add(space, turns if final or len(turns) > 1 else (), final=final)


class SilentSuccess(Remembering):
    """Says of what it found nothing in that it can be found."""

    async def _add(self, space: str, turn: Turn) -> Outcome:
        outcome = await super()._add(space, turn)
        return Outcome(state=TurnState.SEARCHABLE) if outcome.state is TurnState.NO_MEMORY else outcome


class KeepsOtherwise(Remembering):
    """Changes turns before it keeps them."""

    def changed(self, turn: Turn) -> Turn:
        raise NotImplementedError

    def keep(self, space: str, turn: Turn) -> str:
        return super().keep(space, self.changed(turn))


class KnowsNoZones(KeepsOtherwise):
    def changed(self, turn: Turn) -> Turn:
        return replace(turn, time_zone="")


class Normalises(KeepsOtherwise):
    def changed(self, turn: Turn) -> Turn:
        return replace(turn, text=unicodedata.normalize("NFC", turn.text))


class BelievesMetadata(Remembering):
    """Keeps a turn where its metadata say that it belongs."""

    def keep(self, space: str, turn: Turn) -> str:
        return super().keep(turn.metadata.get("space_id", space), turn)

    def ranked(self, space: str, query: Query) -> list[Memory]:
        return [replace(memory, sources=()) for memory in super().ranked(space, query)]

    async def list_memories(self, space: str, *, after: str, limit: int) -> Sequence[Memory]:
        listed = await super().list_memories(space, after=after, limit=limit)
        return [replace(memory, sources=()) for memory in listed]


class FailsOnOldTimes(Remembering):
    """Cannot store what was said before 1900."""

    async def add(self, space: str, turns: Sequence[Turn], *, final: bool) -> Batch:
        if any(turn.time is not None and turn.time.year < 1900 for turn in turns):
            raise ValueError("year is out of range")
        return await super().add(space, turns, final=final)


class FiltersByReference(Remembering):
    """Takes the question's "now" for a filter."""

    def ranked(self, space: str, query: Query) -> list[Memory]:
        found = super().ranked(space, query)
        return [one for one in found if query.reference_time is None or (one.score or 0) % 1]


class ChokesOnOperators(Remembering):
    """Takes a query for a language of its own."""

    async def retrieve(self, space: str, query: Query) -> Sequence[Memory]:
        if "%" in query.text or '"' in query.text:
            raise ValueError("syntax error in the query")
        return await super().retrieve(space, query)


class ForgetsEverywhere(Remembering):
    """Deletes a memory by its id whatever the space."""

    async def forget(self, space: str, selection: Selection, *, dry_run: bool) -> Erasure:
        if selection.memory_ids:
            for name in [name for name in self.spaces if name != space]:
                await super().forget(name, selection, dry_run=dry_run)
        return await super().forget(space, selection, dry_run=dry_run)


class TellsItsModelsWords(Remembering):
    """Passes on what its model says of a failure."""

    async def ask(self, purpose: str, text: str) -> str:
        body = {"model": "small", "messages": [{"role": "user", "content": text}]}
        async with self._session.post(self._url, json=body) as answer:
            if answer.status != 200:
                raise InternalError("PROVIDER_PROTOCOL_ERROR", await answer.text())
        return await super().ask(purpose, text)


class CountsNoSearch(Remembering):
    """Tells the cost of writing alone."""

    async def retrieve(self, space: str, query: Query) -> Sequence[Memory]:
        return self.ranked(space, query) if await self._quietly(query.text) else ()

    async def _quietly(self, text: str) -> bool:
        body = {"model": "small", "messages": [{"role": "user", "content": text}]}
        async with self._session.post(self._url, json=body) as answer:
            return answer.status == 200


def without_filters(model_url: str) -> Remembering:
    """Declares no filter by session."""
    return Remembering(model_url, tuple(feature for feature in Feature if feature is not Feature.FILTER_SESSIONS))


def _ghost(answer: Any) -> None:
    for memory in answer.memories:
        for source in memory.sources:
            source.turn_id = "ghost"


def _one_more(answer: Any) -> None:
    answer.limits.max_top_k += 1


MORE_FAULTS: dict[str, tuple[dict[str, Any], Sequence[str]]] = {
    "counts no failures": (
        {"wrap": after(pb.FlushRequest, _clear("failed", "failed_count"))},
        ["T3", "T9.models", "I4"],
    ),
    "succeeds in silence": ({"make_system": SilentSuccess}, ["T4"]),
    "hides what is pending": ({"wrap": after(pb.RetrieveRequest, _set(pending=0))}, ["T9.models"]),
    "hides what waits in a buffer": (
        {"make_system": Buffers, "wrap": after(pb.RetrieveRequest, _set(pending=0))},
        ["T6"],
    ),
    "is pending for ever": ({"wrap": after(pb.RetrieveRequest, _set(pending=1))}, ["T9", "R1"]),
    "takes turns one by one": ({"wrap": changed(pb.AddTurnsRequest, _turn_by_turn)}, ["T7", "I3"]),
    "lets Flushes take places": ({"wrap": FlushesTakePlaces}, ["T10.models"]),
    "lets Flushes take places, and is slow": ({"wrap": FlushesTakePlaces, "model_delay_s": 0.4}, ["T10"]),
    "asks about duplicates": ({"wrap": changed(pb.AddTurnsRequest, _asks_about_duplicates)}, ["I1.models"]),
    "gives up on failed turns": ({"wrap": changed(pb.AddTurnsRequest, _gives_up_on_failed)}, ["I4"]),
    "knows no request ids": ({"wrap": before(pb.ForgetRequest, _clear("request_id"))}, ["I7"]),
    "knows no request ids of Reset": ({"wrap": before(pb.ResetRequest, _clear("request_id"))}, ["X4"]),
    "lists the newest first": ({"wrap": after(pb.ListTurnsRequest, _reverse("turns"))}, ["O2", "R6"]),
    "knows no zones": ({"make_system": KnowsNoZones}, ["E4"]),
    "filters by reference_time": ({"make_system": FiltersByReference}, ["E6"]),
    "fails on old times": ({"make_system": FailsOnOldTimes}, ["E7"]),
    "knows no unknown space": ({"wrap": changed(pb.RetrieveRequest, _unknown_space)}, ["R1"]),
    "ranks the wrong way round": ({"wrap": after(pb.RetrieveRequest, _reverse("memories"))}, ["R4"]),
    "invents sources": ({"wrap": after(pb.RetrieveRequest, _ghost)}, ["R5", "T1"]),
    "normalises texts": ({"make_system": Normalises}, ["R7"]),
    "chokes on operators": ({"make_system": ChokesOnOperators}, ["R8"]),
    "takes a dry run for a real one": ({"wrap": before(pb.ForgetRequest, _set(dry_run=False))}, ["F5"]),
    "tells no missing ids": ({"wrap": after(pb.ForgetRequest, _clear("not_found"))}, ["F6", "S3"]),
    "forgets nothing": (
        {"wrap": changed(pb.ForgetRequest, _empty(pb.ForgetResponse))},
        ["F1", "F2", "F3", "F7", "F8", "I6", "I7"],
    ),
    "tells no residue": ({"wrap": after(pb.ResetRequest, _clear("residual"))}, ["F8"]),
    "resets nothing": (
        {"wrap": changed(pb.ResetRequest, _empty(pb.ResetResponse))},
        ["X1", "X2", "X3", "X4"],
    ),
    "forgets in every space": ({"make_system": ForgetsEverywhere}, ["S3"]),
    "believes metadata": ({"make_system": BelievesMetadata}, ["S4"]),
    "gives a reason the wrong code": ({"wrap": changed(pb.AddTurnsRequest, _wrong_class)}, ["P1", "I3"]),
    "tells its model's words": ({"make_system": TellsItsModelsWords}, ["P2.models"]),
    "tells a wrong limit": ({"wrap": after(pb.DescribeRequest, _one_more)}, ["P4"]),
    "counts no search": ({"make_system": CountsNoSearch}, ["P7"]),
    "passes over a filter that it does not declare": (
        {"make_system": without_filters, "wrap": before(pb.RetrieveRequest, _clear("filter"))},
        ["R3.sessions"],
    ),
}
