"""What is worth knowing about a data set before a run: nothing here stops one."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from memdock_evaluator.dataset.types import Dialogue, DialogueTurn, Question, Session

TURN_LIMIT_BYTES = 64 * 1024
"""The protocol's limit of a turn's text, in UTF-8."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One kind of thing that was found: how often, and where first."""

    kind: str
    sentence: str
    count: int
    first: str


def _before_last_session(question: Question, dialogue: Dialogue) -> bool:
    last = max((session.time for session in dialogue.sessions if session.time), default=None)
    return bool(question.date and last and question.date < last)


def _is_deletion(question: Question) -> bool:
    return question.axes.get("semantic") == "DeleteInfo"


def _scope_differs(question: Question, _: Dialogue) -> bool:
    wanted = {"single": 1, "multi": 2}.get(question.axes.get("scope", ""))
    found = min(len(question.evidence_sessions), 2)
    return bool(wanted and found and wanted != found)


def _speaks_twice(session: Session) -> bool:
    roles = [turn.role for turn in session.turns]
    return any(role == after for role, after in pairwise(roles))


QUESTION_FINDINGS: tuple[tuple[str, str, Callable[[Question, Dialogue], bool]], ...] = (
    (
        "dated-before-last-session",
        "questions are dated before their dialogue's last session; the whole dialogue is stored first all the same",
        _before_last_session,
    ),
    ("question-undated", "questions have no date", lambda question, _: question.date is None),
    (
        "abstention-evidence",
        "abstention questions name evidence: the nearest topic, left out of recall",
        lambda question, _: question.abstention and bool(question.evidence_sessions),
    ),
    (
        "deletion-evidence",
        "DeleteInfo questions name evidence: the fact and the request to delete it, whose recall is reported apart",
        lambda question, _: _is_deletion(question) and bool(question.evidence_sessions),
    ),
    (
        "evidence-unstated",
        "questions that have an answer name no evidence, and stay out of recall",
        lambda question, _: not question.abstention and not question.evidence_sessions,
    ),
    (
        "evidence-without-turns",
        "questions name sessions of evidence but no turns, and stay out of recall by turn",
        lambda question, _: bool(question.evidence_sessions) and not question.evidence_turns,
    ),
    ("scope-differs", "questions' scope is not the number of their evidence sessions", _scope_differs),
)
SESSION_FINDINGS: tuple[tuple[str, str, Callable[[Session], bool]], ...] = (
    ("session-undated", "sessions have no date", lambda session: session.time is None),
    (
        "session-odd",
        "sessions have an odd number of turns: their last is stored alone",
        lambda s: len(s.turns) % 2 == 1,
    ),
    ("speaker-twice", "sessions have a speaker who speaks twice in a row", _speaks_twice),
)
TURN_FINDINGS: tuple[tuple[str, str, Callable[[DialogueTurn], bool]], ...] = (
    (
        "turn-too-long",
        f"turns are longer than the {TURN_LIMIT_BYTES // 1024} KiB that the protocol takes",
        lambda turn: len(turn.text.encode()) > TURN_LIMIT_BYTES,
    ),
    (
        "character-lost",
        "turns hold U+FFFD, which stands where a character was lost",
        lambda turn: "\ufffd" in turn.text,
    ),
)


def find(dialogue: Dialogue) -> Iterator[tuple[str, str]]:
    """Each finding of a dialogue as its kind and its place."""
    where = f"dialogue {dialogue.dialogue_id}"
    if not dialogue.questions:
        yield "dialogue-unasked", where
    if not dialogue.sessions:
        yield "dialogue-silent", where
    for question in dialogue.questions:
        for kind, _, holds in QUESTION_FINDINGS:
            if holds(question, dialogue):
                yield kind, f"{where}, question {question.question_id}"
    for session in dialogue.sessions:
        for kind, _, odd in SESSION_FINDINGS:
            if odd(session):
                yield kind, f"{where}, session {session.index}"
        for turn in session.turns:
            for kind, _, wrong in TURN_FINDINGS:
                if wrong(turn):
                    yield kind, f"{where}, turn {turn.turn_id}"


SENTENCES = {
    "dialogue-unasked": "dialogues have no question",
    "dialogue-silent": "dialogues hold no word; their questions are asked of an empty memory",
    **{kind: sentence for kind, sentence, _ in QUESTION_FINDINGS},
    **{kind: sentence for kind, sentence, _ in SESSION_FINDINGS},
    **{kind: sentence for kind, sentence, _ in TURN_FINDINGS},
}
"""Each kind's sentence, to follow a count."""
