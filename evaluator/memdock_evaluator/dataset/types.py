"""A benchmark's words as frozen dataclasses: what every reader yields, whatever the file's shape was.

Times are aware `datetime`s that keep the wall clock of the file (so `strftime("%A")` names the weekday that the authors
meant); `None` is "the file does not say".
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Oddity:
    """Something in a file that is not as its format says and that did not stop the reader.

    `kind` is a short fixed word to count by ("evidence-unknown-turn"), `where` the place (file record and field),
    `detail` one sentence: what stands there, and how it was read.
    """

    kind: str
    where: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DialogueTurn:
    """One utterance. `role` is "user", "assistant", "system" or "tool".

    `turn_id` is unique in its dialogue and printable ASCII: the file's own where it has one ("D1:3"), else
    "s<session>-t<position from 0>". Where speakers have names, `name` holds the speaker's and `text` begins with it
    ("Ann: hello"), since questions ask about people by name and not every memory system keeps a name.
    `time` is the turn's own time, or else its session's.
    """

    turn_id: str
    role: str
    text: str
    name: str = ""
    time: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Turns of one sitting, in order. `index` is the session's number, from 1; `session_id` is always "s<index>".

    A file's own session ids are not kept: some give the gold evidence away ("answer_1f2e").
    """

    session_id: str
    index: int
    turns: tuple[DialogueTurn, ...]
    time: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question with what is needed to judge its answer. Only `text` and `date` may reach an answer model.

    `references` are the right answers, at least one. `axes` maps an axis to the question's slice on it: for RUMBA
    `taxonomy.AXES`, elsewhere the file's own tags; an axis that does not apply is left out. Evidence names sessions and
    turns of the same dialogue in dialogue order, each once; empty: unknown. `abstention`: the dialogue holds no answer,
    and saying so is right (evidence is then the nearest topic and no target of retrieval).
    """

    question_id: str
    text: str
    references: tuple[str, ...]
    date: datetime | None = None
    axes: Mapping[str, str] = field(default_factory=dict)
    evidence_sessions: tuple[str, ...] = ()
    evidence_turns: tuple[str, ...] = ()
    abstention: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialogue:
    """One user's conversation and the questions about it. `language` is a lower-case ISO 639-1 code ("ru", "en").

    `dialogue_id` is unique in its file; the two languages of one dialogue share it, and `question_id`s with it.
    """

    dialogue_id: str
    language: str
    sessions: tuple[Session, ...]
    questions: tuple[Question, ...]
    user_id: str = ""
    oddities: tuple[Oddity, ...] = ()

    @property
    def turns(self) -> Iterator[DialogueTurn]:
        """All turns, session by session."""
        return (turn for session in self.sessions for turn in session.turns)

    @property
    def characters(self) -> int:
        """Length of all turns' text in Unicode code points."""
        return sum(len(turn.text) for turn in self.turns)
