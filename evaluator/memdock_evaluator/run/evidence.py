"""The words that a question's answer rests on, for whoever looks at its row."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from memdock_evaluator.dataset import Dialogue, DialogueTurn, Question
from memdock_evaluator.results.rows import Evidence

EVIDENCE_CHARACTERS = 3000
"""Of a turn or a session a row keeps so much, so that no long document in a dialogue makes the file large."""


def evidence_of(question: Question, dialogue: Dialogue) -> Iterator[Evidence]:
    """The turns of the evidence in dialogue order; the whole session where the file names no turn of it."""
    for session in dialogue.sessions:
        turns = [turn for turn in session.turns if turn.turn_id in question.evidence_turns]
        for turn in turns:
            yield _evidence(turn.turn_id, turn.time or session.time, [turn])
        if not turns and session.session_id in question.evidence_sessions:
            yield _evidence(session.session_id, session.time, session.turns)


def _evidence(place: str, time: datetime | None, turns: Sequence[DialogueTurn]) -> Evidence:
    whole = "\n".join(f"{turn.role}: {turn.text}" for turn in turns)
    text = whole[:EVIDENCE_CHARACTERS]
    return Evidence(place=place, time=None if time is None else time.isoformat(), text=text, cut=len(whole) - len(text))
