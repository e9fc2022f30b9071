"""Small data files for the readers' tests: a record to start from, and a way to write and read what became of it."""

from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import orjson

from memdock_evaluator.dataset import Dialogue, open_dataset

CONVERSATION = [
    {
        "session_idx": 1,
        "session_datetime": "2024-03-05T23:30:00",
        "conversation": [
            {"role": "user", "message": "Мою собаку зовут Рекс!"},
            {"role": "assistant", "message": "Красивое имя."},
        ],
    },
    {
        "session_idx": 2,
        "session_datetime": "2024-04-01T08:00:00",
        "conversation": [
            {"role": "user", "message": "Вчера гуляли до ночи"},
            {"role": "assistant", "message": "Красивое имя."},
        ],
    },
]
ROW: dict[str, Any] = {
    "id": "0|q0",
    "conversation_idx": 0,
    "user_id": "user_0",
    "question": "Как зовут мою собаку?",
    "answer": "Рекс",
    "category": "StaticUser, single, atemporal",
    "subcategory": "",
    "subsubcategory": None,
    "text_temporal_expression": "",
    "evidence": [1],
    "question_date": "2024-06-01T10:00:00",
    "conversation": CONVERSATION,
}
DIALOGUE: dict[str, Any] = {
    "dialogue_id": "0",
    "conversation": {
        "speaker_a": "assistant",
        "speaker_b": "user_0",
        "session_1_date_time": "2024-03-05T23:30:00Z",
        "session_1": [
            {"speaker": "user_0", "text": "Мою собаку зовут Рекс!", "extra": 1},
            {"speaker": "assistant", "text": "Красивое имя."},
        ],
        "session_2_date_time": "2024-04-01T08:00:00Z",
        "session_2": [
            {"speaker": "user_0", "text": "Вчера гуляли до ночи"},
            {"speaker": "assistant", "text": "Красивое имя."},
        ],
    },
    "qa": [
        {
            "question": "Как зовут мою собаку?",
            "answer": "Рекс",
            "category": "StaticUser, single, atemporal",
            "evidence": [{"content": "Мою собаку зовут Рекс!", "note": "x"}],
            "question_date": "2024-06-01T10:00:00Z",
        }
    ],
}
LOCOMO: dict[str, Any] = {
    "sample_id": "conv-1",
    "conversation": {
        "speaker_a": "Ann",
        "speaker_b": "Bob",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Bob", "dia_id": "D1:1", "text": "Hey Ann!"},
            {"speaker": "Ann", "dia_id": "D1:2", "text": "Look!", "blip_caption": "a red kite", "query": "kite"},
            {"speaker": "Bob", "dia_id": "D1:3", "text": "", "query": "two kites"},
        ],
        "session_2_date_time": "9:05 am on 1 June, 2023",
        "session_10": [{"speaker": "Ann", "dia_id": "D10:1", "text": "Bye."}],
        "session_10_date_time": "12:00 am on 2 June, 2023",
    },
    "qa": [
        {"question": "What did Ann fly?", "answer": "a kite", "evidence": ["D1:2"], "category": 4},
        {"question": "Did Bob swim?", "adversarial_answer": "Yes", "evidence": ["D1:1"], "category": 5},
    ],
}
LONGMEMEVAL: dict[str, Any] = {
    "question_id": "q7",
    "question_type": "knowledge-update",
    "question": "Where do I live?",
    "answer": "Oslo",
    "question_date": "2023/05/30 (Tue) 23:40",
    "haystack_session_ids": ["late", "answer_early"],
    "haystack_dates": ["2023/05/21 (Sun) 01:00", "2023/05/20 (Sat) 02:21"],
    "haystack_sessions": [
        [{"role": "user", "content": "Sunny."}, {"role": "assistant", "content": "Nice."}],
        [
            {"role": "user", "content": "I moved to Oslo.", "has_answer": True},
            {"role": "assistant", "content": "Good.", "has_answer": False},
        ],
    ],
    "answer_session_ids": ["answer_early"],
}
GIGAMEMORY: dict[str, Any] = {
    "id": 1,
    "question": "Кем я работаю?",
    "ans": "Сварщиком",
    "question_type": "info_updating",
    "sessions": [
        {"id": 14, "messages": [{"role": "user", "content": "Я сварщик"}, {"role": "assistant", "content": "Ясно"}]},
        {"id": 24, "messages": [{"role": "user", "content": "Жарко"}, {"role": "assistant", "content": "Да"}]},
    ],
    "ans_session_ids": [14],
}
OWN: dict[str, Any] = {
    "dialogue_id": "support-1",
    "language": "de",
    "sessions": [
        {
            "time": "2024-03-05T23:30:00",
            "turns": [
                {"role": "user", "text": "Mein Vertrag endet im Mai.", "turn_id": "a1"},
                {"role": "assistant", "text": "Verstanden.", "time": "2024-03-05T23:31:00+01:00"},
            ],
        },
        {"turns": [{"role": "user", "text": "Hallo"}]},
    ],
    "questions": [
        {
            "question_id": "q1",
            "question": "Wann endet mein Vertrag?",
            "answers": ["Im Mai", "Mai"],
            "tags": {"topic": "contract"},
            "evidence_turns": ["a1"],
        }
    ],
}


def changed(record: dict[str, Any], *path_and_value: Any) -> dict[str, Any]:
    """A deep copy of a record with one value replaced: `changed(ROW, "conversation", 0, "session_idx", 3)`."""
    copy = deepcopy(record)
    *path, last, value = path_and_value
    part: Any = copy
    for step in path:
        part = part[step]
    part[last] = value
    return copy


def without(record: dict[str, Any], *path: Any) -> dict[str, Any]:
    """A deep copy of a record with one value taken out."""
    copy = deepcopy(record)
    part: Any = copy
    for step in path[:-1]:
        part = part[step]
    del part[path[-1]]
    return copy


def write(folder: Path, records: Sequence[Any]) -> Path:
    """Write the records as JSON lines."""
    path = folder / "data.jsonl"
    path.write_bytes(b"".join(orjson.dumps(record) + b"\n" for record in records))
    return path


def read(folder: Path, *records: Any, **options: Any) -> list[Dialogue]:
    """The dialogues of a file with these records."""
    return list(open_dataset(write(folder, records), **options))


def kinds(dialogue: Dialogue) -> list[str]:
    """The kinds of a dialogue's oddities, in order."""
    return [oddity.kind for oddity in dialogue.oddities]
