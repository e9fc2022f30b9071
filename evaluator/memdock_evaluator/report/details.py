"""What an opened row of the explorer shows, a dialogue at a time: every text once, long memories and evidence cut."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from memdock_evaluator.results.rows import RetrievedMemory, Row

CHARACTERS = (700, 450, 300, 200, 140, 100, 80, 60)
"""How much of a memory or a piece of evidence the page may hold; `outcomes.jsonl` has all of it. Ten pairs of RUMBA are
17,000 characters."""

ROOM = 14_000_000
"""Bytes of UTF-8 that the beginnings of all of them together may take: the page packs them to about a third of it."""

HITS = ("", "session", "turn")
"""What a memory covers of the evidence, by the number that a row keeps of it."""


class Texts:
    """Texts by their place, each once; `start` is the first place."""

    def __init__(self, *, start: int = 0) -> None:
        self._start = start
        self._places: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._places)

    def place(self, text: str) -> int:
        """The place of a text, a new one the first time."""
        return self._places.setdefault(text, self._start + len(self._places))

    @property
    def start(self) -> int:
        """The place of the first text."""
        return self._start

    @property
    def all(self) -> list[str]:
        """The texts in the order of their places."""
        return list(self._places)


def characters_of(rows: Sequence[Row], room: int = ROOM) -> int:
    """The most of `CHARACTERS` with which all beginnings find room; the least where none does."""
    texts = {memory.text for row in rows for memory in row.memories} | {
        each.text for row in rows for each in row.evidence
    }
    fitting = (most for most in CHARACTERS if sum(len(text[:most].encode()) for text in texts) <= room)
    return next(fitting, CHARACTERS[-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """The part of one dialogue in one language. `judges`: language -> the judge that counts, where it has a name."""

    texts: Texts
    judges: Mapping[str, str]
    characters: int
    _memories: dict[bytes, int] = field(default_factory=dict)
    _questions: dict[bytes, int] = field(default_factory=dict)

    def of(self, rows: Sequence[tuple[int, Row]]) -> dict[str, Any]:
        """Rows by their place in the index. What rows share, a memory or the evidence of a question, stands once."""
        entries = [(place, self._entry(row)) for place, row in rows]
        return {
            "start": self.texts.start,
            "texts": self.texts.all,
            "memories": [orjson.loads(each) for each in self._memories],
            "questions": [orjson.loads(each) for each in self._questions],
            "hits": HITS,
            "rows": entries,
        }

    def _entry(self, row: Row) -> dict[str, Any]:
        question = orjson.dumps(self._question(row))
        return {
            "shared": self._questions.setdefault(question, len(self._questions)),
            "reason": row.reason,
            "detail": row.detail,
            "failed_evidence": row.failed_evidence,
            "abstained": row.abstained,
            "verdicts": [
                self._verdict(self.judges.get(row.language, ""), row.verdict, row.judge_note),
                *(self._verdict(name, each.label, each.note) for name, each in sorted(row.verdicts.items())),
            ],
            "scores": [
                None if each is None else round(each, 3)
                for each in (row.f1, row.recall_sessions, row.recall_turns, row.mrr_sessions, row.ndcg_sessions)
            ],
            "tokens": row.context_tokens,
            "memories": [self._memory(memory, row) for memory in row.memories],
        }

    def _verdict(self, judge: str, label: int | None, note: str) -> dict[str, Any]:
        return {"judge": judge, "label": label, "note": self.texts.place(note)}

    def _question(self, row: Row) -> dict[str, Any]:
        return {
            "date": row.question_date,
            "abstention": row.abstention,
            "places": [*row.evidence_turns, *_sessions_alone(row)],
            "evidence": [
                {"place": each.place, "time": each.time, **self._beginning(each.text, each.cut)}
                for each in row.evidence
            ],
        }

    def _memory(self, memory: RetrievedMemory, row: Row) -> list[Any]:
        """Its place, its score to three digits that count, and what it covers."""
        whole = {
            "kind": memory.kind,
            "time": memory.time,
            "sources": [source.turn_id or source.session_id for source in memory.sources],
            **self._beginning(memory.text),
        }
        place = self._memories.setdefault(orjson.dumps(whole), len(self._memories))
        score = None if memory.score is None else float(f"{memory.score:.3g}")
        return [place, score, HITS.index(_hit(memory, row))]

    def _beginning(self, text: str, cut: int = 0) -> dict[str, int]:
        """The place of what the page shows of a text of which `cut` more characters are known."""
        beginning = text[: self.characters]
        return {"text": self.texts.place(beginning), "cut": cut + len(text) - len(beginning)}


def _sessions_alone(row: Row) -> list[str]:
    """Sessions of the evidence of which no turn is named; `Evidence.place` tells, where the row has it."""
    if row.evidence:
        named = {each.place for each in row.evidence}
        return [session for session in row.evidence_sessions if session in named]
    return [] if row.evidence_turns else list(row.evidence_sessions)


def _hit(memory: RetrievedMemory, row: Row) -> str:
    """Whether a memory comes from a turn of the evidence, or at least from one of its sessions."""
    if any(source.turn_id in row.evidence_turns for source in memory.sources):
        return "turn"
    return "session" if any(source.session_id in row.evidence_sessions for source in memory.sources) else ""
