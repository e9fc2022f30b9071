"""The question put to the answer model before and after: what was forgotten should now be "no such information"."""

from collections.abc import Sequence
from dataclasses import dataclass

from memdock.types import Memory
from memdock_evaluator.answer.answerer import Answerer, Asked
from memdock_evaluator.answer.judge import Judge, ToJudge
from memdock_evaluator.dataset import Dialogue, Question
from memdock_evaluator.faults import Fault
from memdock_evaluator.forgetting.rows import Reply
from memdock_evaluator.results.rows import MemorySource, RetrievedMemory
from memdock_evaluator.run.answering import kept_verdicts, wall_clock
from memdock_evaluator.run.progress import Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class Replying:
    """Answers and judges as `run` does, from memories of the space `space_id`."""

    answerer: Answerer
    judge: Judge
    progress: Progress
    space_id: str

    async def before_and_after(
        self, dialogue: Dialogue, question: Question, before: Sequence[Memory], after: Sequence[Memory]
    ) -> tuple[Reply, Reply] | None:
        """Both answers; `None`, and a sentence, where a model failed. Raises `RunStoppedError` alone."""
        try:
            return await self._reply(dialogue, question, before), await self._reply(dialogue, question, after)
        except Fault as fault:
            self.progress.say(f"question {question.question_id} of dialogue {dialogue.dialogue_id}: {fault.detail}")
            return None

    async def _reply(self, dialogue: Dialogue, question: Question, memories: Sequence[Memory]) -> Reply:
        zone = wall_clock(dialogue)
        asked = Asked(
            text=question.text,
            date=question.date,
            language=dialogue.language,
            zone=(question.date.tzinfo if question.date else None) or zone,
            memories=[_kept(rank, memory) for rank, memory in enumerate(memories, start=1)],
            spaces=(self.space_id,),
        )
        answer = await self.answerer.answer(asked, repeat=0)
        item = ToJudge(
            question=question.text,
            references=question.references,
            answer=answer.text,
            language=dialogue.language,
            spaces=(self.space_id,),
        )
        verdict = await self.judge.judge(item, repeat=0)
        return Reply(
            text=answer.text, abstained=answer.abstained, correct=verdict.correct, verdicts=kept_verdicts(verdict)
        )


def _kept(rank: int, memory: Memory) -> RetrievedMemory:
    return RetrievedMemory(
        rank=rank,
        kind=memory.kind,
        text=memory.text,
        score=memory.score,
        time=None if memory.time is None else memory.time.isoformat(),
        sources=tuple(MemorySource(session_id=source.session_id, turn_id=source.turn_id) for source in memory.sources),
    )
