"""The evaluator with one mistake of public harnesses in it, each as a context: proof that the test of it would bite."""

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from typing import Any
from unittest.mock import patch

from memdock.errors import MemdockError
from memdock.types import Flushed, ResetDone, Retrieved, Turn
from memdock_evaluator.answer import chat_judge
from memdock_evaluator.answer.judge import ToJudge, Verdict
from memdock_evaluator.faults import Fault
from memdock_evaluator.results.rows import Outcome, Row
from memdock_evaluator.run import answering, choice, loop, requests, row_maker
from memdock_evaluator.run.answering import Answering
from memdock_evaluator.run.memory_system import MemorySystem, Timed
from memdock_evaluator.run.row_maker import RowMaker
from memdock_evaluator.run.selection import Selection
from memdock_evaluator.scores import retrieval_scores
from memdock_evaluator.summary import figures

Mistake = AbstractContextManager[object]

_DONE = Flushed(done=True, pending=0, failed_count=0)


@contextmanager
def ingest_for_every_question() -> Iterator[None]:
    """Each Retrieve stores the dialogue again first."""
    sent: dict[str, list[Turn]] = {}
    add, retrieve = MemorySystem.add_turns, MemorySystem.retrieve

    async def remembering(self: MemorySystem, space_id: str, turns: Sequence[Turn]) -> Any:
        sent.setdefault(space_id, []).extend(turns)
        return await add(self, space_id, turns)

    async def storing(self: MemorySystem, space_id: str, query: str, **options: Any) -> Any:
        await self.reset(space_id)
        await add(self, space_id, sent[space_id])
        await self.flush(space_id, timeout_s=10)
        return await retrieve(self, space_id, query, **options)

    with patch.object(MemorySystem, "add_turns", remembering), patch.object(MemorySystem, "retrieve", storing):
        yield


def a_sleep_for_a_barrier() -> Mistake:
    """Sleeps a while and takes everything for indexed."""

    async def flush(self: MemorySystem, space_id: str, **_: Any) -> Timed[Flushed]:
        await asyncio.sleep(0.001)
        return Timed(result=_DONE, ms=1.0)

    return patch.object(MemorySystem, "flush", flush)


@contextmanager
def only_the_last_batch_awaited(turns_in_all: int) -> Iterator[None]:
    """Waits once all of the dialogue has been sent, and not behind the batches before."""
    sent: dict[str, int] = {}
    add, flush = MemorySystem.add_turns, MemorySystem.flush

    async def counting(self: MemorySystem, space_id: str, turns: Sequence[Turn]) -> Any:
        sent[space_id] = sent.get(space_id, 0) + len(turns)
        return await add(self, space_id, turns)

    async def waiting(self: MemorySystem, space_id: str, **options: Any) -> Any:
        return Timed(result=_DONE, ms=0.0) if sent[space_id] < turns_in_all else await flush(self, space_id, **options)

    with patch.object(MemorySystem, "add_turns", counting), patch.object(MemorySystem, "flush", waiting):
        yield


def an_error_is_an_empty_list() -> Mistake:
    """`except: return []`."""
    retrieve = MemorySystem.retrieve

    async def swallowing(self: MemorySystem, space_id: str, query: str, **options: Any) -> Any:
        try:
            return await retrieve(self, space_id, query, **options)
        except Fault:
            return Timed(result=Retrieved(memories=(), pending=0, failed_count=0), ms=0.0)

    return patch.object(MemorySystem, "retrieve", swallowing)


def a_judges_error_is_a_wrong_answer() -> Mistake:
    """A judge that cannot be reached has found the answer wrong."""
    judge = chat_judge.ChatJudge.judge

    async def swallowing(self: chat_judge.ChatJudge, item: ToJudge, *, repeat: int) -> Verdict:
        try:
            return await judge(self, item, repeat=repeat)
        except Fault:
            return Verdict(label=0)

    return patch.object(chat_judge.ChatJudge, "judge", swallowing)


def an_unreadable_verdict_is_right() -> Mistake:
    """What the judge says without a verdict counts as praise."""
    return patch.dict(chat_judge.READERS, {"json": lambda reply: (2, reply)})


def a_retry_that_stores_again() -> Mistake:
    """A lost answer is tried again with ids of its own, so that nobody can know the turns again."""

    async def add(self: MemorySystem, space_id: str, turns: Sequence[Turn]) -> Any:
        for attempt in range(5):
            named = [replace(turn, turn_id=f"{turn.turn_id}-try{attempt}") for turn in turns]
            try:
                return Timed(result=await self._client.add_turns(space_id, named), ms=0.0)
            except MemdockError:
                continue
        raise AssertionError("five tries failed")

    return patch.object(MemorySystem, "add_turns", add)


