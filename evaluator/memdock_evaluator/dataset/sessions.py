"""Sessions and languages, made alike by every reader."""

import re
from collections.abc import Iterable
from datetime import datetime

from memdock_evaluator.dataset.source import Record, Source
from memdock_evaluator.dataset.types import DialogueTurn, Session


def make_session(index: int, time: datetime | None, said: Iterable[tuple[str, str]]) -> Session:
    """A session whose turns have no ids of their own; `said` gives each turn's role and text."""
    turns = tuple(
        DialogueTurn(turn_id=turn_id(index, position), role=role, text=text, time=time)
        for position, (role, text) in enumerate(said)
    )
    return Session(session_id=session_id(index), index=index, turns=turns, time=time)


def session_id(index: int) -> str:
    """The id of the session with that number."""
    return f"s{index}"


def turn_id(session_index: int, position: int) -> str:
    """The id of a turn that has none in its file; `position` counts from 0 in its session."""
    return f"s{session_index}-t{position}"


def numbered_sessions(source: Source, record: Record) -> list[int]:
    """The N of every key `session_N` of a record's conversation, ascending.

    Raises `DatasetError` for an N that does not count from 1.
    """
    numbers = [match[1] for key in record.value["conversation"] if (match := re.fullmatch(r"session_(\d+)", key))]
    for number in numbers:
        if not re.fullmatch(r"[1-9][0-9]{0,8}", number):
            raise source.broken(record, f"conversation.session_{number}", "sessions are numbered 1, 2, 3 and so on")
    return sorted(map(int, numbers))


def language_of(texts: Iterable[str]) -> str:
    """ "ru" where more letters are Cyrillic than Latin, else "en"."""
    text = " ".join(texts)
    return "ru" if len(re.findall(r"[а-яёА-ЯЁ]", text)) > len(re.findall(r"[a-zA-Z]", text)) else "en"
