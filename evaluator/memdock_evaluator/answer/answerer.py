"""Who answers: all that an answerer may see, and what it gives back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Protocol

from memdock_evaluator.answer.dates import written
from memdock_evaluator.results.plan import ModelFacts
from memdock_evaluator.results.rows import RetrievedMemory

_NO_MEMORIES: Mapping[str, str] = {"ru": "(записей нет)", "en": "(no notes)"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question as an answerer sees it: nothing of its references, evidence or category is in here.

    `zone` is the wall clock of the dialogue, in which the memories' times are written. `spaces`: those that the
    memories come from, which no model sees.
    """

    text: str
    date: datetime | None
    language: str
    zone: tzinfo
    memories: Sequence[RetrievedMemory]
    spaces: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What was answered. `abstained`: it says that there is no answer. `estimated`: the tokens were not counted."""

    text: str
    abstained: bool
    input_tokens: int = 0
    output_tokens: int = 0
    estimated: bool = False


class Answerer(Protocol):
    """Anything that answers questions from memories."""

    @property
    def facts(self) -> ModelFacts:
        """What the manifest says of it."""

    async def answer(self, asked: Asked, *, repeat: int) -> Answer:
        """Raises `Fault` or `RunStoppedError`."""

    async def close(self) -> None:
        """Closes connections."""


def context(asked: Asked) -> str:
    """The memories as the prompt shows them: best first, each behind its time in the dialogue's wall clock."""
    if not asked.memories:
        return _NO_MEMORIES.get(asked.language, _NO_MEMORIES["en"])
    return "\n".join(_shown(memory, asked) for memory in asked.memories)


def _shown(memory: RetrievedMemory, asked: Asked) -> str:
    if memory.time is None:
        return f"- {memory.text}"
    time = datetime.fromisoformat(memory.time).astimezone(asked.zone)
    return f"- [{written(time, asked.language)}] {memory.text}"
