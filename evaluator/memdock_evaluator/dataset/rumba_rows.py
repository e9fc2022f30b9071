"""RUMBA, one object a question; the conversation stands again in every row of its dialogue."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Annotated, Any

from pydantic import Field

from memdock_evaluator.dataset.notes import Notes
from memdock_evaluator.dataset.rumba import RumbaQuestion, classify
from memdock_evaluator.dataset.sessions import language_of, make_session, session_id
from memdock_evaluator.dataset.shapes import Filled, Label, Labels, Numbers, Parsed, Role, Shape
from memdock_evaluator.dataset.source import Record, Source
from memdock_evaluator.dataset.times import read_iso
from memdock_evaluator.dataset.types import Dialogue, Question, Session


class Message(Shape):
    """One utterance."""

    role: Role
    message: str


class RowSession(Shape):
    """One session; `session_idx` counts from 1."""

    session_idx: int
    session_datetime: Label = ""
    conversation: tuple[Message, ...]


class RowConversation(Shape):
    """The part of a row that repeats."""

    conversation: Annotated[tuple[RowSession, ...], Parsed, Field(min_length=1)]


class Row(RumbaQuestion):
    """The part of a row that is its own. `evidence_turns` is this project's addition: ids such as "s3-t0"."""

    id: Filled
    conversation_idx: Filled
    user_id: Label = ""
    evidence: Numbers = ()
    evidence_turns: Labels = ()


@dataclass(slots=True, kw_only=True)
class _Gathered:
    """What the rows of one dialogue say of it beside its conversation."""

    user_id: str
    digest: bytes
    notes: Notes
    questions: list[Question] = field(default_factory=list)


def read_rows(source: Source) -> Iterator[Dialogue]:
    """Yield the dialogues in the order of their first rows; the rows may stand in any order.

    Reads the file twice: first every question (so a broken last row is known before anything runs), then one
    conversation at a time.
    """
    gathered = _gather(source)
    for record in source.records():
        dialogue_id = str(record.value["conversation_idx"])
        if dialogue_id not in gathered:
            continue
        rows = gathered.pop(dialogue_id)
        yield Dialogue(
            dialogue_id=dialogue_id,
            language=source.language or language_of(question.text for question in rows.questions),
            user_id=rows.user_id,
            sessions=_sessions(source, record),
            questions=tuple(rows.questions),
            oddities=tuple(rows.notes.oddities),
        )
        if not gathered:
            return


def _gather(source: Source) -> dict[str, _Gathered]:
    gathered: dict[str, _Gathered] = {}
    last: Any = None
    digest = b""
    for record in source.records():
        row = source.parse(Row, record)
        conversation = record.value.get("conversation")
        if conversation != last:
            _sessions(source, record)
            last, digest = conversation, blake2b(repr(conversation).encode()).digest()
        rows = gathered.get(row.conversation_idx)
        if rows is None:
            notes = Notes(where=f"dialogue {row.conversation_idx}")
            rows = gathered[row.conversation_idx] = _Gathered(user_id=row.user_id, digest=digest, notes=notes)
        notes = rows.notes.at(f"question {row.id}")
        rows.questions.append(_question(source, record, row, notes))
        if rows.digest != digest:
            detail = "the conversation is not that of the dialogue's first row; the first is used"
            notes.add("conversation-differs", detail)
    return gathered


def _question(source: Source, record: Record, row: Row, notes: Notes) -> Question:
    axes, abstention = classify(row, notes)
    return Question(
        question_id=row.id,
        text=row.question,
        references=row.answer,
        date=source.time(record, "question_date", row.question_date, read_iso),
        axes=axes,
        evidence_sessions=tuple(map(session_id, row.evidence)),
        evidence_turns=row.evidence_turns,
        abstention=abstention,
    )


def _sessions(source: Source, record: Record) -> tuple[Session, ...]:
    conversation = source.parse(RowConversation, record).conversation
    numbers = [session.session_idx for session in conversation]
    if len(set(numbers)) < len(numbers) or min(numbers) < 1:
        raise source.broken(record, "conversation", "session_idx must count from 1, each number once")
    return tuple(
        make_session(
            written.session_idx,
            source.time(record, f"conversation[{place}].session_datetime", written.session_datetime, read_iso),
            ((message.role, message.message) for message in written.conversation),
        )
        for place, written in enumerate(conversation)
    )
