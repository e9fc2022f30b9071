"""What a check works with: spaces of its own, words that stand nowhere else, turns, and both ways to ask."""

import random
import re
import time
from collections.abc import Awaitable, Sequence
from datetime import UTC, datetime
from typing import Any

from memdock.client import AsyncClient
from memdock.conformance.case import Case, CheckFailedError, UnprovenError, expect
from memdock.conformance.faces import Face, HttpFace, Told
from memdock.conformance.mirror import Mirrored
from memdock.conformance.models import Models
from memdock.conformance.target import Settings, Target
from memdock.errors import MemdockError
from memdock.service import METHODS, Call
from memdock.types import (
    Added,
    Description,
    Feature,
    Flushed,
    Forgotten,
    Memory,
    Retrieved,
    Selection,
    Turn,
    TurnRecord,
    TurnState,
)

SAID_AT = datetime(2024, 5, 1, 9, 30, tzinfo=UTC)
_SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]


class Probe:
    """One run of one case over one face."""

    def __init__(self, case: Case, target: Target, face: Face, settings: Settings) -> None:
        self.case = case
        self.target = target
        self.face = face
        self.settings = settings
        self.rng = random.Random(f"{settings.seed}/{case.id}/{face.name}")  # noqa: S311 - not a secret
        self._words: list[str] = []
        self._spaces: list[Space] = []
        other = next((one for one in target.faces if one is not face), None)
        service = face if other is None else Mirrored(face, other)
        call_s = max(30.0, settings.timeout_s / 3)
        self.client = AsyncClient(service, system=target.system, timeout_s=call_s)
        """Its reads and refusals are compared with those of the other face."""
        self.plain = AsyncClient(face, system=target.system, timeout_s=call_s)
        """The face alone: for reads whose cost or moment matters."""

    @property
    def description(self) -> Description:
        """What the system says of itself."""
        return self.target.description

    @property
    def models(self) -> Models:
        """The scripted model server; a case that uses it needs it."""
        assert self.target.models is not None
        return self.target.models

    @property
    def over_http(self) -> HttpFace | None:
        """The face, where it is the HTTP one."""
        return self.face if isinstance(self.face, HttpFace) else None

    def declares(self, feature: Feature) -> bool:
        """Whether the system has the feature."""
        return self.target.declares(feature)

    def word(self) -> str:
        """A word that stands nowhere else; no error may ever repeat it."""
        word = "".join(self.rng.choice(_SYLLABLES) for _ in range(5)).capitalize()
        self._words.append(word)
        self.target.words.add(word.lower())
        if self.target.models is not None:
            self.target.models.expect(word)
        return word

    def turn(self, turn_id: str, word: str = "", **fields: Any) -> Turn:
        """A user's turn of session `s1`, said in May 2024, that holds the word."""
        word = word or self.word()
        given: dict[str, Any] = {"session_id": "s1", "role": "user", "time": SAID_AT, "text": sentence(word)} | fields
        return Turn(turn_id=turn_id, **given)

    def space(self, name: str = "", client: AsyncClient | None = None) -> "Space":
        """A space of this run alone; it is reset when the case ends. `name`: its end, where that matters."""
        number = len(self._spaces) + 1
        short = self.case.id.replace(".", "-").lower()
        space_id = f"cf-{self.target.run_id}-{short}-{self.face.name}-{name or number}"
        space = Space(self, space_id, client or self.client)
        self._spaces.append(space)
        return space

    async def send(self, method: str, body: bytes, **path: str) -> Told:
        """Raw bytes to a call; over HTTP with these fields in the path, the system always."""
        return await self.face.send(METHODS[method], body, path={"system": self.target.system} | path)

    async def raw_http(self, verb: str, path: str, body: bytes | None = None, **options: Any) -> Told:
        """Anything over HTTP; for the HTTP face alone."""
        assert isinstance(self.face, HttpFace)
        return await self.face.exchange(verb, path, Call(), body, **options)

    async def call(self, method: str, request: Any, *, timeout_s: float = 30.0) -> Any:
        """A message to a call, without a comparison."""
        return await self.face.call(METHODS[method], request, Call(deadline=time.monotonic() + timeout_s))

    async def clean(self) -> None:
        """Resets the spaces and lifts what was set for the words; what cannot be reset stays behind."""
        self.target.words.difference_update(word.lower() for word in self._words)
        if self.target.models is not None:
            self.target.models.forget(self._words)
        for space in self._spaces:
            try:
                await space.plain.reset(space.space_id)
            except (MemdockError, CheckFailedError):
                continue


