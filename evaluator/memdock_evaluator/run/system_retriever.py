"""The memories of a system under test: a dialogue into its own space, each question out of it, the space given back."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from memdock.types import Memory
from memdock_evaluator.dataset import Dialogue, Question
from memdock_evaluator.faults import Fault
from memdock_evaluator.results.records import RETRIEVE, Retrieval
from memdock_evaluator.results.rows import MemorySource, RetrievedMemory, Stage
from memdock_evaluator.run.contestants import Contestant
from memdock_evaluator.run.measuring import Stopwatch
from memdock_evaluator.run.progress import Progress, Work
from memdock_evaluator.run.retriever import Retrievals, latest
from memdock_evaluator.run.settings import RunSettings
from memdock_evaluator.run.settling import Key, ask_again, blame_of, known, settle, settled, unsettle
from memdock_evaluator.run.space import Space

_Missing = Mapping[str, Sequence[Key]]
"""Contestant -> the questions that have no memories yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemRetriever:
    """Stores the dialogue once in its space, asks for each question at each k, and gives the space back once all is
    well.

    Every k is a call of its own: a system's first five need not be the first of its ten.
    """

    space: Space
    contestants: Sequence[Contestant]
    settings: RunSettings
    progress: Progress

    async def store(self, dialogue: Dialogue) -> None:
        """Fills the dialogue's space where no earlier attempt has; it is left filled for the questions."""
        if not self.space.is_filled:
            self._ask_again()
        try:
            if await self.space.holds(dialogue):
                self.space.tell_stored(dialogue)
            else:
                await self.space.fill(dialogue)
        except Fault as fault:
            self.space.keep_fault(dialogue, fault)

    async def retrieve(self, dialogue: Dialogue, keys: Sequence[Key]) -> Retrievals:
        """What the system retrieves for each question; what earlier attempts retrieved is kept.

        But where what became of the turns is not known: nobody could say what those questions were asked of.
        """
        if not self.space.is_filled:
            self._ask_again()
        elif self.space.lacks_turns:
            await self._fill_up(dialogue)
        missing = self._missing(keys)
        self.progress.advance(Work.RETRIEVALS, len(keys) * len(self.contestants) - sum(map(len, missing.values())))
        if any(missing.values()):
            try:
                await self._store_and_ask(dialogue, keys, missing)
            except Fault as fault:
                self._blame(dialogue, missing, fault)
        else:
            self.space.tell_stored(dialogue)
        found = {each.name: latest(each.parts, keys) for each in self.contestants}
        whole = all(settled(record.blame) for records in found.values() for record in records.values())
        if whole and not self.space.lacks_turns:
            await self.space.close()
        return found

    def _missing(self, keys: Sequence[Key]) -> _Missing:
        settled_keys = {each.name: known(each.parts, RETRIEVE).keys() for each in self.contestants}
        return {name: [key for key in keys if key not in done] for name, done in settled_keys.items()}

    async def _fill_up(self, dialogue: Dialogue) -> None:
        """Where turns that had failed are stored now, or the dialogue must be stored anew, all is asked again."""
        try:
            if self.settings.as_of or not await self.space.holds(dialogue):
                self._ask_again()
            elif (ingested := await self.space.filled_up(dialogue)) is not None:
                self._ask_again()
                await self.space.keep(dialogue, ingested)
        except Fault as fault:
            where = f"dialogue {dialogue.dialogue_id} ({dialogue.language})"
            self.progress.say(
                f"{self.space.system.name}: {where}: its failed turns were not sent again: {fault.detail}"
            )

    def _ask_again(self) -> None:
        for each in self.contestants:
            ask_again(each.parts)

    async def _store_and_ask(self, dialogue: Dialogue, keys: Sequence[Key], missing: _Missing) -> None:
        questions = {question.question_id: question for question in dialogue.questions}
        if not self.settings.as_of:
            if await self.space.holds(dialogue):
                self.space.tell_stored(dialogue)
            else:
                await self.space.fill(dialogue)
            await self._ask(missing, questions)
            return
        ingest = await self.space.emptied()
        for date, dated in _by_date(keys, questions):  # of all questions, so that all turns are stored once more
            await ingest.add(self.space.unsaid(dialogue, date, ingest))
            await self._ask({name: [key for key in each if key in dated] for name, each in missing.items()}, questions)
        await self.space.keep(dialogue, await ingest.finish())

    async def _ask(self, missing: _Missing, questions: Mapping[str, Question]) -> None:
        for each in self.contestants:
            await self._ask_at(each, missing.get(each.name, ()), questions)

    async def _ask_at(self, contestant: Contestant, keys: Sequence[Key], questions: Mapping[str, Question]) -> None:
        async def ask(key: Key) -> Retrieval:
            retrieval = await self._retrieve(contestant, questions[key[0]], key[1])
            self.progress.advance(Work.RETRIEVALS)
            return retrieval

        await settle(contestant.parts, RETRIEVE, keys, ask, limit=self.settings.parallel_questions)

    async def _retrieve(self, contestant: Contestant, question: Question, repeat: int) -> Retrieval:
        reference_time = question.date if self.settings.reference_time else None
        k = contestant.facts.k
        try:
            retrieved = await self.space.system.retrieve(
                self.space.space_id, question.text, k=k, reference_time=reference_time
            )
        except Fault as fault:
            return Retrieval(question_id=question.question_id, repeat=repeat, blame=blame_of(fault))
        watch = Stopwatch(unit=contestant.parts.unit, question_id=question.question_id, repeat=repeat)
        return Retrieval(
            question_id=question.question_id,
            repeat=repeat,
            memories=tuple(_kept(rank, memory) for rank, memory in enumerate(retrieved.result.memories[:k], start=1)),
            stale=retrieved.result.pending > 0,
            timings=watch.timings(Stage.RETRIEVE, retrieved.ms, retrieved.result.timing),
        )

    def _blame(self, dialogue: Dialogue, missing: _Missing, fault: Fault) -> None:
        """No more questions can be asked: they have the fault, also those asked of what is not stored now."""
        if filled := self.space.is_filled:
            where = f"dialogue {dialogue.dialogue_id} ({dialogue.language})"
            self.progress.say(
                f"{self.space.system.name}: {where} could not be asked about: {fault.detail} ({fault.reason})"
            )
        else:
            self.space.keep_fault(dialogue, fault)
        for each in self.contestants:
            done = known(each.parts, RETRIEVE)
            if not filled:
                unsettle(each.parts, RETRIEVE, blame_of(fault))
            blamed = [
                Retrieval(question_id=question_id, repeat=repeat, blame=blame_of(fault))
                for question_id, repeat in missing[each.name]
                if (question_id, repeat) not in done
            ]
            each.parts.write(RETRIEVE, blamed)
            self.progress.advance(Work.RETRIEVALS, len(blamed))


def _by_date(
    keys: Sequence[Key], questions: Mapping[str, Question]
) -> Iterator[tuple[datetime | None, Collection[Key]]]:
    """Keys by their question's date, earliest first, those without one last."""
    of_date: dict[datetime | None, set[Key]] = {}
    for key in keys:
        of_date.setdefault(questions[key[0]].date, set()).add(key)
    yield from sorted(((date, found) for date, found in of_date.items() if date is not None), key=lambda each: each[0])
    if None in of_date:
        yield None, of_date[None]


def _kept(rank: int, memory: Memory) -> RetrievedMemory:
    return RetrievedMemory(
        rank=rank,
        kind=memory.kind,
        text=memory.text,
        score=None if memory.score is None else round(memory.score, 6),
        time=None if memory.time is None else memory.time.isoformat(),
        sources=tuple(MemorySource(session_id=source.session_id, turn_id=source.turn_id) for source in memory.sources),
    )
