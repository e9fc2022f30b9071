"""The rows of a run as the question explorer of the page wants them: every text once, long memories cut."""

import base64
import gzip
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import orjson

from memdock_evaluator.results.rows import Outcome, RetrievedMemory, Row
from memdock_evaluator.summary.axes import in_order, title, values_in_order
from memdock_evaluator.summary.figures import score
from memdock_evaluator.words.sentence import said

MEMORY_CHARACTERS = 700
"""A longer memory is cut in the page; `outcomes.jsonl` has all of it. Ten pairs of RUMBA are 17,000 characters."""

RESULTS = (
    said("right"),
    said("wrong"),
    said("unscored"),
    said("refused"),
    said("infrastructure error"),
    said("system error"),
)
"""What can have become of a question, in the order of the page's legend."""

Place = Callable[[str], int]


def result(row: Row) -> str:
    """One of `RESULTS`."""
    if row.outcome is not Outcome.ANSWERED:
        return row.outcome.value.replace("_", " ")
    value = score(row)
    return "unscored" if value is None else "right" if value else "wrong"


def explorer(rows: Sequence[Row], systems: Sequence[str]) -> dict[str, Any]:
    """`texts` (each once), `axes` to filter by, and `rows` that hold places in `texts` instead of text.

    Rows come in the order of `systems`, which names them all, and as they are inside a system.
    """
    texts: dict[str, int] = {}

    def place(text: str) -> int:
        return texts.setdefault(text, len(texts))

    entries = [_entry(row, place) for row in sorted(rows, key=lambda row: systems.index(row.system))]
    return {"axes": _axes(rows), "results": RESULTS, "rows": entries, "texts": list(texts)}


def packed(data: Any) -> str:
    """JSON in gzip in base64: a tenth of its size, and no character that could end a script element.

    The same bytes for the same data wherever zlib is the same.
    """
    return base64.b64encode(gzip.compress(orjson.dumps(data), mtime=0)).decode()


def _axes(rows: Iterable[Row]) -> list[dict[str, Any]]:
    found: dict[str, set[str]] = {}
    for row in rows:
        for axis, value in row.axes.items():
            found.setdefault(axis, set()).add(value)
    return [
        {"axis": axis, "title": title(axis), "values": values_in_order(axis, found[axis])} for axis in in_order(found)
    ]


def _entry(row: Row, place: Place) -> dict[str, Any]:
    return {
        "system": row.system,
        "language": row.language,
        "dialogue": row.dialogue_id,
        "question": row.question_id,
        "repeat": row.repeat,
        "axes": dict(row.axes),
        "result": result(row),
        "reason": row.reason,
        "detail": row.detail,
        "text": place(row.question),
        "date": row.question_date,
        "references": [place(reference) for reference in row.references],
        "evidence_sessions": row.evidence_sessions,
        "evidence_turns": row.evidence_turns,
        "failed_evidence": row.failed_evidence,
        "abstention": row.abstention,
        "answer": None if row.answer is None else place(row.answer),
        "abstained": row.abstained,
        "verdict": row.verdict,
        "note": row.judge_note,
        "f1": row.f1,
        "recall": row.recall_sessions,
        "memories": [_memory(memory, row, place) for memory in row.memories],
    }


def _memory(memory: RetrievedMemory, row: Row, place: Place) -> dict[str, Any]:
    cut = memory.text[:MEMORY_CHARACTERS]
    return {
        "rank": memory.rank,
        "kind": memory.kind,
        "text": place(cut),
        "cut": len(memory.text) - len(cut),
        "score": memory.score,
        "time": memory.time,
        "sources": [source.turn_id or source.session_id for source in memory.sources],
        "hit": _hit(memory, row),
    }


def _hit(memory: RetrievedMemory, row: Row) -> str:
    """Whether a memory comes from a turn of the evidence, or at least from one of its sessions."""
    if any(source.turn_id in row.evidence_turns for source in memory.sources):
        return "turn"
    return "session" if any(source.session_id in row.evidence_sessions for source in memory.sources) else ""
