"""From what a space showed before, after and after the late retry to the rows; nothing is asked here."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from memdock.types import TurnState
from memdock_evaluator.dataset import Dialogue, Question
from memdock_evaluator.forgetting.modes import (
    Mode,
    Scope,
    evidence_of,
    scope_by_memory,
    scope_by_session,
    scope_by_turn,
)
from memdock_evaluator.forgetting.rows import Look, NeighbourRow, TargetRow
from memdock_evaluator.forgetting.space import Erased, Seen
from memdock_evaluator.forgetting.traces import Speech, Trace, left, together
from memdock_evaluator.results.records import Blame
from memdock_evaluator.run.settling import blame_of


def scope_of(mode: Mode, question: Question, dialogue: Dialogue, before: Seen, speech: Speech) -> Scope:
    """What is to be forgotten for a question."""
    evidence = evidence_of(question, dialogue)
    match mode:
        case Mode.TURN:
            return scope_by_turn(evidence)
        case Mode.SESSION:
            return scope_by_session(evidence, dialogue)
        case Mode.MEMORY:
            found = list(before.memories)
            by_source = scope_by_memory(set(evidence), found, before.turns)
            return by_source if by_source.ids else _scope_by_words(question, evidence, before, speech)


def _scope_by_words(question: Question, evidence: Sequence[str], before: Seen, speech: Speech) -> Scope:
    """The memories that show the evidence's own words, where no memory says what it was made from."""
    found = list(before.memories)
    if any(memory.sources for memory in found):
        return Scope(ids=(), turns=frozenset())
    wanted = speech.wanted(question, set(evidence), set(evidence))
    all_there = speech.found(wanted, found)
    ids = {memory.memory_id for memory in found if left(all_there, [speech.found(wanted, [memory])])}
    return Scope(ids=tuple(sorted(ids)), turns=None if ids else frozenset())


def gone(
    scopes: Mapping[str, Scope], erased: Mapping[str, Erased], questions: Iterable[Question], dialogue: Dialogue
) -> frozenset[str]:
    """All turns that are to be forgotten in the space: of each scope, or what the system says that it took."""
    taken: set[str] = set()
    for question in questions:
        turns = scopes[question.question_id].turns
        if turns is None:
            turns = erased[question.question_id].turn_ids | set(evidence_of(question, dialogue))
        taken |= turns
    return frozenset(taken)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measuring:
    """The rows of one space. `gone`: all turns that were to be forgotten in it."""

    system: str
    mode: Mode
    dialogue: Dialogue
    speech: Speech
    gone: frozenset[str]
    before: Seen
    after: Seen
    retried: Seen

    def target(self, question: Question, erased: Erased) -> TargetRow:
        """What became of the evidence that was to be forgotten."""
        evidence = evidence_of(question, self.dialogue)
        wanted = self.speech.wanted(question, self.gone & set(evidence), self.gone)
        before, after, retried = (
            self._look(seen, question, wanted) for seen in (self.before, self.after, self.retried)
        )
        stood = together(_traces(before))
        stays = _signs(stood, after)
        again = _signs(stood, retried)
        return TargetRow(
            system=self.system,
            language=self.dialogue.language,
            dialogue_id=self.dialogue.dialogue_id,
            mode=self.mode,
            question_id=question.question_id,
            question=question.text,
            blame=self._blame(question, (self.before, self.after, self.retried)),
            forget_blame=erased.blame,
            evidence_turns=evidence,
            wanted=wanted,
            before=before,
            after=after,
            retried=retried,
            left=stays,
            revived=tuple(sign for sign in again if sign not in stays),
            claims=erased.claims,
        )

    def neighbours(self, questions: Iterable[Question]) -> Iterable[NeighbourRow]:
        """Those of the questions of whose evidence nothing was to be forgotten."""
        for question in questions:
            evidence = evidence_of(question, self.dialogue)
            if not self.gone & set(evidence):
                yield self._neighbour(question, evidence)

    def _neighbour(self, question: Question, evidence: Sequence[str]) -> NeighbourRow:
        wanted = self.speech.wanted(question, set(evidence), set(evidence))
        blame = self._blame(question, (self.before, self.after))
        taken = _taken(self.before, self.after)
        return NeighbourRow(
            system=self.system,
            language=self.dialogue.language,
            dialogue_id=self.dialogue.dialogue_id,
            mode=self.mode,
            question_id=question.question_id,
            blame=blame,
            wanted=wanted,
            before_at_k=self.speech.found(wanted, self.before.at_k.get(question.question_id, ())),
            after_at_k=self.speech.found(wanted, self.after.at_k.get(question.question_id, ())),
            taken=tuple(turn_id for turn_id in evidence if turn_id in taken),
        )

    def _look(self, seen: Seen, question: Question, wanted: Trace) -> Look:
        return Look(
            at_k=self.speech.found(wanted, seen.at_k.get(question.question_id, ())),
            deep=self.speech.found(wanted, seen.deep.get(question.question_id, ())),
            listed=None if seen.listed is None else self.speech.found(wanted, seen.listed),
            states={turn_id: seen.turns[turn_id].state.value for turn_id in wanted.turns if turn_id in seen.turns},
        )

    def _blame(self, question: Question, moments: Iterable[Seen]) -> Blame | None:
        faults = (seen.faults.get(question.question_id) for seen in moments)
        return next((blame_of(fault) for fault in faults if fault is not None), None)


def _traces(look: Look) -> list[Trace]:
    return [trace for trace in (look.at_k, look.deep, look.listed) if trace is not None]


def _signs(stood: Trace, look: Look) -> tuple[str, ...]:
    states = set(look.states.values()) - {TurnState.FORGOTTEN.value}
    return (*left(stood, _traces(look)), *(("state",) if states else ()))


def _taken(before: Seen, after: Seen) -> frozenset[str]:
    """The turns that the system had and has no more, by ListTurns or by the memories that it lists."""
    known = _known(before) - _known(after)
    return known | (_named(before) & _known(before)) - _named(after)


def _known(seen: Seen) -> frozenset[str]:
    return frozenset(turn_id for turn_id, turn in seen.turns.items() if turn.state is not TurnState.FORGOTTEN)


def _named(seen: Seen) -> frozenset[str]:
    return frozenset(source.turn_id for memory in seen.listed or () for source in memory.sources)
