"""What a command prints: aligned columns for people, JSON for programs."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import click
import orjson

from memdock.types import ModelUsage, Residue, TurnRecord, TurnResult


def print_json(value: Any) -> None:
    """A dataclass as one line of JSON: names as in Python, states as words, times as RFC 3339."""
    click.echo(orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode())


def print_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Columns as wide as their widest cell; nothing at all without rows."""
    cells = [[_cell(value) for value in row] for row in rows]
    if not cells:
        return
    widths = [max(map(len, column)) for column in zip(header, *cells, strict=True)]
    for row in (header, *cells):
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def print_turns(turns: Iterable[TurnResult | TurnRecord]) -> None:
    """Turns with their state, and why one failed."""
    print_table(
        ("TURN", "STATE", "MEMORIES", "ERROR"),
        (
            (
                turn.turn_id,
                turn.state,
                ", ".join(turn.memory_ids),
                f"{turn.error.reason}: {turn.error.message}" if turn.error else "",
            )
            for turn in turns
        ),
    )


def print_residual(residual: Iterable[Residue]) -> None:
    """What is left, by component."""
    print_table(
        ("COMPONENT", "LEFT", "VERIFIED", "NOTE"),
        ((one.component, one.items, one.verified, one.note) for one in residual),
    )


def print_usage(usage: Iterable[ModelUsage]) -> None:
    """What it cost."""
    print_table(
        ("MODEL", "PURPOSE", "CALLS", "INPUT", "OUTPUT", "ESTIMATED"),
        ((one.model, one.purpose, one.calls, one.input_tokens, one.output_tokens, one.estimated) for one in usage),
    )


def count(number: int, noun: str) -> str:
    """`1 turn`, `2 turns`."""
    return f"{number} {noun if number == 1 else noun.removesuffix('y') + 'ies' if noun.endswith('y') else noun + 's'}"


def _cell(value: object) -> str:
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, float):
        return f"{value:.4f}"
    return str(value)
