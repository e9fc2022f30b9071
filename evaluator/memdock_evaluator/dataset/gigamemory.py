"""GigaMemory (the contest of RUMBA's authors): a question with a dialogue of its own, sessions without times."""

from collections.abc import Iterator

from pydantic import Field

from memdock_evaluator.dataset.notes import Notes
from memdock_evaluator.dataset.sessions import language_of, make_session, session_id
from memdock_evaluator.dataset.shapes import Filled, Label, Labels, Role, Shape, Texts
from memdock_evaluator.dataset.source import Source
from memdock_evaluator.dataset.types import Dialogue, Question

NO_INFO = "no_info"
"""The `question_type` of a question that its dialogue does not answer."""


class Message(Shape):
    """One utterance."""

    role: Role
    content: str


class WrittenSession(Shape):
    """One session."""

    id: Filled
    messages: tuple[Message, ...]


class Entry(Shape):
    """A question and its dialogue."""

    id: Filled
    question: Filled
    question_type: Label = ""
    ans: Texts
    sessions: tuple[WrittenSession, ...] = Field(min_length=1)
    ans_session_ids: Labels = ()


def read_gigamemory(source: Source) -> Iterator[Dialogue]:
    """Yield a dialogue a record, its sessions numbered as they stand."""
    for record in source.records():
        yield _dialogue(source, source.parse(Entry, record))


def _dialogue(source: Source, written: Entry) -> Dialogue:
    notes = Notes(where=f"dialogue {written.id}")
    return Dialogue(
        dialogue_id=written.id,
        language=source.language or language_of([written.question]),
        user_id=written.id,
        sessions=tuple(
            make_session(index, None, ((said.role, said.content) for said in session.messages))
            for index, session in enumerate(written.sessions, 1)
        ),
        questions=(
            Question(
                question_id=written.id,
                text=written.question,
                references=written.ans,
                axes={"question_type": written.question_type} if written.question_type else {},
                evidence_sessions=tuple(_evidence(written, notes.at("ans_session_ids"))),
                abstention=written.question_type == NO_INFO,
            ),
        ),
        oddities=tuple(notes.oddities),
    )


def _evidence(written: Entry, notes: Notes) -> Iterator[str]:
    for named in written.ans_session_ids:
        found = [index for index, session in enumerate(written.sessions, 1) if session.id == named]
        if not found:
            notes.add("evidence-unknown-session", f"the dialogue holds no session {named!r}; it is left out")
        yield from map(session_id, found)
