"""The memories of a system under test: a dialogue into its own space, each question out of it, the space given back."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from memdock.types import Memory
from memdock_evaluator.dataset import Dialogue, Question
from memdock_evaluator.faults import Fault
from memdock_evaluator.results.parts import Parts
from memdock_evaluator.results.records import RETRIEVE, Retrieval
from memdock_evaluator.results.rows import MemorySource, RetrievedMemory, Stage
from memdock_evaluator.run.measuring import Stopwatch
from memdock_evaluator.run.progress import Progress, Work
from memdock_evaluator.run.settings import RunSettings
from memdock_evaluator.run.settling import Key, ask_again, blame_of, known, settle, settled
from memdock_evaluator.run.space import Space


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemRetriever:
    """Stores the dialogue in its space, asks for each question, and gives the space back once all is well."""

    space: Space
    parts: Parts
    settings: RunSettings
    progress: Progress

    async def store(self, dialogue: Dialogue) -> None:
        """Fills the dialogue's space where no earlier attempt has; it is left filled for the questions."""
        try:
            if await self.space.holds(dialogue):
                self.space.tell_stored(dialogue)
            else:
                await self.space.fill(dialogue)
        except Fault as fault:
            self.space.keep_fault(dialogue, fault)

    async def retrieve(self, dialogue: Dialogue, keys: Sequence[Key]) -> Mapping[Key, Retrieval]:
        """What the system retrieves for each question; what earlier attempts retrieved is kept."""
        if self.space.lacks_turns:
            await self._fill_up(dialogue)
        done = known(self.parts, RETRIEVE)
        missing = [key for key in keys if key not in done]
        self.progress.advance(Work.RETRIEVALS, len(keys) - len(missing))
        if missing:
            try:
                done |= await self._store_and_ask(dialogue, missing)
            except Fault as fault:
                done |= self._blame(dialogue, missing, fault)
        else:
            self.space.tell_stored(dialogue)
        if all(settled(record.blame) for record in done.values()) and not self.space.lacks_turns:
            await self.space.close()
        return done

    async def _fill_up(self, dialogue: Dialogue) -> None:
        """Where turns that had failed are stored now, or the dialogue must be stored anew, all is asked again."""
        try:
            if self.settings.as_of or not await self.space.holds(dialogue):
                ask_again(self.parts)
            elif (ingested := await self.space.filled_up(dialogue)) is not None:
                ask_again(self.parts)
                self.space.keep(dialogue, ingested)
        except Fault as fault:
            where = f"dialogue {dialogue.dialogue_id} ({dialogue.language})"
            self.progress.say(
                f"{self.space.system.name}: {where}: its failed turns were not sent again: {fault.detail}"
            )

    async def _store_and_ask(self, dialogue: Dialogue, missing: Sequence[Key]) -> dict[Key, Retrieval]:
        questions = {question.question_id: question for question in dialogue.questions}
        if not self.settings.as_of:
            if await self.space.holds(dialogue):
                self.space.tell_stored(dialogue)
            else:
                await self.space.fill(dialogue)
            return dict(await self._ask(missing, questions))
        ingest = await self.space.emptied()
        found: dict[Key, Retrieval] = {}
        for date, keys in _by_date(missing, questions):
            await ingest.add(self.space.unsaid(dialogue, date, ingest))
            found |= await self._ask(keys, questions)
        self.space.keep(dialogue, await ingest.finish())
        return found

    async def _ask(self, keys: Sequence[Key], questions: Mapping[str, Question]) -> Mapping[Key, Retrieval]:
        async def ask(key: Key) -> Retrieval:
            retrieval = await self._retrieve(questions[key[0]], key[1])
            self.progress.advance(Work.RETRIEVALS)
            return retrieval

        found = await settle(self.parts, RETRIEVE, keys, ask, limit=self.settings.parallel_questions)
        return {key: found[key] for key in keys}

    async def _retrieve(self, question: Question, repeat: int) -> Retrieval:
        reference_time = question.date if self.settings.reference_time else None
        try:
            retrieved = await self.space.system.retrieve(
                self.space.space_id, question.text, k=self.settings.k, reference_time=reference_time
            )
        except Fault as fault:
            return Retrieval(question_id=question.question_id, repeat=repeat, blame=blame_of(fault))
        watch = Stopwatch(unit=self.parts.unit, question_id=question.question_id, repeat=repeat)
        return Retrieval(
            question_id=question.question_id,
            repeat=repeat,
            memories=tuple(
                _kept(rank, memory) for rank, memory in enumerate(retrieved.result.memories[: self.settings.k], start=1)
            ),
            stale=retrieved.result.pending > 0,
            timings=watch.timings(Stage.RETRIEVE, retrieved.ms, retrieved.result.timing),
        )

    def _blame(self, dialogue: Dialogue, missing: Sequence[Key], fault: Fault) -> dict[Key, Retrieval]:
        """No question of the dialogue can be asked: each has the fault of the ingest."""
        self.space.keep_fault(dialogue, fault)
        done = known(self.parts, RETRIEVE)
        blamed = [
            Retrieval(question_id=question_id, repeat=repeat, blame=blame_of(fault))
            for question_id, repeat in missing
            if (question_id, repeat) not in done
        ]
        self.parts.write(RETRIEVE, blamed)
        self.progress.advance(Work.RETRIEVALS, len(blamed))
        return done | {record.key: record for record in blamed}


def _by_date(keys: Sequence[Key], questions: Mapping[str, Question]) -> Iterator[tuple[datetime | None, list[Key]]]:
    """Keys by their question's date, earliest first, those without one last."""
    of_date: dict[datetime | None, list[Key]] = {}
    for key in keys:
        of_date.setdefault(questions[key[0]].date, []).append(key)
    yield from sorted((date, found) for date, found in of_date.items() if date is not None)
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
