"""The memories of a system under test: a dialogue into its own space, each question out of it, the space given back."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from memdock.types import Memory, ModelUsage, Turn, TurnState
from memdock_evaluator.dataset import Dialogue, Question
from memdock_evaluator.faults import Fault
from memdock_evaluator.results.manifest import IngestCounts
from memdock_evaluator.results.names import safe_name
from memdock_evaluator.results.parts import Parts
from memdock_evaluator.results.records import CLOSE, INGEST, RETRIEVE, Closed, Ingested, Retrieval
from memdock_evaluator.results.rows import MemorySource, RetrievedMemory, Stage
from memdock_evaluator.run.ingest import Ingest
from memdock_evaluator.run.measuring import Stopwatch
from memdock_evaluator.run.memory_system import MemorySystem
from memdock_evaluator.run.progress import Progress, Work
from memdock_evaluator.run.requests import groups, said_by
from memdock_evaluator.run.settings import RunSettings
from memdock_evaluator.run.settling import Key, blame_of, known, settle, settled


def space_id(run_id: str, dialogue_id: str, language: str) -> str:
    """`eval-<run>-<dialogue>-<language>`: a run's own for each dialogue and language; nothing else is ever reset."""
    return f"eval-{run_id}-{safe_name(dialogue_id)}-{safe_name(language)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemRetriever:
    """Stores the dialogue in a space of its own, asks for each question, and gives the space back."""

    system: MemorySystem
    parts: Parts
    space_id: str
    settings: RunSettings
    progress: Progress

    async def retrieve(self, dialogue: Dialogue, keys: Sequence[Key]) -> Mapping[Key, Retrieval]:
        """What the system retrieves for each question; what earlier attempts retrieved is kept."""
        done = known(self.parts, RETRIEVE)
        missing = [key for key in keys if key not in done]
        self.progress.advance(Work.RETRIEVALS, len(keys) - len(missing))
        if missing:
            try:
                found = await self._store_and_ask(dialogue, missing)
            except Fault as fault:
                found = self._blame(dialogue, missing, fault)
            done |= found
        else:
            self._advance_turns(sum(1 for _ in dialogue.turns))
        if all(settled(record.blame) for record in done.values()):
            await self._close()
        return done

    async def _store_and_ask(self, dialogue: Dialogue, missing: Sequence[Key]) -> dict[Key, Retrieval]:
        questions = {question.question_id: question for question in dialogue.questions}
        if not self.settings.as_of:
            if not await self._holds(dialogue):
                await self._fill(dialogue)
            return dict(await self._ask(missing, questions))
        ingest = await self._emptied()
        found: dict[Key, Retrieval] = {}
        for date, keys in _by_date(missing, questions):
            await ingest.add(self._unsaid(dialogue, date, ingest))
            found |= await self._ask(keys, questions)
        self._note(dialogue, await ingest.finish())
        return found

    async def _holds(self, dialogue: Dialogue) -> bool:
        """Whether an earlier attempt filled the space and the system still lists every turn."""
        ingested = self.parts.newest(INGEST)
        if not ingested or ingested[-1].blame is not None or self._closed():
            return False
        failed = {turn.turn_id for turn in ingested[-1].failed_turns}
        turns = await self.system.list_turns(self.space_id)
        held = {turn.turn_id for turn in turns if turn.state in (TurnState.SEARCHABLE, TurnState.NO_MEMORY)}
        wanted = {turn.turn_id for turn in dialogue.turns} - failed
        if wanted <= held:
            self._advance_turns(len(wanted | failed))
        return wanted <= held

    def _advance_turns(self, count: int) -> None:
        for work in (Work.ACCEPTED, Work.PROCESSED):
            self.progress.advance(work, count)

    async def _fill(self, dialogue: Dialogue) -> None:
        ingest = await self._emptied()
        await ingest.add(groups(dialogue, self.settings.ingest_unit))
        self._note(dialogue, await ingest.finish())

    def _note(self, dialogue: Dialogue, ingested: Ingested) -> None:
        """Keeps what became of the turns, and says where a question may miss some of them."""
        self.parts.write(INGEST, [ingested])
        counts = ingested.counts
        where = f"{self.system.name}: dialogue {dialogue.dialogue_id} ({dialogue.language})"
        if ingested.failed_turns:
            first = ingested.failed_turns[0]
            why = f"the first with {first.reason}: {first.message}"
            self.progress.say(f"{where}: {counts.failed} of {counts.turns_read} turns failed, {why}")
        if counts.turns_listed != counts.turns_read:
            self.progress.say(f"{where}: {counts.turns_read} turns were sent, the system lists {counts.turns_listed}")

    async def _emptied(self) -> Ingest:
        await self.system.reset(self.space_id)
        return Ingest(
            system=self.system,
            unit=self.parts.unit,
            space_id=self.space_id,
            flush_timeout_s=self.settings.flush_timeout_s,
            progress=self.progress,
        )

    def _unsaid(self, dialogue: Dialogue, date: datetime | None, ingest: Ingest) -> Iterator[list[Turn]]:
        said, sent = said_by(date), ingest.turn_ids
        return groups(dialogue, self.settings.ingest_unit, lambda turn: turn.turn_id not in sent and said(turn))

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
            retrieved = await self.system.retrieve(
                self.space_id, question.text, k=self.settings.k, reference_time=reference_time
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
        blame = blame_of(fault)
        where = f"dialogue {dialogue.dialogue_id} ({dialogue.language})"
        self.progress.say(f"{self.system.name}: {where} could not be stored: {fault.detail} ({fault.reason})")
        counts = IngestCounts(turns_read=sum(1 for _ in dialogue.turns))
        self.parts.write(INGEST, [Ingested(space_id=self.space_id, counts=counts, blame=blame)])
        done = known(self.parts, RETRIEVE)
        blamed = [
            Retrieval(question_id=question_id, repeat=repeat, blame=blame)
            for question_id, repeat in missing
            if (question_id, repeat) not in done
        ]
        self.parts.write(RETRIEVE, blamed)
        self.progress.advance(Work.RETRIEVALS, len(blamed))
        return done | {record.key: record for record in blamed}

    def _closed(self) -> bool:
        closed = self.parts.newest(CLOSE)
        return bool(closed) and closed[-1].blame is None and (closed[-1].reset or self.settings.keep)

    async def _close(self) -> None:
        """Notes what the space has cost and resets it; a failure is kept as such, and the next run tries again."""
        if self._closed():
            return
        try:
            usage = await self._spent()
            residue = () if self.settings.keep else (await self.system.reset(self.space_id)).residual
            closed = Closed(usage=usage, reset=not self.settings.keep, residue=residue)
        except Fault as fault:
            closed = Closed(reset=False, blame=blame_of(fault))
            self.progress.say(f"{self.system.name}: space {self.space_id} was not reset: {fault.detail}")
        self.parts.write(CLOSE, [closed])

    async def _spent(self) -> tuple[ModelUsage, ...]:
        """What the space has cost; a system that cannot say so is told on, and its space is given back all the same."""
        try:
            return (await self.system.flush(self.space_id, timeout_s=0)).result.space_usage
        except Fault as fault:
            self.progress.say(f"{self.system.name}: space {self.space_id} does not tell its usage: {fault.detail}")
            return ()


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
