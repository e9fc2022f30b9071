"""Where the memories of a unit's questions come from: a memory system behind the protocol, or a baseline."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from memdock_evaluator.baselines import Baseline
from memdock_evaluator.dataset import Dialogue, Question
from memdock_evaluator.results.parts import Parts
from memdock_evaluator.results.records import RETRIEVE, Retrieval
from memdock_evaluator.run.progress import Progress, Work
from memdock_evaluator.run.requests import said_by
from memdock_evaluator.run.settling import Key

Retrievals: TypeAlias = Mapping[str, Mapping[Key, Retrieval]]
"""Contestant -> question -> its memories."""


class Retriever(Protocol):
    """A source of memories for the questions of one dialogue."""

    async def store(self, dialogue: Dialogue) -> None:
        """Stores what the questions will need, and asks none; raises only `RunStoppedError`."""

    async def retrieve(self, dialogue: Dialogue, keys: Sequence[Key]) -> Retrievals:
        """A record for each key, of each contestant; raises only `RunStoppedError`."""


def latest(parts: Parts, keys: Sequence[Key]) -> Mapping[Key, Retrieval]:
    """The last record of each of the `keys`, which all have one."""
    records = {record.key: record for record in parts.read(RETRIEVE)}
    return {key: records[key] for key in keys}


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineRetriever:
    """Takes the memories from the dialogue itself; nothing is stored and nothing kept."""

    baseline: Baseline
    as_of: bool
    progress: Progress

    async def store(self, dialogue: Dialogue) -> None:
        """Nothing is stored."""

    async def retrieve(self, dialogue: Dialogue, keys: Sequence[Key]) -> Retrievals:
        """What the baseline shows for each question."""
        questions = {question.question_id: question for question in dialogue.questions}
        self.progress.advance(Work.RETRIEVALS, len(keys))
        return {self.baseline.system: {key: self._retrieval(dialogue, questions[key[0]], key[1]) for key in keys}}

    def _retrieval(self, dialogue: Dialogue, question: Question, repeat: int) -> Retrieval:
        said = said_by(question.date if self.as_of else None)
        memories = self.baseline.memories(dialogue, question, said)
        return Retrieval(question_id=question.question_id, repeat=repeat, memories=tuple(memories))
