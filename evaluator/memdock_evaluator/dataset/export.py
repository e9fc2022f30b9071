"""Dialogues written as a file of one of three shapes: RUMBA's two, and one's own. Equal dialogues give equal bytes."""

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from memdock_evaluator.dataset.errors import DatasetError
from memdock_evaluator.dataset.types import Dialogue, Question, Session

SHAPES = ("rows", "dialogues", "own")
_WHOLE = re.compile(r"0|[1-9][0-9]{0,8}")


def export_dataset(dialogues: Iterable[Dialogue], shape: str, path: Path) -> int:
    """Write `dialogues` to `path` in one of `SHAPES` and return the number of bytes; a file that is there is replaced.

    "rows" and "own" are JSON lines, "dialogues" is a JSON array. RUMBA's shapes hold neither a speaker's name (but for
    the text) nor tags of other data sets: questions without RUMBA's axes raise `DatasetError`. A time is written as the
    clock that it was read as; "own" adds its offset, and numbers sessions by their place. The file appears once it is
    whole.
    """
    unfinished = path.with_name(path.name + ".part")
    try:
        with unfinished.open("wb") as file:
            for piece in _pieces(dialogues, shape):
                file.write(piece)
            size = file.tell()
        unfinished.replace(path)
    except OSError as error:
        raise DatasetError(f"cannot be written ({error.strerror})", path=path) from error
    finally:
        unfinished.unlink(missing_ok=True)
    return size


def _pieces(dialogues: Iterable[Dialogue], shape: str) -> Iterator[bytes]:
    if shape != "own":
        dialogues = _of_one_language(dialogues)
    if shape == "dialogues":
        separator = b"[\n"
        for dialogue in dialogues:
            yield separator + orjson.dumps(as_dialogue(dialogue))
            separator = b",\n"
        yield b"[]\n" if separator == b"[\n" else b"\n]\n"
        return
    for dialogue in dialogues:
        for record in as_rows(dialogue) if shape == "rows" else [as_own(dialogue)]:
            yield orjson.dumps(record) + b"\n"


def _of_one_language(dialogues: Iterable[Dialogue]) -> Iterator[Dialogue]:
    language = ""
    for dialogue in dialogues:
        language = language or dialogue.language
        if dialogue.language != language:
            raise DatasetError(
                f"dialogue {dialogue.dialogue_id} is in {dialogue.language}, the first one in {language}",
                path="export",
                remedy="a file of RUMBA's shapes has one language: export as own, or give --language",
            )
        yield dialogue


def as_rows(dialogue: Dialogue) -> Iterator[dict[str, Any]]:
    """RUMBA's rows of a dialogue; the conversation stands in each."""
    conversation = [
        {
            "session_idx": session.index,
            "session_datetime": _clock(session.time),
            "conversation": [{"role": turn.role, "message": turn.text} for turn in session.turns],
        }
        for session in dialogue.sessions
    ]
    number = dialogue.dialogue_id
    for question in dialogue.questions:
        yield {
            "id": question.question_id,
            "conversation_idx": int(number) if _WHOLE.fullmatch(number) else number,
            "user_id": dialogue.user_id,
            **_rumba_question(dialogue, question),
            "evidence": _indices(dialogue, question),
            "evidence_turns": list(question.evidence_turns),
            "question_date": _clock(question.date),
            "conversation": conversation,
        }


def as_dialogue(dialogue: Dialogue) -> dict[str, Any]:
    """RUMBA's LoCoMo-like record of a dialogue."""
    user = dialogue.user_id if "user" in dialogue.user_id.lower() else "user"
    conversation: dict[str, Any] = {"speaker_a": user, "speaker_b": "assistant"}
    for session in dialogue.sessions:
        conversation[f"session_{session.index}_date_time"] = _clock(session.time, "Z")
        conversation[f"session_{session.index}"] = [
            {"speaker": user if turn.role == "user" else "assistant", "text": turn.text} for turn in session.turns
        ]
    qa = [
        {
            "id": question.question_id,
            **_rumba_question(dialogue, question),
            "question_date": _clock(question.date, "Z"),
            "evidence": list(_contents(dialogue, question)),
        }
        for question in dialogue.questions
    ]
    return {
        "dialogue_id": dialogue.dialogue_id,
        "user_id": dialogue.user_id,
        "conversation": conversation,
        "qa": qa,
    }


def as_own(dialogue: Dialogue) -> dict[str, Any]:
    """The record of `own.schema()`; what is empty is left out."""
    return {
        "dialogue_id": dialogue.dialogue_id,
        "language": dialogue.language,
        **_filled(user_id=dialogue.user_id),
        "sessions": [_own_session(session) for session in dialogue.sessions],
        "questions": [
            {
                "question_id": question.question_id,
                "question": question.text,
                "answers": list(question.references),
                **_filled(
                    date=_instant(question.date),
                    tags=dict(question.axes),
                    evidence_sessions=_places(dialogue, question),
                    evidence_turns=list(question.evidence_turns),
                    abstention=question.abstention,
                ),
            }
            for question in dialogue.questions
        ],
    }


def _own_session(session: Session) -> dict[str, Any]:
    turns = [
        {
            "role": turn.role,
            "text": turn.text,
            **_filled(name=turn.name, time=_instant(turn.time) if turn.time != session.time else ""),
            "turn_id": turn.turn_id,
        }
        for turn in session.turns
    ]
    return {**_filled(time=_instant(session.time)), "turns": turns}


def _rumba_question(dialogue: Dialogue, question: Question) -> dict[str, Any]:
    axes = question.axes
    missing = [axis for axis in ("semantic", "scope", "temporality") if axis not in axes]
    if missing:
        raise DatasetError(
            f"dialogue {dialogue.dialogue_id}, question {question.question_id} has no {missing[0]}",
            path="export",
            remedy="RUMBA's shapes are for questions with RUMBA's axes; export as own",
        )
    return {
        "question": question.text,
        "answer": question.references[0] if len(question.references) == 1 else list(question.references),
        "category": ", ".join((axes["semantic"], axes["scope"], axes["temporality"])),
        "subcategory": axes.get("subcategory", ""),
        "subsubcategory": axes.get("subsubcategory", ""),
        "text_temporal_expression": axes.get("temporal_expression", ""),
    }


def _contents(dialogue: Dialogue, question: Question) -> Iterator[dict[str, Any]]:
    """Evidence as text; a session of which no turn is known stands with an empty text."""
    for session in dialogue.sessions:
        turns = [turn for turn in session.turns if turn.turn_id in question.evidence_turns]
        for turn in turns:
            yield {"content": turn.text, "session_idx": session.index}
        if not turns and session.session_id in question.evidence_sessions:
            yield {"content": "", "session_idx": session.index}


def _indices(dialogue: Dialogue, question: Question) -> list[int]:
    return [session.index for session in dialogue.sessions if session.session_id in question.evidence_sessions]


def _places(dialogue: Dialogue, question: Question) -> list[int]:
    return [n for n, session in enumerate(dialogue.sessions, 1) if session.session_id in question.evidence_sessions]


def _clock(time: datetime | None, suffix: str = "") -> str:
    return time.replace(tzinfo=None).isoformat() + suffix if time else ""


def _instant(time: datetime | None) -> str:
    return time.isoformat() if time else ""


def _filled(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value}
