"""RUMBA in LoCoMo's manner (`data_locomo_format_*.json`): one object a dialogue, evidence given as text."""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import RootModel, model_validator

from memdock_evaluator.dataset.alignment import Aligner
from memdock_evaluator.dataset.notes import Notes
from memdock_evaluator.dataset.rumba import RumbaQuestion, classify
from memdock_evaluator.dataset.sessions import language_of, make_session, numbered_sessions, session_id
from memdock_evaluator.dataset.shapes import Filled, Label, Shape
from memdock_evaluator.dataset.source import Record, Source
from memdock_evaluator.dataset.times import read_iso_clock
from memdock_evaluator.dataset.types import Dialogue, Question, Session


class Said(Shape):
    """One utterance."""

    speaker: Label
    text: str


class SaidInTurn(RootModel[tuple[Said, ...]]):
    """One `session_N`."""


class Evidence(Shape):
    """The text of a turn that the answer stands on. `session_idx`, this project's addition: the session to look in."""

    content: Label = ""
    session_idx: int | None = None

    @model_validator(mode="before")
    @classmethod
    def _bare(cls, value: object) -> object:
        """A text that stands alone is the content."""
        return {"content": value} if isinstance(value, str) else value


class Asked(RumbaQuestion):
    """A question; where it has no `id`, its place in the list makes one."""

    id: Label = ""
    evidence: tuple[Evidence, ...] = ()


class DialogueRecord(Shape):
    """A dialogue; `conversation` holds the speakers, `session_N` and `session_N_date_time`."""

    dialogue_id: Filled
    user_id: Label = ""
    conversation: Mapping[str, Any]
    qa: tuple[Asked, ...]


def read_dialogues(source: Source) -> Iterator[Dialogue]:
    """Yield the dialogues as they stand in the file."""
    for record in source.records():
        yield _dialogue(source, record)


def _dialogue(source: Source, record: Record) -> Dialogue:
    written = source.parse(DialogueRecord, record)
    notes = Notes(where=f"dialogue {written.dialogue_id}")
    sessions = tuple(_sessions(source, record, _user(written.conversation, notes)))
    aligner = Aligner(sessions)
    questions = []
    for place, asked in enumerate(written.qa):
        question_id = asked.id or f"{written.dialogue_id}|q{place}"
        at = notes.at(f"question {question_id}")
        axes, abstention = classify(asked, at)
        questions.append(
            Question(
                question_id=question_id,
                text=asked.question,
                references=asked.answer,
                date=source.time(record, f"qa[{place}].question_date", asked.question_date, read_iso_clock),
                axes=axes,
                evidence_sessions=tuple(session_id(e.session_idx) for e in asked.evidence if e.session_idx),
                evidence_turns=tuple(_evidence_turns(asked, aligner, at)),
                abstention=abstention,
            )
        )
    return Dialogue(
        dialogue_id=written.dialogue_id,
        language=source.language or language_of(question.text for question in questions),
        user_id=written.user_id,
        sessions=sessions,
        questions=tuple(questions),
        oddities=tuple(notes.oddities),
    )


def _user(conversation: Mapping[str, Any], notes: Notes) -> str:
    """Which speaker is the user: the one with "user" in the name, or else the one who is no assistant, or else A."""
    a, b = str(conversation.get("speaker_a") or ""), str(conversation.get("speaker_b") or "")
    if "user" in a.lower() or "assistant" in b.lower():
        return a
    if "user" in b.lower() or "assistant" in a.lower():
        return b
    notes.add("speaker-guessed", f"neither {a!r} nor {b!r} has 'user' in the name; speaker_a is taken for the user")
    return a


def _sessions(source: Source, record: Record, user: str) -> Iterator[Session]:
    conversation = record.value["conversation"]
    for number in numbered_sessions(source, record):
        said = source.parse(SaidInTurn, record, "conversation", f"session_{number}").root
        dated = f"session_{number}_date_time"
        yield make_session(
            number,
            source.time(record, f"conversation.{dated}", str(conversation.get(dated) or ""), read_iso_clock),
            (("user" if turn.speaker == user else "assistant", turn.text) for turn in said),
        )


def _evidence_turns(asked: Asked, aligner: Aligner, notes: Notes) -> Iterator[str]:
    for place, evidence in enumerate(asked.evidence):
        if evidence.session_idx and not evidence.content:
            continue
        found = aligner.find(evidence.content, evidence.session_idx)
        if not found:
            notes.at(f"evidence[{place}]").add("evidence-not-found", "no turn says this text; it is left out")
            continue
        if len(found) > 1:
            detail = f"{len(found)} turns say this text; the first, {found[0]}, is taken"
            notes.at(f"evidence[{place}]").add("evidence-ambiguous", detail)
        yield found[0]
