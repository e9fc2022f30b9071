"""LoCoMo (Maharana et al., 2024): two people with names, evidence by `dia_id`, adversarial questions in category 5.

`speaker_a` is read as the user and the other as the assistant. A photo stands in the text by its caption.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import RootModel

from memdock_evaluator.dataset.notes import Notes
from memdock_evaluator.dataset.sessions import language_of, numbered_sessions, session_id
from memdock_evaluator.dataset.shapes import Filled, Label, Labels, Shape, Texts, TurnId
from memdock_evaluator.dataset.source import Record, Source
from memdock_evaluator.dataset.times import read_spoken
from memdock_evaluator.dataset.types import Dialogue, DialogueTurn, Question, Session

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
ADVERSARIAL = 5
NOT_SAID = "There is no such information in the conversation."
"""The reference of an adversarial question that has no answer of its own."""


class Said(Shape):
    """One utterance; `query` is what its photo was searched by."""

    speaker: Filled
    dia_id: TurnId
    text: Label = ""
    blip_caption: Label = ""
    query: Label = ""


class SaidInTurn(RootModel[tuple[Said, ...]]):
    """One `session_N`."""


class Asked(Shape):
    """A question; an adversarial one has a wrong answer to fall for, and mostly no right one."""

    question: Filled
    answer: Texts = ()
    category: int
    evidence: Labels = ()


class ConversationRecord(Shape):
    """A conversation; `conversation` holds the speakers, `session_N` and `session_N_date_time`."""

    sample_id: Label = ""
    conversation: Mapping[str, Any]
    qa: tuple[Asked, ...]


class Speakers(Shape):
    """The two names."""

    speaker_a: Filled
    speaker_b: Filled


def read_locomo(source: Source) -> Iterator[Dialogue]:
    """Yield the conversations as they stand in the file."""
    for record in source.records():
        yield _dialogue(source, record)


def _dialogue(source: Source, record: Record) -> Dialogue:
    written = source.parse(ConversationRecord, record)
    dialogue_id = written.sample_id or f"conversation-{record.number}"
    notes = Notes(where=f"dialogue {dialogue_id}")
    _note_dates_alone(written.conversation, notes)
    sessions = tuple(_sessions(source, record, notes))
    turn_ids = {_numbers(turn.turn_id): turn.turn_id for session in sessions for turn in session.turns}
    questions = []
    for place, asked in enumerate(written.qa):
        question_id = f"{dialogue_id}|q{place}"
        if not asked.answer and asked.category != ADVERSARIAL:
            raise source.broken(record, f"qa[{place}].answer", "only questions of category 5 may have no answer")
        at = notes.at(f"question {question_id}")
        if isinstance(record.value["qa"][place].get("answer"), int):
            at.add("answer-number", "its answer is a number and no text; it is read as its digits")
        questions.append(_question(asked, question_id, turn_ids, at))
    return Dialogue(
        dialogue_id=dialogue_id,
        language=source.language or language_of(question.text for question in questions),
        user_id=dialogue_id,
        sessions=sessions,
        questions=tuple(questions),
        oddities=tuple(notes.oddities),
    )


def _numbers(dia_id: str) -> tuple[int, ...]:
    """ "D1:3" as (1, 3)."""
    return tuple(map(int, re.findall(r"\d+", dia_id)))


def _sessions(source: Source, record: Record, notes: Notes) -> Iterator[Session]:
    speakers = source.parse(Speakers, record, "conversation")
    conversation = record.value["conversation"]
    for number in numbered_sessions(source, record):
        dated = f"session_{number}_date_time"
        written = str(conversation.get(dated) or "")
        time = source.time(record, f"conversation.{dated}", written, read_spoken)
        turns = []
        for said in source.parse(SaidInTurn, record, "conversation", f"session_{number}").root:
            if said.speaker not in (speakers.speaker_a, speakers.speaker_b):
                notes.at(f"turn {said.dia_id}").add("speaker-unknown", f"{said.speaker!r} is read as the assistant")
            role = "user" if said.speaker == speakers.speaker_a else "assistant"
            turns.append(DialogueTurn(turn_id=said.dia_id, role=role, name=said.speaker, text=_text(said), time=time))
        yield Session(session_id=session_id(number), index=number, turns=tuple(turns), time=time)


def _text(said: Said) -> str:
    """What was said, after the name: LoCoMo's questions ask about both people by name."""
    photo = said.blip_caption or said.query
    parts = [f"{said.speaker}:", said.text, f"[shares a photo: {photo}]" if photo else ""]
    return " ".join(filter(None, parts))


def _note_dates_alone(conversation: Mapping[str, Any], notes: Notes) -> None:
    for key in conversation:
        match = re.fullmatch(r"(session_\d+)_date_time", key)
        if match and not conversation.get(match[1]):
            notes.at(match[1]).add("date-without-session", "a date stands here and nothing was said; it is left out")


def _question(asked: Asked, question_id: str, turn_ids: Mapping[tuple[int, ...], str], notes: Notes) -> Question:
    adversarial = asked.category == ADVERSARIAL
    if adversarial and asked.answer:
        notes.add("adversarial-with-answer", "it has a right answer, and is judged by that, not as an abstention")
    return Question(
        question_id=question_id,
        text=asked.question,
        references=asked.answer or (NOT_SAID,),
        axes={"category": CATEGORIES.get(asked.category, str(asked.category))},
        evidence_turns=tuple(_evidence(asked.evidence, turn_ids, notes)),
        abstention=adversarial and not asked.answer,
    )


def _evidence(written: tuple[str, ...], turn_ids: Mapping[tuple[int, ...], str], notes: Notes) -> Iterator[str]:
    """The ids that exist; "D8:6; D9:17" is two of them, "D:11:26" is "D11:26" and "D30:05" is "D30:5"."""
    for place, text in enumerate(written):
        at = notes.at(f"evidence[{place}]")
        found = re.findall(r"D:?(\d{1,9}):(\d{1,9})(?!\d)", text)
        if not found:
            at.add("evidence-unreadable", f"{text!r} is no id of a turn; it is left out")
        elif not re.fullmatch(r"D\d+:\d+", text):
            at.add(
                "evidence-mended", f"{text!r} is read as {', '.join(f'D{session}:{turn}' for session, turn in found)}"
            )
        for session, turn in found:
            if known := turn_ids.get((int(session), int(turn))):
                yield known
            else:
                at.add("evidence-unknown-turn", f"nothing was said at D{session}:{turn}; it is left out")
