"""The rows of a run as the question explorer of the page wants them: an index, and parts that are opened on demand."""

import base64
import gzip
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from memdock_evaluator.report.details import Details, Texts, characters_of
from memdock_evaluator.report.language import language_name
from memdock_evaluator.results.rows import Outcome, Row
from memdock_evaluator.summary.axes import in_order, slice_name, title, values_in_order
from memdock_evaluator.summary.figures import score
from memdock_evaluator.summary.ranking import display_name
from memdock_evaluator.words.language import Words
from memdock_evaluator.words.sentence import said

RESULTS = (
    said("right"),
    said("wrong"),
    said("unscored"),
    said("refused"),
    said("infrastructure error"),
    said("system error"),
)
"""What can have become of a question, in the order of the page's legend."""


def result(row: Row) -> str:
    """One of `RESULTS`."""
    if row.outcome is not Outcome.ANSWERED:
        return row.outcome.value.replace("_", " ")
    value = score(row)
    return "unscored" if value is None else "right" if value else "wrong"


def names(rows: Sequence[Row], systems: Sequence[str], words: Words) -> dict[str, Any]:
    """What the rows can be filtered by, in the order of the page and with its names in its language."""
    found = {result(row) for row in rows}
    present = {row.system for row in rows}
    return {
        "axes": _axes(rows, words),
        "results": [(name, words.word(name)) for name in RESULTS if name in found],
        "languages": [(code, language_name(code, words)) for code in sorted({row.language for row in rows})],
        "systems": [(name, display_name(name)) for name in systems if name in present],
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Explorer:
    """All rows, packed, the same for a page in any language.

    `index`: what the list and the filters need: `texts`, the questions of each dialogue, and a row a system and
    question. `parts`: what an opened row shows, one a dialogue and language, so that a page of a large run opens at
    once and unpacks a dialogue when one of its rows is opened.
    """

    index: str
    parts: tuple[str, ...]


def explorer_of(rows: Sequence[Row], systems: Sequence[str], judges: Mapping[str, str]) -> Explorer:
    """Packs the rows: those of `systems`, which names them all, in that order, and as they are inside a system.

    `judges`: language -> the judge whose verdict counts, where it has a name.
    """
    places = {system: place for place, system in enumerate(systems)}
    in_order = sorted(rows, key=lambda row: places[row.system])
    of_part: dict[tuple[str, str], list[int]] = {}
    for place, row in enumerate(in_order):
        of_part.setdefault((row.language, row.dialogue_id), []).append(place)
    texts = Texts()
    index = _index(in_order, list(of_part), texts)
    characters = characters_of(rows)
    parts = []
    start = len(texts)
    for members in of_part.values():
        own = Texts(start=start)
        details = Details(texts=own, judges=judges, characters=characters)
        parts.append(packed(details.of([(place, in_order[place]) for place in members])))
        start += len(own)
    return Explorer(index=packed(index), parts=tuple(parts))


def packed(data: Any) -> str:
    """JSON in gzip in base64: a tenth of its size, and no character that could end a script element.

    The same bytes for the same data wherever zlib is the same.
    """
    return base64.b64encode(gzip.compress(orjson.dumps(data), mtime=0)).decode()


def _index(rows: Sequence[Row], parts: Sequence[tuple[str, str]], texts: Texts) -> dict[str, Any]:
    number = {part: place for place, part in enumerate(parts)}
    questions: dict[bytes, int] = {}
    entries = []
    for row in rows:
        question = {
            "language": row.language,
            "dialogue": row.dialogue_id,
            "question": row.question_id,
            "axes": dict(row.axes),
            "text": texts.place(row.question),
            "references": [texts.place(reference) for reference in row.references],
            "part": number[row.language, row.dialogue_id],
        }
        place = questions.setdefault(orjson.dumps(question), len(questions))
        answer = None if row.answer is None else texts.place(row.answer)
        entries.append([row.system, place, row.repeat, result(row), answer, row.ingest, row.judging])
    return {"questions": [orjson.loads(each) for each in questions], "rows": entries, "texts": texts.all}


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
