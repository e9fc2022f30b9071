"""The rows of a unit: what each stage found out about a question, put together and scored."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from memdock_evaluator.dataset import Dialogue, Question
from memdock_evaluator.results.parts import Unit
from memdock_evaluator.results.records import Answered, Blame, Judged, Retrieval
from memdock_evaluator.results.rows import Outcome, Row
from memdock_evaluator.results.stored import Stored
from memdock_evaluator.run.evidence import evidence_of
from memdock_evaluator.run.settling import Key, settled
from memdock_evaluator.scores import retrieval_scores, token_f1
from memdock_evaluator.text_sources import TextSources

_UNKNOWN = Stored()


@dataclass(frozen=True, slots=True, kw_only=True)
class RowMaker:
    """`scores_retrieval`: the unit's system names the sources of its memories. `guesses_sources`: it does not, so that
    their text must tell. `keeps_memories`: rows show them.
    """

    unit: Unit
    k: int
    scores_retrieval: bool
    guesses_sources: bool
    keeps_memories: bool
    judge_repeats: int = 1

    def rows(
        self,
        dialogue: Dialogue,
        retrievals: Mapping[Key, Retrieval],
        answered: Mapping[Key, Answered],
        judged: Mapping[Key, Judged],
        stored: Stored = _UNKNOWN,
    ) -> Iterator[Row]:
        """`judge_repeats` rows for each of `retrievals`; the later stages lack the keys that did not get so far."""
        questions = {question.question_id: question for question in dialogue.questions}
        guess = TextSources(dialogue) if self.guesses_sources else None
        sessions = max((session.index for session in dialogue.sessions), default=0)
        for key, retrieval in retrievals.items():
            question = questions[key[0]]
            evidence = tuple(evidence_of(question, dialogue))
            recall_text = _recall_by_text(question, retrieval, guess, self.k) if guess else None
            for judging in range(self.judge_repeats):
                repeat = key[1] * self.judge_repeats + judging
                row = self._row(question, retrieval, answered.get(key), judged.get((key[0], repeat)))
                yield replace(
                    row if not judging else replace(row, answer_input_tokens=0, answer_output_tokens=0),
                    repeat=repeat,
                    evidence=evidence,
                    ingest=self.unit.ingest,
                    judging=judging,
                    sessions=sessions,
                    failed_turns=len(stored.failed),
                    failed_evidence=tuple(turn for turn in question.evidence_turns if turn in stored.failed),
                    unstored_evidence=tuple(turn for turn in question.evidence_turns if turn in stored.absent),
                    unstored_sessions=_unstored_sessions(question, dialogue, stored),
                    storage_listed=stored.listed,
                    recall_text=recall_text,
                )

    def _row(self, question: Question, retrieval: Retrieval, answered: Answered | None, judged: Judged | None) -> Row:
        blame = _first_blame(retrieval, answered, judged)
        return Row(
            system=self.unit.system,
            language=self.unit.language,
            dialogue_id=self.unit.dialogue_id,
            question_id=question.question_id,
            repeat=retrieval.repeat,
            axes=dict(question.axes),
            abstention=question.abstention,
            question=question.text,
            references=question.references,
            question_date=None if question.date is None else question.date.isoformat(),
            evidence_sessions=question.evidence_sessions,
            evidence_turns=question.evidence_turns,
            outcome=Outcome.ANSWERED if blame is None else blame.outcome,
            reason="" if blame is None else blame.reason,
            detail="" if blame is None else blame.detail,
            memories=retrieval.memories if self.keeps_memories else (),
            **self._scores(question, retrieval),
            **_answer(question, answered),
            **_verdict(judged, blame),
            tokens_estimated=bool((answered and answered.estimated) or (judged and judged.estimated)),
        )

    def _scores(self, question: Question, retrieval: Retrieval) -> dict[str, Any]:
        """A system's own error is as good as finding nothing: crashing on hard questions must not pay here either."""
        failed = retrieval.blame is not None and retrieval.blame.outcome is not Outcome.SYSTEM_ERROR
        if not self.scores_retrieval or question.abstention or failed:
            return {}
        sources = [[(source.session_id, source.turn_id) for source in memory.sources] for memory in retrieval.memories]
        scores = retrieval_scores(sources, question.evidence_sessions, question.evidence_turns, self.k)
        return {name: None if score is None else round(score, 6) for name, score in asdict(scores).items()}


def _unstored_sessions(question: Question, dialogue: Dialogue, stored: Stored) -> tuple[str, ...]:
    """Of evidence that is known by session alone."""
    if question.evidence_turns:
        return ()
    gone = stored.failed | stored.absent
    whole = {each.session_id for each in dialogue.sessions if all(turn.turn_id in gone for turn in each.turns)}
    return tuple(session for session in question.evidence_sessions if session in whole)


def _recall_by_text(question: Question, retrieval: Retrieval, guess: TextSources, k: int) -> float | None:
    if question.abstention or retrieval.blame is not None:
        return None
    sources = [guess.of(memory.text) for memory in retrieval.memories]
    scores = retrieval_scores(sources, question.evidence_sessions, question.evidence_turns, k)
    recall = scores.recall_sessions if scores.recall_turns is None else scores.recall_turns
    return None if recall is None else round(recall, 6)


def _first_blame(retrieval: Retrieval, answered: Answered | None, judged: Judged | None) -> Blame | None:
    """What kept the question from its answer; a judge that fails for good leaves an answer, unscored."""
    if retrieval.blame is not None:
        return retrieval.blame
    if answered is not None and answered.blame is not None:
        return answered.blame
    return judged.blame if judged is not None and not settled(judged.blame) else None


def _answer(question: Question, answered: Answered | None) -> dict[str, Any]:
    if answered is None:
        return {}
    text = answered.answer
    return {
        "answer": text,
        "abstained": answered.abstained,
        "f1": None if text is None else round(token_f1(text, question.references), 6),
        "context_tokens": answered.context_tokens,
        "memories_given": answered.memories_given,
        "answer_input_tokens": answered.input_tokens,
        "answer_output_tokens": answered.output_tokens,
    }


def _verdict(judged: Judged | None, blame: Blame | None) -> dict[str, Any]:
    if blame is not None and blame.outcome is Outcome.SYSTEM_ERROR:
        return {"correct": False}
    if judged is None:
        return {}
    return {
        "verdict": judged.label,
        "correct": judged.correct,
        "judge_note": judged.note if judged.blame is None else judged.blame.detail,
        "verdicts": judged.verdicts,
        "judge_input_tokens": judged.input_tokens,
        "judge_output_tokens": judged.output_tokens,
    }
