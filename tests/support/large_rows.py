"""A file as large as RUMBA's rows, of no meaning: 1,543 rows, each with its dialogue of 340,000 characters."""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import orjson

DIALOGUES, QUESTIONS = 85, 1543
SESSIONS, TURNS, TURN_CHARACTERS = 35, 14, 694
WORDS = ("дача", "электричка", "поликлиника", "рассада", "ипотека", "маршрутка", "кот", "огород", "чайник", "вокзал")


def rows(dialogues: int = DIALOGUES, questions: int = QUESTIONS) -> Iterator[bytes]:
    """The rows as JSON, dialogue by dialogue; the same every time."""
    random = Random(7)
    for number in range(dialogues):
        conversation = orjson.dumps(_conversation(random))
        for place in range(number, questions, dialogues):
            head = {
                "id": f"{number}|q{place // dialogues}",
                "conversation_idx": number,
                "user_id": f"user_{number}",
                "question": "Где стоит чайник?",
                "answer": "На даче",
                "category": "StaticUser, single, atemporal",
                "evidence": [1],
                "question_date": "2025-06-01T12:00:00",
            }
            yield orjson.dumps(head)[:-1] + b',"conversation":' + conversation + b"}"


def write_rows(path: Path, *, array: bool = False, dialogues: int = DIALOGUES, questions: int = QUESTIONS) -> Path:
    """Write the rows as JSON lines or as one JSON array."""
    with path.open("wb") as file:
        for place, row in enumerate(rows(dialogues, questions)):
            file.write(((b",\n" if place else b"[\n") if array else b"") + row + (b"" if array else b"\n"))
        file.write(b"\n]\n" if array else b"")
    return path


def _conversation(random: Random) -> list[dict[str, Any]]:
    return [
        {
            "session_idx": index,
            "session_datetime": f"2024-{index // 28 + 1:02}-{index % 28 + 1:02}T19:30:00",
            "conversation": [
                {"role": ("user", "assistant")[place % 2], "message": _text(random)} for place in range(TURNS)
            ],
        }
        for index in range(1, SESSIONS + 1)
    ]


def _text(random: Random) -> str:
    return " ".join(random.choices(WORDS, k=TURN_CHARACTERS // 6))[:TURN_CHARACTERS]