class Space:
    """A space of a case."""

    def __init__(self, probe: Probe, space_id: str, client: AsyncClient) -> None:
        self.probe = probe
        self.space_id = space_id
        self.client = client
        self.plain = client if client is not probe.client else probe.plain

    async def add(self, *turns: Turn) -> Added:
        """AddTurns."""
        added = await self.client.add_turns(self.space_id, turns)
        expect(
            [result.turn_id for result in added.results] == [turn.turn_id for turn in turns],
            "AddTurns does not answer with one result a turn, in the order of the request",
        )
        return added

    async def settle(self) -> Flushed:
        """Flush until it is done."""
        within_s = self.probe.settings.timeout_s * 0.8
        flushed = await self.client.flush(self.space_id, timeout_s=within_s)
        expect(flushed.done, f"turns stay PENDING: Flush does not say done within {within_s:g} s (longer by --timeout)")
        return flushed

    async def store(self, *turns: Turn) -> None:
        """Adds turns and waits until all of them can be found."""
        await self.add(*turns)
        flushed = await self.settle()
        said = [f"{one.turn_id}: {one.error.reason if one.error else 'no error'}" for one in flushed.failed]
        expect(not flushed.failed_count, f"turns FAILED without a fault of a model: {', '.join(said[:3])}")

    async def retrieve(self, query: str, **options: Any) -> Retrieved:
        """Retrieve."""
        return await self.client.retrieve(self.space_id, query, **options)

    async def found(self, word: str, **options: Any) -> list[Memory]:
        """The memories of Retrieve that hold the word."""
        answer = await self.retrieve(question(word), **options)
        return [memory for memory in answer.memories if word.lower() in memory.text.lower()]

    async def finds(self, word: str) -> None:
        """Fails unless the word can be found."""
        expect(await self.found(word), "a turn that is SEARCHABLE is not found by a word that only it holds")

    async def hides(self, word: str, after: str) -> None:
        """Fails if any call still shows the word."""
        most = self.probe.description.limits.max_top_k
        expect(not await self.found(word, top_k=most), f"Retrieve still finds the text {after}")
        held = [memory for memory in await self.memories() if word.lower() in _words_of(memory).lower()]
        expect(not held, f"ListMemories still shows the text {after}")

    async def memories(self) -> list[Memory]:
        """ListMemories, where it is declared."""
        if not self.probe.declares(Feature.LIST_MEMORIES):
            return []
        return [memory async for memory in self.client.list_memories(self.space_id)]

    async def turns(self) -> list[TurnRecord]:
        """ListTurns."""
        return [record async for record in self.client.list_turns(self.space_id)]

    async def states(self) -> dict[str, TurnState]:
        """State by turn id, in order."""
        return {record.turn_id: record.state for record in await self.turns()}

    async def content(self, *words: str) -> Any:
        """All that the space shows, to be compared."""
        answers = [(await self.retrieve(question(word), top_k=20)).memories for word in words]
        return await self.turns(), await self.memories(), answers

    async def no_text_twice(self, *words: str) -> None:
        """Fails if one text is there as two memories."""
        most = min(100, self.probe.description.limits.max_top_k)
        for word in words:
            texts = [(memory.kind, memory.text) for memory in await self.found(word, top_k=most)]
            expect(len(texts) == len(set(texts)), "the same text is stored twice")
        texts = [(memory.kind, memory.text) for memory in await self.memories()]
        expect(len(texts) == len(set(texts)), "ListMemories shows the same text twice")

    async def selector(self, turn: Turn, *features: Feature) -> Selection:
        """What selects the turn, by the first selector that is declared, of these `features` or of all three."""
        for feature in features or (Feature.FORGET_TURNS, Feature.FORGET_SESSIONS, Feature.FORGET_MEMORIES):
            if not self.probe.declares(feature):
                continue
            if feature is Feature.FORGET_TURNS:
                return Selection(turn_ids=(turn.turn_id,))
            if feature is Feature.FORGET_SESSIONS:
                return Selection(session_ids=(turn.session_id,))
            record = next(one for one in await self.turns() if one.turn_id == turn.turn_id)
            if not record.memory_ids:
                raise UnprovenError("no memory is known to stand on the turn")
            return Selection(memory_ids=record.memory_ids)
        raise UnprovenError("the system declares no selector of Forget that would do")

    async def erase(self, turn: Turn) -> None:
        """Forgets the turn by a selector that is declared."""
        await self.forget(await self.selector(turn))

    async def forget(self, selection: Selection, *, dry_run: bool = False, request_id: str = "") -> Forgotten:
        """Forget."""
        return await self.client.forget(
            self.space_id,
            memory_ids=selection.memory_ids,
            turn_ids=selection.turn_ids,
            session_ids=selection.session_ids,
            dry_run=dry_run,
            request_id=request_id,
        )


def sentence(word: str) -> str:
    """What a user says about the word."""
    return f"My neighbour from the third floor is called {word} and plays the cello"


def word_of(turn: Turn) -> str:
    """The word in a turn that says a `sentence`."""
    return turn.text.split()[8]


def question(word: str) -> str:
    """What is asked about it."""
    return f"what is known about {word} and the neighbour"


async def refused(work: Awaitable[Any], *reasons: str, what: str) -> MemdockError:
    """The error that awaiting raises; fails when there is none, or one of another reason. No reasons: any 400."""
    try:
        await work
    except MemdockError as error:
        fits = error.reason in reasons if reasons else error.code == 3
        expect(fits, f"{what} is refused with {error.reason}, not with {' or '.join(reasons) or 'a 400'}")
        return error
    raise CheckFailedError(f"{what} is taken, not refused")


def told_refusal(told: Told, *reasons: str, what: str) -> MemdockError:
    """The same of a raw exchange."""
    if told.error is None:
        raise CheckFailedError(f"{what} is taken, not refused")
    expect(told.error.reason in reasons, f"{what} is refused with {told.error.reason}, not with {' or '.join(reasons)}")
    return told.error


def names(error: MemdockError, field: str) -> bool:
    """Whether the error names the field, in its list or in its sentence."""
    pattern = re.compile(rf"(?<![\w]){re.escape(field)}(?![\w])")
    return any(pattern.search(text) for text in (error.message, *(item.field for item in error.fields)))


def _words_of(memory: Memory) -> str:
    return " ".join((memory.text, *memory.metadata.values()))


def all_of(states: dict[str, TurnState], expected: Sequence[TurnState]) -> bool:
    """Whether every state is one of those."""
    return all(state in expected for state in states.values())
