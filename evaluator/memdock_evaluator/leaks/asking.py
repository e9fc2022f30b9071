"""What a user's space shows when it is asked for its own canaries and for the twin's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from memdock.types import Feature, Memory
from memdock_evaluator.faults import Fault
from memdock_evaluator.leaks.twins import Fact, Twin, shows
from memdock_evaluator.suites.system import ErasableSystem

QUESTION, VALUE, LIST = "question", "value", "list"
"""How a canary is seen: asked by the fact's question, by the canary itself, or among all memories."""

Texts: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The texts of one space at one moment, by fact. `listed` is `None` where memories are not listed.

    `faults`: facts of which an answer is missing.
    """

    by_question: Mapping[str, Texts]
    by_value: Mapping[str, Texts]
    listed: Texts | None
    faults: Mapping[str, Fault]

    def ways(self, fact: str) -> Mapping[str, Texts]:
        """What came, by each way."""
        return {QUESTION: self.by_question.get(fact, ()), VALUE: self.by_value.get(fact, ()), LIST: self.listed or ()}

    def holds(self, fact: Fact) -> bool:
        """Whether the fact's own question brought its canary."""
        return shows(fact.value, self.by_question.get(fact.name, ()))


async def ask(system: ErasableSystem, space_id: str, asker: Twin, owner: Twin) -> Seen:
    """Asks a space for everything, one call after another: each question, each canary of the owner, the whole list.

    Raises `RunStoppedError`, and `Fault` where the list fails.
    """
    by_question: dict[str, Texts] = {}
    by_value: dict[str, Texts] = {}
    faults: dict[str, Fault] = {}
    for own, other in zip(asker.facts, owner.facts, strict=True):
        try:
            by_question[own.name] = await texts_for(system, space_id, own.question)
            by_value[own.name] = await texts_for(system, space_id, other.value)
        except Fault as fault:
            faults[own.name] = fault
    can_list = system.declares(Feature.LIST_MEMORIES)
    listed = _texts(await system.list_memories(space_id)) if can_list else None
    return Seen(by_question=by_question, by_value=by_value, listed=listed, faults=faults)


async def texts_for(system: ErasableSystem, space_id: str, query: str) -> Texts:
    """All words that a Retrieve shows, as deep as the system goes."""
    return _texts((await system.retrieve(space_id, query, k=system.deep_k)).result.memories)


def _texts(memories: Sequence[Memory]) -> Texts:
    return tuple(text for memory in memories for text in (memory.text, *memory.metadata.values()))
