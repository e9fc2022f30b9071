"""A table as Markdown, CSV, JSON and LaTeX."""

import csv
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from types import MappingProxyType

import orjson

from memdock_evaluator.tables.shape import DIGITS, Cell, Table


def markdown(table: Table) -> str:
    """A heading, the table, the notes."""
    lines = [f"## {table.title}", "", _markdown_row(table.columns)]
    lines.append("|" + "|".join(" ---: " if right else " --- " for right in _is_number(table)) + "|")
    lines += [_markdown_row(map(shown, row)) for row in table.rows]
    if table.notes:
        lines += ["", *(f"- {_markdown_text(note)}" for note in table.notes)]
    return "\n".join(lines) + "\n"


def comma_separated(table: Table) -> str:
    """The columns, then the rows; nothing where something cannot be said. The notes are in the other forms."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows([_csv_cell(cell) for cell in row] for row in table.rows)
    return file.getvalue()


def json(table: Table) -> str:
    """The table as it is, each row an object by column."""
    whole = asdict(table) | {"rows": [dict(zip(table.columns, row, strict=True)) for row in table.rows]}
    return orjson.dumps(whole, option=orjson.OPT_INDENT_2).decode() + "\n"


def latex(table: Table) -> str:
    """A `tabular` for the package booktabs; the notes are comments before it."""
    kinds = "".join("r" if right else "l" for right in _is_number(table))
    return "\n".join(
        [
            f"% {table.title}",
            *(f"% {' '.join(note.split())}" for note in table.notes),
            f"\\begin{{tabular}}{{{kinds}}}",
            "\\toprule",
            _latex_row(table.columns),
            "\\midrule",
            *(_latex_row([shown(cell) for cell in row]) for row in table.rows),
            "\\bottomrule",
            "\\end{tabular}",
            "",
        ]
    )


FORMS: Mapping[str, Callable[[Table], str]] = MappingProxyType(
    {"md": markdown, "csv": comma_separated, "json": json, "tex": latex}
)
"""The ending of a file's name -> the form."""


def shown(cell: Cell) -> str:
    """A cell for people: figures with all their digits, "–" where something cannot be said."""
    if cell is None:
        return "–"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return f"{cell:.{DIGITS}f}" if isinstance(cell, float) else str(cell)


def _csv_cell(cell: Cell) -> str:
    text = "" if cell is None else shown(cell)
    # A spreadsheet would run a text that begins like a formula.
    return f"'{text}" if isinstance(cell, str) and text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def _is_number(table: Table) -> list[bool]:
    """By column: whether it holds numbers and no words."""
    return [
        bool(found) and all(not isinstance(cell, bool) and bool(_NUMBER.fullmatch(str(cell))) for cell in found)
        for found in (
            [row[place] for row in table.rows if row[place] is not None] for place in range(len(table.columns))
        )
    ]


_NUMBER = re.compile(r"<?-?\d+(\.\d+)?")
"""Numbers of more digits than others come as text."""


def _markdown_row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(map(_markdown_text, cells)) + " |"


def _markdown_text(text: str) -> str:
    """A text that stays in its cell and is no mark-up."""
    plain = " ".join(text.split())
    for character in "\\`*_[]<>|":
        plain = plain.replace(character, f"\\{character}")
    return plain


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(map(_latex_text, cells)) + r" \\"


_LATEX = {
    "\\": r"\textbackslash{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "−": "$-$",
    "×": r"$\times$",
    "–": "--",
}


def _latex_text(text: str) -> str:
    """A text whose characters all stand for themselves; a negative number gets its sign."""
    plain = " ".join(text.split())
    if plain[:1] == "-" and plain[1:2].isdigit():
        return f"$-${plain[1:]}"
    return "".join(_LATEX.get(character, character) for character in plain)
