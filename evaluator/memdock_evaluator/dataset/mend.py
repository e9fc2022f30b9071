"""The last step of every reader: what the types promise is made true, and whatever had to be mended is noted."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace

from memdock_evaluator.dataset.notes import Notes
from memdock_evaluator.dataset.types import Dialogue, DialogueTurn, Question, Session


def mend(dialogues: Iterable[Dialogue]) -> Iterator[Dialogue]:
    """Make ids unique, leave out blank turns and NULs, keep of the evidence what exists, in order.

    `dialogue_id` becomes unique in the file (in each language of it, for languages share their ids), question and turn
    ids in their dialogue, by a suffix "~2", "~3" and so on. Sessions that hold a turn of evidence become evidence as
    well.
    """
    dialogue_ids: defaultdict[str, set[str]] = defaultdict(set)
    for dialogue in dialogues:
        notes = Notes(where=f"dialogue {dialogue.dialogue_id}", oddities=list(dialogue.oddities))
        sessions = tuple(_mended_sessions(dialogue.sessions, notes))
        yield replace(
            dialogue,
            dialogue_id=_unique(dialogue.dialogue_id, dialogue_ids[dialogue.language], "dialogue-id-twice", notes),
            sessions=sessions,
            questions=tuple(_mended_questions(dialogue.questions, sessions, notes)),
            oddities=tuple(notes.oddities),
        )


def _mended_sessions(sessions: Iterable[Session], notes: Notes) -> Iterator[Session]:
    turn_ids: set[str] = set()
    latest = None
    for session in sessions:
        at = notes.at(f"session {session.index}")
        turns = tuple(_mended_turns(session.turns, turn_ids, at))
        if not turns:
            at.add("session-empty", "nothing was said in it; it is left out")
            continue
        if session.time and latest and session.time < latest:
            at.add("session-out-of-order", "it is dated before one that stands above it; the file's order is kept")
        latest = max(filter(None, (latest, session.time)), default=None)
        yield replace(session, turns=turns)


def _mended_turns(turns: Iterable[DialogueTurn], taken: set[str], notes: Notes) -> Iterator[DialogueTurn]:
    for turn in turns:
        at = notes.at(f"turn {turn.turn_id}")
        text = turn.text.replace("\0", "")
        if text != turn.text:
            at.add("nul-in-text", "NUL characters are taken out of its text")
        if not text.strip():
            at.add("turn-blank", "it has no text; it is left out")
            continue
        yield replace(turn, text=text, turn_id=_unique(turn.turn_id, taken, "turn-id-twice", at))


def _mended_questions(questions: Iterable[Question], sessions: tuple[Session, ...], notes: Notes) -> Iterator[Question]:
    session_of = {turn.turn_id: session.session_id for session in sessions for turn in session.turns}
    session_ids = [session.session_id for session in sessions]
    taken: set[str] = set()
    for question in questions:
        at = notes.at(f"question {question.question_id}")
        turns = _known(question.evidence_turns, list(session_of), "evidence-unknown-turn", at)
        named = (*question.evidence_sessions, *(session_of[turn] for turn in turns))
        yield replace(
            question,
            question_id=_unique(question.question_id, taken, "question-id-twice", at),
            evidence_turns=turns,
            evidence_sessions=_known(named, session_ids, "evidence-unknown-session", at),
        )


def _known(named: Iterable[str], existing: list[str], kind: str, notes: Notes) -> tuple[str, ...]:
    wanted = dict.fromkeys(named)
    for name in wanted:
        if name not in existing:
            notes.add(kind, f"its dialogue holds no {name}; it is left out")
    return tuple(name for name in existing if name in wanted)


def _unique(wanted: str, taken: set[str], kind: str, notes: Notes) -> str:
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted}~{number}"
    taken.add(name)
    if name != wanted:
        notes.add(kind, f"the id {wanted} stands again; this one is called {name}")
    return name
