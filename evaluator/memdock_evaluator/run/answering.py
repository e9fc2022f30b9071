"""From a question's memories to its answer, and from the answer to its verdict."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from typing import TypeVar

from memdock import usage
from memdock_evaluator.answer.answerer import Answer, Answerer, Asked
from memdock_evaluator.answer.judge import Judge, ToJudge, Verdict
from memdock_evaluator.answer.paid import paid_replies
from memdock_evaluator.dataset import Dialogue, Question
from memdock_evaluator.faults import Fault, RunStoppedError
from memdock_evaluator.results.parts import Parts
from memdock_evaluator.results.records import ANSWER, JUDGE, Answered, Blame, Judged, Kind, Retrieval
from memdock_evaluator.results.rows import FurtherVerdict, Outcome, Stage, Timing
from memdock_evaluator.run.context_budget import context_size, within
from memdock_evaluator.run.measuring import Stopwatch
from memdock_evaluator.run.progress import Progress, Work
from memdock_evaluator.run.settling import Key, blame_of, known, settle

_CUT_OFF = Blame(
    outcome=Outcome.INFRASTRUCTURE_ERROR,
    reason="RUN_STOPPED",
    detail="the run ended before the question was done; it is asked again",
)

ReplyT = TypeVar("ReplyT", Answer, Verdict)
PaidT = TypeVar("PaidT", Answered, Judged)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answering:
    """Answers and judges the questions of one unit, each answer `judge_repeats` times.

    All at once: how many calls a model gets at once is for its provider's limiter to say. `spaces`: those that the
    unit's memories come from. `context_tokens` bounds the memories that the answerer is given; `None`: all of them.
    """

    answerer: Answerer
    judge: Judge
    parts: Parts
    progress: Progress
    context_tokens: int | None = None
    judge_repeats: int = 1
    spaces: Sequence[str] = ()

    async def answers(self, dialogue: Dialogue, retrievals: Mapping[Key, Retrieval]) -> Mapping[Key, Answered]:
        """An answer to each question that has its memories."""
        questions = _by_id(dialogue)
        zone = wall_clock(dialogue)

        async def ask(key: Key) -> Answered:
            question = questions[key[0]]
            asked = Asked(
                text=question.text,
                date=question.date,
                language=dialogue.language,
                zone=question.date.tzinfo or zone if question.date else zone,
                memories=retrievals[key].memories,
                spaces=self.spaces,
            )
            return await self._answer(within(asked, self.context_tokens), key)

        keys = [key for key, record in retrievals.items() if record.blame is None]
        self.progress.advance(Work.ANSWERS, len(retrievals) - len(keys) + len(known(self.parts, ANSWER).keys() & keys))
        return await settle(self.parts, ANSWER, keys, ask, limit=len(keys), first_alone=True)

    async def verdicts(self, dialogue: Dialogue, answered: Mapping[Key, Answered]) -> Mapping[Key, Judged]:
        """The verdicts on each answer: those of answer n are n * `judge_repeats` and the next."""
        questions = _by_id(dialogue)

        async def judge(key: Key) -> Judged:
            question = questions[key[0]]
            item = ToJudge(
                question=question.text,
                references=question.references,
                answer=answered[key[0], key[1] // self.judge_repeats].answer or "",
                language=dialogue.language,
                spaces=self.spaces,
            )
            return await self._judge(item, key)

        keys = [
            (question_id, repeat * self.judge_repeats + judging)
            for (question_id, repeat), record in answered.items()
            if record.blame is None
            for judging in range(self.judge_repeats)
        ]
        self.progress.advance(Work.VERDICTS, len(known(self.parts, JUDGE).keys() & keys))
        return await settle(self.parts, JUDGE, keys, judge, limit=len(keys))

    async def _answer(self, asked: Asked, key: Key) -> Answered:
        asking = Answered(
            question_id=key[0],
            repeat=key[1],
            context_tokens=context_size(asked),
            memories_given=len(asked.memories),
        )
        with self._paying(ANSWER, asking) as (meter, paid):
            try:
                answer, timings = await self._timed(
                    Stage.ANSWER, key, lambda: self.answerer.answer(asked, repeat=key[1])
                )
            except Fault as fault:
                return replace(asking, blame=blame_of(fault), usage=meter.models, paid=tuple(paid))
        self.progress.advance(Work.ANSWERS)
        return replace(
            asking,
            answer=answer.text,
            abstained=answer.abstained,
            input_tokens=answer.input_tokens,
            output_tokens=answer.output_tokens,
            estimated=answer.estimated,
            usage=meter.models,
            paid=tuple(paid),
            timings=timings,
        )

    async def _judge(self, item: ToJudge, key: Key) -> Judged:
        judging = Judged(question_id=key[0], repeat=key[1])
        with self._paying(JUDGE, judging) as (meter, paid):
            try:
                verdict, timings = await self._timed(Stage.JUDGE, key, lambda: self.judge.judge(item, repeat=key[1]))
            except Fault as fault:
                return replace(judging, blame=blame_of(fault), usage=meter.models, paid=tuple(paid))
        self.progress.advance(Work.VERDICTS)
        return replace(
            judging,
            label=verdict.label,
            correct=verdict.correct,
            note=verdict.note,
            input_tokens=verdict.input_tokens,
            output_tokens=verdict.output_tokens,
            estimated=verdict.estimated or any(each.estimated for each in verdict.further.values()),
            verdicts=kept_verdicts(verdict),
            usage=meter.models,
            paid=tuple(paid),
            timings=timings,
        )

    @contextmanager
    def _paying(self, kind: Kind[PaidT], asking: PaidT) -> Iterator[tuple[usage.Meter, list[str]]]:
        """Counts the replies that come inside; those of a question that the end of the run cuts off are kept, too."""
        with usage.collect() as meter, paid_replies() as paid:
            try:
                yield meter, paid
            except (RunStoppedError, asyncio.CancelledError):
                if meter.models:
                    self.parts.write(kind, [replace(asking, blame=_CUT_OFF, usage=meter.models, paid=tuple(paid))])
                raise

    async def _timed(
        self, stage: Stage, key: Key, call: Callable[[], Awaitable[ReplyT]]
    ) -> tuple[ReplyT, tuple[Timing, ...]]:
        started = time.perf_counter()
        reply = await call()
        ms = (time.perf_counter() - started) * 1000
        return reply, Stopwatch(unit=self.parts.unit, question_id=key[0], repeat=key[1]).timings(stage, ms)


def keys_of(dialogue: Dialogue, repeats: int, ingest: int = 0) -> Sequence[Key]:
    """All questions of a dialogue, each as often as it is asked; a later ingest of the dialogue counts on."""
    numbers = range(ingest * repeats, (ingest + 1) * repeats)
    return [(question.question_id, repeat) for question in dialogue.questions for repeat in numbers]


def kept_verdicts(verdict: Verdict) -> dict[str, FurtherVerdict]:
    """What the judges beside the primary one say, as rows keep it."""
    return {
        name: FurtherVerdict(
            label=each.label, note=each.note, input_tokens=each.input_tokens, output_tokens=each.output_tokens
        )
        for name, each in verdict.further.items()
    }


def wall_clock(dialogue: Dialogue) -> tzinfo:
    """The clock that the dialogue's times were read from; UTC where it has none."""
    times = (session.time for session in dialogue.sessions)
    return next((time.tzinfo for time in times if time is not None and time.tzinfo is not None), UTC)


def _by_id(dialogue: Dialogue) -> dict[str, Question]:
    return {question.question_id: question for question in dialogue.questions}
