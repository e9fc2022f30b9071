"""What each space has cost, inside a transaction of the caller."""

import sqlite3
from collections.abc import Sequence

from memdock.types import ModelUsage
from memdock.usage import MAX_COUNT


def add(connection: sqlite3.Connection, space: str, usage: Sequence[ModelUsage]) -> None:
    """Adds to the space's total, unless a Reset of the space is open."""
    if not usage or _resetting(connection, space):
        return
    connection.executemany(
        "INSERT INTO usage VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"
        " ON CONFLICT DO UPDATE SET calls = min(calls + ?4, ?8), input_tokens = min(input_tokens + ?5, ?8),"
        " output_tokens = min(output_tokens + ?6, ?8), estimated = max(estimated, ?7)",
        (
            (
                space,
                one.model,
                one.purpose,
                one.calls,
                one.input_tokens,
                one.output_tokens,
                one.estimated,
                MAX_COUNT,
            )
            for one in usage
        ),
    )


def total(connection: sqlite3.Connection, space: str) -> list[ModelUsage]:
    """The space's total by model and purpose."""
    rows = connection.execute(
        "SELECT model, purpose, calls, input_tokens, output_tokens, estimated FROM usage"
        " WHERE space = ? ORDER BY model, purpose",
        (space,),
    )
    return [
        ModelUsage(
            model=model,
            purpose=purpose,
            calls=calls,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            estimated=bool(estimated),
        )
        for model, purpose, calls, input_tokens, output_tokens, estimated in rows
    ]


def _resetting(connection: sqlite3.Connection, space: str) -> bool:
    found = connection.execute(
        "SELECT 1 FROM erasures WHERE space = ? AND intent IS NOT NULL AND kind = 'RESET'", (space,)
    ).fetchone()
    return found is not None
