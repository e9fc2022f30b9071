"""How a question's evidence is forgotten: by memory, by turn, by session; and what that should take."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from enum import StrEnum

from memdock.types import Feature, Memory, Selection, TurnRecord
from memdock_evaluator.dataset import Dialogue, Question
from memdock_evaluator.words.sentence import said

MOST_IDS = 1000
"""What a selector of the protocol holds."""


class Mode(StrEnum):
    """What a Forget selects."""

    MEMORY = said("memory")
    TURN = said("turn")
    SESSION = said("session")

    @property
    def feature(self) -> Feature:
        """What a system must declare for it."""
        return {
            Mode.MEMORY: Feature.FORGET_MEMORIES,
            Mode.TURN: Feature.FORGET_TURNS,
            Mode.SESSION: Feature.FORGET_SESSIONS,
        }[self]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What is asked to be forgotten for a question: the ids, of one kind, and the turns that they stand for.

    No ids: there is nothing to forget, since no memory stands on the evidence. `turns` is `None` where a memory does
    not say what it was made from: then the system's answer tells which turns went.
    """

    ids: tuple[str, ...]
    turns: frozenset[str] | None


def evidence_of(question: Question, dialogue: Dialogue) -> tuple[str, ...]:
    """The evidence by turn, in the dialogue's order; all turns of its sessions where only those are known."""
    known, sessions = set(question.evidence_turns), set(question.evidence_sessions)
    if known:
        return tuple(turn.turn_id for turn in dialogue.turns if turn.turn_id in known)
    return tuple(turn.turn_id for each in dialogue.sessions if each.session_id in sessions for turn in each.turns)


def scope_by_turn(evidence: Sequence[str]) -> Scope:
    """The evidence itself."""
    return Scope(ids=tuple(evidence), turns=frozenset(evidence))


def scope_by_session(evidence: Sequence[str], dialogue: Dialogue) -> Scope:
    """The sessions in which it was said."""
    hit = [each for each in dialogue.sessions if any(turn.turn_id in evidence for turn in each.turns)]
    turns = frozenset(turn.turn_id for session in hit for turn in session.turns)
    return Scope(ids=tuple(session.session_id for session in hit), turns=turns)


def scope_by_memory(evidence: Set[str], memories: Sequence[Memory], turns: Mapping[str, TurnRecord]) -> Scope:
    """The memories that stand on it, by their sources or by what ListTurns says; and all that they were made from."""
    sources = {memory.memory_id: {source.turn_id for source in memory.sources} for memory in memories}
    for record in turns.values():
        for memory_id in record.memory_ids:
            sources.setdefault(memory_id, set()).add(record.turn_id)
    hit = sorted(memory_id for memory_id, made_from in sources.items() if made_from & evidence)
    return Scope(ids=tuple(hit), turns=frozenset().union(*(sources[memory_id] for memory_id in hit)))


def selections(mode: Mode, ids: Sequence[str]) -> Iterator[Selection]:
    """As many selectors as the ids need."""
    for first in range(0, len(ids), MOST_IDS):
        some = tuple(ids[first : first + MOST_IDS])
        match mode:
            case Mode.MEMORY:
                yield Selection(memory_ids=some)
            case Mode.TURN:
                yield Selection(turn_ids=some)
            case Mode.SESSION:
                yield Selection(session_ids=some)
