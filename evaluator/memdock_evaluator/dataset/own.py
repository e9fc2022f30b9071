"""One's own data: JSON lines, one dialogue a line, with free tags. `schema()` is the published description.

Unlike the formats of others, a key that the schema does not name is refused: it is a slip of the pen.
"""

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from memdock_evaluator.dataset.sessions import session_id, turn_id
from memdock_evaluator.dataset.shapes import TurnId
from memdock_evaluator.dataset.source import Record, Source
from memdock_evaluator.dataset.times import read_iso
from memdock_evaluator.dataset.types import Dialogue, DialogueTurn, Question, Session

SCHEMA_ID = "urn:memdock:dataset:1"

Sentence = Annotated[str, StringConstraints(pattern=r"\S")]
Time = Annotated[
    str,
    Field(
        description="ISO 8601, such as 2024-03-05T19:20:00. Without an offset it is wall clock in the zone that the "
        "file is opened with (UTC unless said otherwise). Empty: unknown.",
    ),
]


class Written(BaseModel):
    """A part of a dialogue."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class WrittenTurn(Written):
    """One utterance."""

    role: Annotated[str, StringConstraints(pattern="^(user|assistant|system|tool)$")]
    text: Sentence
    name: str = Field("", description="The speaker's name; questions that use it need it in the text as well.")
    time: Time = ""
    turn_id: TurnId | None = Field(None, description="Unique in the dialogue. Missing: s<session>-t<position from 0>.")


class WrittenSession(Written):
    """One sitting; its number is its place in the list, from 1."""

    time: Time = ""
    turns: tuple[WrittenTurn, ...] = Field(min_length=1)


class WrittenQuestion(Written):
    """One question with all that is needed to judge its answer."""

    question_id: Sentence
    question: Sentence
    answers: tuple[Sentence, ...] = Field(min_length=1, description="Right answers; any one of them will do.")
    date: Time = ""
    tags: dict[Sentence, Sentence] = Field(
        default_factory=dict, description="Axis to slice, such as topic: billing. Results are given by every slice."
    )
    evidence_sessions: tuple[int, ...] = Field(default=(), description="Numbers of sessions, from 1. Empty: unknown.")
    evidence_turns: tuple[str, ...] = Field(default=(), description="Ids of turns. Empty: unknown.")
    abstention: bool = Field(False, description="The dialogue holds no answer, and saying so is right.")


class WrittenDialogue(Written):
    """One line of the file: a user's conversation and the questions about it."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, title="Memdock dialogue", json_schema_extra={"$id": SCHEMA_ID}
    )

    dialogue_id: Sentence
    language: Annotated[str, StringConstraints(pattern="^[a-z]{2}$")] = Field(description="ISO 639-1, such as en.")
    user_id: str = ""
    sessions: tuple[WrittenSession, ...] = Field(min_length=1)
    questions: tuple[WrittenQuestion, ...]


def schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of one line."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **WrittenDialogue.model_json_schema()}


def read_own(source: Source) -> Iterator[Dialogue]:
    """Yield the dialogues as they stand in the file."""
    for record in source.records():
        written = source.parse(WrittenDialogue, record)
        yield Dialogue(
            dialogue_id=written.dialogue_id,
            language=source.language or written.language,
            user_id=written.user_id,
            sessions=tuple(_session(source, record, place, session) for place, session in enumerate(written.sessions)),
            questions=tuple(
                _question(source, record, place, question) for place, question in enumerate(written.questions)
            ),
        )


def _session(source: Source, record: Record, place: int, written: WrittenSession) -> Session:
    field = f"sessions[{place}]"
    time = source.time(record, f"{field}.time", written.time, read_iso)
    turns = tuple(
        DialogueTurn(
            turn_id=turn.turn_id or turn_id(place + 1, position),
            role=turn.role,
            text=turn.text,
            name=turn.name,
            time=source.time(record, f"{field}.turns[{position}].time", turn.time, read_iso) or time,
        )
        for position, turn in enumerate(written.turns)
    )
    return Session(session_id=session_id(place + 1), index=place + 1, turns=turns, time=time)


def _question(source: Source, record: Record, place: int, written: WrittenQuestion) -> Question:
    return Question(
        question_id=written.question_id,
        text=written.question,
        references=written.answers,
        date=source.time(record, f"questions[{place}].date", written.date, read_iso),
        axes=dict(written.tags),
        evidence_sessions=tuple(map(session_id, written.evidence_sessions)),
        evidence_turns=written.evidence_turns,
        abstention=written.abstention,
    )
