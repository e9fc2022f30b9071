"""What the ledger does with turns, each function inside a transaction of its caller."""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import asdict

from memdock.ledger import (
    Admission,
    Counts,
    LedgerRow,
    PendingTurn,
    Settled,
    content_digest,
    pack_content,
    unpack_content,
)
from memdock.types import Turn, TurnError, TurnRecord, TurnResult, TurnState

_PAST_ALL = 2**63 - 1


class ConflictError(Exception):
    """Turns whose ids stand for other content; raised so that the caller's savepoint is taken back."""

    def __init__(self, indexes: Sequence[int]) -> None:
        super().__init__("turn id conflict")
        self.indexes = tuple(indexes)


def admit(connection: sqlite3.Connection, key: bytes, space: str, turns: Sequence[Turn]) -> Admission:
    """Accepts all turns; raises `ConflictError` when it cannot."""
    results = [_admit_turn(connection, key, space, turn) for turn in turns]
    conflicts = [index for index, result in enumerate(results) if result is None]
    if conflicts:
        raise ConflictError(conflicts)
    return Admission(results=tuple(result for result in results if result is not None))


def _admit_turn(connection: sqlite3.Connection, key: bytes, space: str, turn: Turn) -> TurnResult | None:
    content = pack_content(turn)
    digest = content_digest(key, content)
    if _insert(connection, space, turn, digest, content, retried=False):
        return TurnResult(turn_id=turn.turn_id, state=TurnState.PENDING)
    row = connection.execute(
        "SELECT digest, turn_id, session_id, state, memory_ids, error FROM turns WHERE space = ? AND turn_id = ?",
        (space, turn.turn_id),
    ).fetchone()
    if row[0] != digest:
        return None
    held = _record(row[1:])
    if held.state is TurnState.FAILED:
        connection.execute("DELETE FROM turns WHERE space = ? AND turn_id = ?", (space, turn.turn_id))
        _insert(connection, space, turn, digest, content, retried=True)
        return TurnResult(turn_id=turn.turn_id, state=TurnState.PENDING, duplicate=True)
    return TurnResult(turn_id=turn.turn_id, state=held.state, duplicate=True, memory_ids=held.memory_ids)


def _insert(
    connection: sqlite3.Connection, space: str, turn: Turn, digest: bytes, content: bytes, *, retried: bool
) -> bool:
    cursor = connection.execute(
        "INSERT INTO turns (space, turn_id, session_id, digest, state, retried, content)"
        " VALUES (?, ?, ?, ?, 'PENDING', ?, ?) ON CONFLICT DO NOTHING",
        (space, turn.turn_id, turn.session_id, digest, retried, content),
    )
    return cursor.rowcount == 1


def pending(connection: sqlite3.Connection, space: str, upto: int | None, limit: int) -> list[PendingTurn]:
    """The oldest PENDING turns, in order."""
    rows = connection.execute(
        "SELECT seq, turn_id, content, started, retried FROM turns"
        " WHERE space = ? AND state = 'PENDING' AND seq <= ? ORDER BY seq LIMIT ?",
        (space, _PAST_ALL if upto is None else upto, limit),
    )
    return [
        PendingTurn(seq=seq, turn=unpack_content(turn_id, content), started=bool(started), retried=bool(retried))
        for seq, turn_id, content, started, retried in rows
    ]


def last_pending(connection: sqlite3.Connection, space: str) -> int:
    """The place of the newest PENDING turn, or 0."""
    row = connection.execute("SELECT max(seq) FROM turns WHERE space = ? AND state = 'PENDING'", (space,)).fetchone()
    return int(row[0] or 0)


def start(connection: sqlite3.Connection, space: str, seqs: Sequence[int]) -> None:
    """Marks PENDING turns as started."""
    connection.executemany(
        "UPDATE turns SET started = 1 WHERE seq = ? AND space = ? AND state = 'PENDING'",
        ((seq, space) for seq in seqs),
    )


def settle(connection: sqlite3.Connection, space: str, settled: Sequence[Settled]) -> None:
    """Records outcomes; what the system left unanswered is no longer started."""
    connection.executemany(
        "UPDATE turns SET state = ?, memory_ids = ?, error = ?, content = NULL, started = 0, retried = 0"
        " WHERE seq = ? AND space = ? AND state = 'PENDING'",
        (
            (
                row.outcome.state.value,
                json.dumps(row.outcome.memory_ids) if row.outcome.memory_ids else None,
                json.dumps(asdict(row.outcome.error)) if row.outcome.error else None,
                row.seq,
                space,
            )
            for row in settled
        ),
    )
    connection.execute("UPDATE turns SET started = 0 WHERE space = ? AND state = 'PENDING' AND started = 1", (space,))


def counts(connection: sqlite3.Connection, space: str, upto: int | None) -> Counts:
    """PENDING and FAILED turns."""
    row = connection.execute(
        "SELECT (SELECT count(*) FROM turns WHERE space = ?1 AND state = 'PENDING' AND seq <= ?2),"
        " (SELECT count(*) FROM turns WHERE space = ?1 AND state = 'FAILED')",
        (space, _PAST_ALL if upto is None else upto),
    ).fetchone()
    return Counts(pending=row[0], failed=row[1])


def failed(connection: sqlite3.Connection, space: str, limit: int) -> list[LedgerRow]:
    """FAILED turns, oldest first."""
    return _rows(
        connection.execute(
            "SELECT seq, turn_id, session_id, state, memory_ids, error FROM turns"
            " WHERE space = ? AND state = 'FAILED' ORDER BY seq LIMIT ?",
            (space, limit),
        )
    )


def page(connection: sqlite3.Connection, space: str, after: int, limit: int) -> list[LedgerRow]:
    """Turns in order, after a place."""
    return _rows(
        connection.execute(
            "SELECT seq, turn_id, session_id, state, memory_ids, error FROM turns"
            " WHERE space = ? AND seq > ? ORDER BY seq LIMIT ?",
            (space, after, limit),
        )
    )


def find(connection: sqlite3.Connection, space: str, turn_ids: Sequence[str]) -> dict[str, TurnRecord]:
    """Turns by id."""
    rows = connection.execute(
        "SELECT turn_id, session_id, state, memory_ids, error FROM turns"
        " WHERE space = ? AND turn_id IN (SELECT value FROM json_each(?))",
        (space, json.dumps(turn_ids)),
    )
    return {record.turn_id: record for record in map(_record, rows)}


def _rows(cursor: Iterable[tuple[int, str, str, str, str | None, str | None]]) -> list[LedgerRow]:
    return [LedgerRow(seq=seq, record=_record(tuple(record))) for seq, *record in cursor]


def _record(row: Sequence[str | None]) -> TurnRecord:
    turn_id, session_id, state, memory_ids, error = row
    return TurnRecord(
        turn_id=str(turn_id),
        session_id=str(session_id),
        state=TurnState(str(state)),
        memory_ids=tuple(json.loads(memory_ids)) if memory_ids else (),
        error=TurnError(**json.loads(error)) if error else None,
    )
