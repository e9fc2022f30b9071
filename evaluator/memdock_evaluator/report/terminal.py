"""The table of all systems on a terminal."""

from typing import Any

import orjson
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from memdock_evaluator.results.folder import Folder
from memdock_evaluator.summary.ranking import display_name
from memdock_evaluator.terminal import print_table

_SAID_ELSEWHERE = ("system", "questions", "coverage", "accuracy")


def print_overview(folder: Folder, console: Console) -> None:
    """Prints what `write_tables` has written there, where it tells more than the summary: leaks, what is left after
    Forget, money inside. Raises `FolderError`.
    """
    # Here, since numpy takes a while to load and a command line that is refused should not wait for it.
    from memdock_evaluator.tables.overview import OVERVIEW
    from memdock_evaluator.tables.writing import TABLES

    found = orjson.loads(folder.read(f"{TABLES}/{OVERVIEW}.json") or b'{"rows": []}')
    columns = found["columns"] if any(_tells(row) for row in found["rows"]) else []
    if not columns:
        return
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, title_justify="left")
    for place, name in enumerate(columns):
        table.add_column(_heading(name), justify="right" if place else "left", no_wrap=True)
    for row in found["rows"]:
        table.add_row(escape(display_name(row["system"])), *(_cell(row[name]) for name in columns[1:]))
    print_table(table, console)


def _tells(row: dict[str, Any]) -> bool:
    measured = [name for name, value in row.items() if value is not None and not name.startswith(_SAID_ELSEWHERE)]
    return any(not name.startswith("tokens") for name in measured)


def _heading(name: str) -> str:
    """Two lines, so that figures stand close."""
    first, _, rest = name.partition(" ")
    return f"{first}\n{rest}"


def _cell(value: Any) -> str:
    return "–" if value is None else f"{value:.1f}" if isinstance(value, float) else str(value)
