"""The sheet that people label: drawn from a run, written for a spreadsheet program, read back row by row."""

import csv
import hashlib
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from memdock_evaluator.results.rows import Outcome, Row

COLUMNS = ("item", "language", "question", "reference", "answer", "label", "note")
_BOM = "\ufeff"
_FORMULA = re.compile(r"^[=+\-@\t\r\n]")
_LABEL = re.compile(r"([0-3])([.,]0+)?")
_DELIMITERS = (",", ";", "\t")
_SHOWN_ERRORS = 10


class SheetError(ValueError):
    """A sheet that cannot be used; the message names each row and column that is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """What one person labelled: item -> label, of `rows` items in all."""

    rater: str
    labels: Mapping[str, int]
    rows: int


def items(rows: Iterable[Row], run_id: str) -> dict[str, Row]:
    """The rows that people can label, by a name that tells nothing of the system: those with an answer and a verdict.

    The name changes with the answer, so that a label never stands for another one.
    """
    return {_name(row, run_id): row for row in rows if row.outcome is Outcome.ANSWERED and row.verdict is not None}


def sample(of_run: Mapping[str, Row], *, n: int, seed: int) -> list[str]:
    """The names of `n` items of each system and language (all where there are fewer), drawn alike, in mixed order."""
    strata: dict[tuple[str, str], list[str]] = {}
    for name, row in of_run.items():
        strata.setdefault((row.system, row.language), []).append(name)
    drawn: list[str] = []
    for names in strata.values():
        drawn += sorted(names, key=lambda name: _lot("drawn", seed, name))[:n]
    return sorted(drawn, key=lambda name: _lot("order", seed, name))


def written(of_run: Mapping[str, Row], names: Sequence[str], *, delimiter: str) -> bytes:
    """CSV with a mark of UTF-8, which spreadsheet programs go by; no cell begins like a formula."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter)
    writer.writerow(COLUMNS)
    for name in names:
        row = of_run[name]
        cells = (name, row.language, row.question, "\n".join(row.references), row.answer or "", "", "")
        writer.writerow([_plain(cell) for cell in cells])
    return (_BOM + text.getvalue()).encode()


def read_sheet(path: Path, of_run: Mapping[str, Row]) -> Sheet:
    """Reads the columns `item` and `label`; an empty label is none. Raises `SheetError`."""
    header, *lines = _cells(path)
    header = [cell.strip() for cell in header]
    for column in ("item", "label"):
        if column not in header:
            raise SheetError(f"{path}, row 1: there is no column {column}: it has {', '.join(header)}")
    item_at, label_at = header.index("item"), header.index("label")
    labels: dict[str, int] = {}
    seen: dict[str, int] = {}
    errors = []
    for number, cells in enumerate(lines, start=2):
        if not any(cell.strip() for cell in cells):
            continue
        padded = [*cells, *[""] * (len(header) - len(cells))]
        item, label = padded[item_at].strip(), padded[label_at].strip()
        if error := _wrong(item, label, of_run, seen):
            errors.append(f"{path}, row {number}, {error}")
            continue
        seen[item] = number
        if label:
            labels[item] = int(label[0])
    if errors:
        more = f"\nand {len(errors) - _SHOWN_ERRORS} more" if len(errors) > _SHOWN_ERRORS else ""
        raise SheetError("\n".join(errors[:_SHOWN_ERRORS]) + more)
    return Sheet(rater=path.stem, labels=labels, rows=len(seen))


def _name(row: Row, run_id: str) -> str:
    """A letter first, so that no spreadsheet program takes it for a number."""
    return "q" + hashlib.sha256(orjson.dumps([run_id, *row.key, row.answer])).hexdigest()[:15]


def _lot(purpose: str, seed: int, name: str) -> bytes:
    """Random, and the same in every version of Python."""
    return hashlib.sha256(f"{purpose} {seed} {name}".encode()).digest()


def _plain(cell: str) -> str:
    """Behind an apostrophe a spreadsheet program runs nothing."""
    return f"'{cell}" if _FORMULA.match(cell) else cell


def _wrong(item: str, label: str, of_run: Mapping[str, Row], seen: Mapping[str, int]) -> str:
    if item not in of_run:
        return f"column item: {item!r} is no item of this run, or was answered anew since the export"
    if item in seen:
        return f"column item: {item!r} stands in row {seen[item]} already"
    if label and not _LABEL.fullmatch(label):
        return f"column label: {label!r} is none of 0, 1, 2, 3; leave it empty to give none"
    return ""


def _cells(path: Path) -> list[list[str]]:
    """The rows of a sheet, whichever of its delimiters a spreadsheet program has saved it with."""
    text = _text(path)
    heading = text.partition("\n")[0]
    delimiter = max(_DELIMITERS, key=heading.count)
    if delimiter not in heading:
        raise SheetError(f"{path}, row 1: there are no columns: save the sheet as CSV")
    try:
        return list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    except csv.Error as error:
        raise SheetError(f"{path}: is no CSV ({error})") from error


def _text(path: Path) -> str:
    try:
        content = path.read_bytes()
        return content.decode("utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except OSError as error:
        raise SheetError(f"{path}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise SheetError(f"{path}: is not UTF-8: save it as CSV in UTF-8") from error
