"""From a question's memories to its answer, and from the answer to its verdict."""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import TypeVar

from memdock_evaluator.answer.answerer import Answer, Answerer, Asked, context
from memdock_evaluator.answer.judge import Judge, ToJudge, Verdict
from memdock_evaluator.answer.tokens import estimated_tokens
from memdock_evaluator.dataset import Dialogue, Question
from memdock_evaluator.faults import Fault
from memdock_evaluator.results.parts import Parts
from memdock_evaluator.results.records import ANSWER, JUDGE, Answered, Judged, Retrieval
from memdock_evaluator.results.rows import FurtherVerdict, Stage, Timing
from memdock_evaluator.run.measuring import Stopwatch
from memdock_evaluator.run.progress import Progress, Work
from memdock_evaluator.run.settling import Key, blame_of, known, settle

ReplyT = TypeVar("ReplyT", Answer, Verdict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answering:
    """Answers and judges the questions of one unit, `limit` at a time; each answer `judge_repeats` times."""

    answerer: Answerer
    judge: Judge
    parts: Parts
    progress: Progress
    limit: int
    judge_repeats: int = 1

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
            )
            return await self._answer(asked, key)

        keys = [key for key, record in retrievals.items() if record.blame is None]
        self.progress.advance(Work.ANSWERS, len(retrievals) - len(keys) + len(known(self.parts, ANSWER).keys() & keys))
        return await settle(self.parts, ANSWER, keys, ask, limit=self.limit, first_alone=True)

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
            )
            return await self._judge(item, key)

        keys = [
            (question_id, repeat * self.judge_repeats + judging)
            for (question_id, repeat), record in answered.items()
            if record.blame is None
            for judging in range(self.judge_repeats)
        ]
        self.progress.advance(Work.VERDICTS, len(known(self.parts, JUDGE).keys() & keys))
        return await settle(self.parts, JUDGE, keys, judge, limit=self.limit)

    async def _answer(self, asked: Asked, key: Key) -> Answered:
        context_tokens = estimated_tokens(context(asked)) if asked.memories else 0
        try:
            answer, timings = await self._timed(Stage.ANSWER, key, lambda: self.answerer.answer(asked, repeat=key[1]))
        except Fault as fault:
            return Answered(question_id=key[0], repeat=key[1], context_tokens=context_tokens, blame=blame_of(fault))
        self.progress.advance(Work.ANSWERS)
        return Answered(
            question_id=key[0],
            repeat=key[1],
            answer=answer.text,
            abstained=answer.abstained,
            input_tokens=answer.input_tokens,
            output_tokens=answer.output_tokens,
            context_tokens=context_tokens,
            estimated=answer.estimated,
            timings=timings,
        )

    async def _judge(self, item: ToJudge, key: Key) -> Judged:
        try:
            verdict, timings = await self._timed(Stage.JUDGE, key, lambda: self.judge.judge(item, repeat=key[1]))
        except Fault as fault:
            return Judged(question_id=key[0], repeat=key[1], blame=blame_of(fault))
        self.progress.advance(Work.VERDICTS)
        return Judged(
            question_id=key[0],
            repeat=key[1],
            label=verdict.label,
            correct=verdict.correct,
            note=verdict.note,
            input_tokens=verdict.input_tokens,
            output_tokens=verdict.output_tokens,
            estimated=verdict.estimated or any(each.estimated for each in verdict.further.values()),
            verdicts={
                name: FurtherVerdict(
                    label=each.label, note=each.note, input_tokens=each.input_tokens, output_tokens=each.output_tokens
                )
                for name, each in verdict.further.items()
            },
            timings=timings,
        )

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


def wall_clock(dialogue: Dialogue) -> tzinfo:
    """The clock that the dialogue's times were read from; UTC where it has none."""
    times = (session.time for session in dialogue.sessions)
    return next((time.tzinfo for time in times if time is not None and time.tzinfo is not None), UTC)


def _by_id(dialogue: Dialogue) -> dict[str, Question]:
    return {question.question_id: question for question in dialogue.questions}
