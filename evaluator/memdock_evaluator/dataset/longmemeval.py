"""LongMemEval (Wu et al., 2025): a question with a haystack of its own, so every record is one dialogue."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from pydantic import Field

from memdock_evaluator.dataset.notes import Notes
from memdock_evaluator.dataset.sessions import language_of, make_session, session_id, turn_id
from memdock_evaluator.dataset.shapes import Filled, Label, Labels, Role, Shape, Texts
from memdock_evaluator.dataset.source import Record, Source
from memdock_evaluator.dataset.times import read_with_weekday
from memdock_evaluator.dataset.types import Dialogue, Question


class Message(Shape):
    """One utterance; `has_answer` marks evidence."""

    role: Role
    content: str
    has_answer: bool = False


class Instance(Shape):
    """A question and its haystack; the three `haystack_` lists run in parallel. "_abs" ends an abstention's id."""

    question_id: Filled
    question_type: Label = ""
    question: Filled
    answer: Texts
    question_date: Label = ""
    haystack_session_ids: Labels
    haystack_dates: Labels
    haystack_sessions: tuple[tuple[Message, ...], ...] = Field(min_length=1)
    answer_session_ids: Labels = ()


def read_longmemeval(source: Source) -> Iterator[Dialogue]:
    """Yield a dialogue a record, its sessions by date: the file with the evidence alone does not sort them."""
    for record in source.records():
        yield _dialogue(source, record)


def _dialogue(source: Source, record: Record) -> Dialogue:
    written = source.parse(Instance, record)
    for field in ("haystack_session_ids", "haystack_dates"):
        if len(getattr(written, field)) != len(written.haystack_sessions):
            problem = f"{len(getattr(written, field))} entries for {len(written.haystack_sessions)} haystack_sessions"
            raise source.broken(record, field, problem)
    times = [
        source.time(record, f"haystack_dates[{place}]", date, read_with_weekday)
        for place, date in enumerate(written.haystack_dates)
    ]
    order = _chronological(times)
    notes = Notes(where=f"dialogue {written.question_id}")
    return Dialogue(
        dialogue_id=written.question_id,
        language=source.language or language_of([written.question]),
        user_id=written.question_id,
        sessions=tuple(
            make_session(index, times[place], ((said.role, said.content) for said in written.haystack_sessions[place]))
            for index, place in enumerate(order, 1)
        ),
        questions=(
            Question(
                question_id=written.question_id,
                text=written.question,
                references=written.answer,
                date=source.time(record, "question_date", written.question_date, read_with_weekday),
                axes={"question_type": written.question_type} if written.question_type else {},
                evidence_sessions=tuple(_evidence_sessions(written, order, notes)),
                evidence_turns=tuple(_evidence_turns(written, order)),
                abstention=written.question_id.endswith("_abs"),
            ),
        ),
        oddities=tuple(notes.oddities),
    )


def _chronological(times: Sequence[datetime | None]) -> list[int]:
    """Places in the order of their times; the file's own order where any time is missing."""
    dated = [time for time in times if time]
    places = list(range(len(times)))
    return sorted(places, key=dated.__getitem__) if len(dated) == len(times) else places


def _evidence_sessions(written: Instance, order: Sequence[int], notes: Notes) -> Iterator[str]:
    for named in written.answer_session_ids:
        found = [index for index, place in enumerate(order, 1) if written.haystack_session_ids[place] == named]
        if not found:
            notes.add("evidence-unknown-session", f"the haystack holds no session {named!r}; it is left out")
        yield from map(session_id, found)


def _evidence_turns(written: Instance, order: Sequence[int]) -> Iterator[str]:
    for index, place in enumerate(order, 1):
        for position, said in enumerate(written.haystack_sessions[place]):
            if said.has_answer:
                yield turn_id(index, position)
