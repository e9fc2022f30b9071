"""The rows of a run as the question explorer of the page wants them: every text once, long memories cut."""

import base64
import gzip
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import orjson

from memdock_evaluator.report.language import language_name
from memdock_evaluator.results.rows import Outcome, RetrievedMemory, Row
from memdock_evaluator.summary.axes import in_order, slice_name, title, values_in_order
from memdock_evaluator.summary.figures import score
from memdock_evaluator.summary.ranking import display_name
from memdock_evaluator.words.language import Words
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


def explorer(rows: Sequence[Row], systems: Sequence[str], judges: Mapping[str, str], words: Words) -> dict[str, Any]:
    """`texts` (each once), what to filter by with its names in the page's language, and `rows`, which hold places in
    `texts` instead of text.

    Rows come in the order of `systems`, which names them all, and as they are inside a system. `judges`: language ->
    the judge whose verdict counts, where it has a name.
    """
    texts: dict[str, int] = {}

    def place(text: str) -> int:
        return texts.setdefault(text, len(texts))

    entries = [_entry(row, judges, place) for row in sorted(rows, key=lambda row: systems.index(row.system))]
    found = {entry["result"] for entry in entries}
    return {
        "axes": _axes(rows, words),
        "results": [(name, words.word(name)) for name in RESULTS if name in found],
        "languages": [(code, language_name(code, words)) for code in sorted({row.language for row in rows})],
        "systems": [(name, display_name(name)) for name in systems if any(row.system == name for row in rows)],
        "rows": entries,
        "texts": list(texts),
    }


def packed(data: Any) -> str:
    """JSON in gzip in base64: a tenth of its size, and no character that could end a script element.

    The same bytes for the same data wherever zlib is the same.
    """
    return base64.b64encode(gzip.compress(orjson.dumps(data), mtime=0)).decode()


def _axes(rows: Iterable[Row], words: Words) -> list[dict[str, Any]]:
    found: dict[str, set[str]] = {}
    for row in rows:
        for axis, value in row.axes.items():
            found.setdefault(axis, set()).add(value)
    return [
        {
            "axis": axis,
            "title": words.word(title(axis)),
            "values": [(value, words.word(slice_name(axis, value))) for value in values_in_order(axis, found[axis])],
        }
        for axis in in_order(found)
    ]


def _entry(row: Row, judges: Mapping[str, str], place: Place) -> dict[str, Any]:
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
        "evidence": [
            {"place": each.place, "time": each.time, "text": place(each.text), "cut": each.cut} for each in row.evidence
        ],
        "places": [*row.evidence_turns, *_sessions_alone(row)],
        "failed_evidence": row.failed_evidence,
        "abstention": row.abstention,
        "answer": None if row.answer is None else place(row.answer),
        "abstained": row.abstained,
        "verdicts": [
            {"judge": judges.get(row.language, ""), "label": row.verdict, "note": place(row.judge_note)},
            *(
                {"judge": name, "label": each.label, "note": place(each.note)}
                for name, each in sorted(row.verdicts.items())
            ),
        ],
        "scores": [row.f1, row.recall_sessions, row.recall_turns, row.mrr_sessions, row.ndcg_sessions],
        "tokens": row.context_tokens,
        "memories": [_memory(memory, row, place) for memory in row.memories],
    }


def _sessions_alone(row: Row) -> list[str]:
    """Sessions of the evidence of which no turn is named; `Evidence.place` tells, where the row has it."""
    if row.evidence:
        named = {each.place for each in row.evidence}
        return [session for session in row.evidence_sessions if session in named]
    return [] if row.evidence_turns else list(row.evidence_sessions)


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