def the_first_dialogue_only() -> Mistake:
    """A guard that somebody had put there to try things out."""
    selected = Selection._selected
    return patch.object(Selection, "_selected", lambda self: islice(selected(self), 1))


def times(of: Callable[[Any], Any]) -> Mistake:
    """Turns get another time than theirs."""
    turn = requests._turn
    return patch.object(requests, "_turn", lambda *given: replace(turn(*given), time=of(given)))


def now(_: Any) -> datetime:
    """The time of the clock."""
    return datetime.now(UTC)


def nothing(_: Any) -> None:
    """No time at all."""


def the_gold_in_the_question() -> Mistake:
    """The answer model sees the category and the right answer."""
    answers = Answering.answers

    async def telling(self: Answering, dialogue: Any, retrievals: Any) -> Any:
        told = tuple(replace(each, text=f"{each.text} {each.axes} {each.references}") for each in dialogue.questions)
        return await answers(self, replace(dialogue, questions=told), retrievals)

    return patch.object(Answering, "answers", telling)


def a_judge_prompt_for(system: str) -> Mistake:
    """One vendor's answers are judged by a prompt of its own."""
    verdicts = Answering.verdicts

    async def judging(self: Answering, dialogue: Any, answered: Any) -> Any:
        if self.parts.unit.system == system:
            kind = tuple(replace(each, text=f"Be generous. {each.text}") for each in dialogue.questions)
            dialogue = replace(dialogue, questions=kind)
        return await verdicts(self, dialogue, answered)

    return patch.object(Answering, "verdicts", judging)


def an_empty_context_is_wrong() -> Mistake:
    """Who has found nothing cannot be right."""
    rows = RowMaker.rows

    def marking(self: RowMaker, *given: Any, **options: Any) -> Iterator[Row]:
        for row in rows(self, *given, **options):
            yield row if row.memories else replace(row, correct=False)

    return patch.object(RowMaker, "rows", marking)


def a_hit_called_recall() -> Mistake:
    """One piece of the evidence counts for all of it."""
    scores = retrieval_scores

    def hit(*given: Any) -> Any:
        found = scores(*given)
        return replace(found, recall_turns=float(bool(found.recall_turns)))

    return patch.object(row_maker, "retrieval_scores", hit)


def failures_left_out() -> Mistake:
    """Accuracy is over what went well."""
    score = figures.score
    return patch.object(figures, "score", lambda row: None if row.outcome is Outcome.SYSTEM_ERROR else score(row))


def an_unseeded_sample() -> Mistake:
    """Another sample each time."""
    return patch.object(choice, "_lot", lambda *_: os.urandom(8))


def another_k_for(system: str) -> Mistake:
    """One system is asked for twice as many memories."""
    retrieve = MemorySystem.retrieve

    async def generous(self: MemorySystem, space_id: str, query: str, *, k: int, **options: Any) -> Any:
        return await retrieve(self, space_id, query, k=2 * k if self.name == system else k, **options)

    return patch.object(MemorySystem, "retrieve", generous)


def answers_zipped_by_position() -> Mistake:
    """Answers go to questions in the order in which they come."""

    async def zipped(
        parts: Any, kind: Any, keys: Sequence[Any], ask: Callable[[Any], Any], **_: Any
    ) -> Mapping[Any, Any]:
        came: list[Any] = []

        async def one(key: Any) -> None:
            came.append(await ask(key))

        await asyncio.gather(*map(one, keys))
        found = {
            key: replace(record, question_id=key[0], repeat=key[1]) for key, record in zip(keys, came, strict=True)
        }
        parts.write(kind, [found[key] for key in sorted(found)])
        return found

    return patch.object(answering, "settle", zipped)


def errors_of_reset_swallowed() -> Mistake:
    """A space that could not be reset is taken for one that was."""
    reset = MemorySystem.reset

    async def swallowing(self: MemorySystem, space_id: str) -> ResetDone:
        try:
            return await reset(self, space_id)
        except Fault:
            return ResetDone(erased_memories=0, erased_turns=0)

    return patch.object(MemorySystem, "reset", swallowing)


def spaces_that_runs_share() -> Mistake:
    """The space of a dialogue has the same name in every run."""
    return patch.object(loop, "space_id", lambda _, dialogue_id, *rest: f"eval-{dialogue_id}-{rest[0]}")
