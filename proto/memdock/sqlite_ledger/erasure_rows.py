"""What the ledger does for Forget and Reset, each function inside a transaction of its caller."""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import asdict

from memdock.ledger import Begun, ErasureKind, Intent, Recorded, Resolution
from memdock.types import Selection, TurnResult

_BY_SESSION = """
SELECT session_id, turn_id, state = 'FORGOTTEN' FROM turns
WHERE space = ? AND session_id IN (SELECT value FROM json_each(?)) ORDER BY seq
"""
_BY_TURN = """
SELECT turn_id, turn_id, state = 'FORGOTTEN' FROM turns
WHERE space = ? AND turn_id IN (SELECT value FROM json_each(?)) ORDER BY seq
"""


def resolve(connection: sqlite3.Connection, space: str, selection: Selection) -> Resolution:
    """What a selection means now."""
    wanted = selection.session_ids or selection.turn_ids
    rows = connection.execute(
        _BY_SESSION if selection.session_ids else _BY_TURN, (space, json.dumps(wanted))
    ).fetchall()
    held = [(name, turn_id) for name, turn_id, forgotten in rows if not forgotten]
    held_names = {name for name, _ in held}
    return Resolution(
        turn_ids=tuple(turn_id for _, turn_id, _ in rows),
        held_turn_ids=tuple(turn_id for _, turn_id in held),
        not_found=tuple(name for name in dict.fromkeys(wanted) if name not in held_names),
    )


def begin(
    connection: sqlite3.Connection,
    space: str,
    kind: ErasureKind,
    selection: Selection,
    request_id: str,
    fingerprint: bytes,
) -> Begun:
    """Finds the erasure that the request id names, or begins one."""
    known = (
        request_id
        and connection.execute(
            "SELECT fingerprint, answer, erasure_id, space, kind, intent FROM erasures"
            " WHERE space = ? AND request_id = ?",
            (space, request_id),
        ).fetchone()
    )
    if known:
        if known[0] != fingerprint or known[4] != kind.value:
            return Begun(mismatch=True)
        return Begun(answer=known[1]) if known[1] is not None else Begun(intent=_intent(known[2:]))
    (last_seq,) = connection.execute(
        "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'turns'"
    ).fetchone()
    resolution, turn_count, memory_count = Resolution(), 0, 0
    if kind is ErasureKind.RESET:
        turn_count, memory_count = _clear(connection, space)
    else:
        resolution = resolve(connection, space, selection)
        forget_turns(connection, space, resolution.held_turn_ids, upto=last_seq)
    facts = {
        "selection": asdict(selection),
        "resolution": asdict(resolution),
        "last_seq": last_seq,
        "erased_turns": turn_count,
        "erased_memories": memory_count,
    }
    row = connection.execute(
        "INSERT INTO erasures (space, kind, request_id, fingerprint, intent) VALUES (?, ?, ?, ?, ?)"
        " RETURNING erasure_id, space, kind, intent",
        (space, kind.value, request_id, fingerprint, json.dumps(facts)),
    ).fetchone()
    return Begun(intent=_intent(row))


def _clear(connection: sqlite3.Connection, space: str) -> tuple[int, int]:
    (turn_count,) = connection.execute(
        "SELECT count(*) FROM turns WHERE space = ? AND state != 'FORGOTTEN'", (space,)
    ).fetchone()
    (memory_count,) = connection.execute(
        "SELECT count(DISTINCT memory.value) FROM turns, json_each(turns.memory_ids) AS memory WHERE turns.space = ?",
        (space,),
    ).fetchone()
    connection.execute("DELETE FROM turns WHERE space = ?", (space,))
    connection.execute("DELETE FROM usage WHERE space = ?", (space,))
    connection.execute("DELETE FROM erasures WHERE space = ? AND kind = 'FORGET'", (space,))
    return turn_count, memory_count


def forget_turns(connection: sqlite3.Connection, space: str, turn_ids: Sequence[str], *, upto: int) -> tuple[str, ...]:
    """Makes turns FORGOTTEN: what stays is the id, the session, the digest and the place. Answers those it took."""
    rows = connection.execute(
        "UPDATE turns SET state = 'FORGOTTEN', content = NULL, error = NULL, memory_ids = NULL,"
        " started = 0, retried = 0 WHERE space = ? AND turn_id IN (SELECT value FROM json_each(?))"
        " AND seq <= ? AND state != 'FORGOTTEN' RETURNING seq, turn_id",
        (space, json.dumps(turn_ids), upto),
    ).fetchall()
    return tuple(turn_id for _, turn_id in sorted(rows))


def recorded(connection: sqlite3.Connection, space: str, memory_ids: Sequence[str]) -> Recorded:
    """Which of these memories turns are recorded with, and these turns."""
    rows = connection.execute(
        "SELECT turn_id, memory.value FROM turns, json_each(turns.memory_ids) AS memory"
        " WHERE space = ? AND memory.value IN (SELECT value FROM json_each(?)) ORDER BY seq",
        (space, json.dumps(memory_ids)),
    ).fetchall()
    held = {memory_id for _, memory_id in rows}
    return Recorded(
        memory_ids=tuple(each for each in dict.fromkeys(memory_ids) if each in held),
        turn_ids=tuple(dict.fromkeys(turn_id for turn_id, _ in rows)),
    )


def forget_memories(connection: sqlite3.Connection, space: str, memory_ids: Sequence[str]) -> None:
    """Takes memory ids out of all turns of a space."""
    gone = set(memory_ids)
    rows = connection.execute(
        "SELECT seq, memory_ids FROM turns WHERE space = ? AND memory_ids IS NOT NULL AND EXISTS"
        " (SELECT 1 FROM json_each(memory_ids) WHERE value IN (SELECT value FROM json_each(?)))",
        (space, json.dumps(memory_ids)),
    ).fetchall()
    for seq, held in rows:
        left = [memory_id for memory_id in json.loads(held) if memory_id not in gone]
        connection.execute("UPDATE turns SET memory_ids = ? WHERE seq = ?", (json.dumps(left) if left else None, seq))


def change_turns(connection: sqlite3.Connection, intent: Intent, results: Sequence[TurnResult]) -> None:
    """Records what became of turns that stay."""
    connection.executemany(
        "UPDATE turns SET state = ?, memory_ids = ?, error = ?"
        " WHERE space = ? AND turn_id = ? AND seq <= ? AND state NOT IN ('PENDING', 'FORGOTTEN')",
        (
            (
                result.state.value,
                json.dumps(result.memory_ids) if result.memory_ids else None,
                json.dumps(asdict(result.error)) if result.error else None,
                intent.space,
                result.turn_id,
                intent.last_seq,
            )
            for result in results
        ),
    )


def count_contents(connection: sqlite3.Connection, intent: Intent, turn_ids: Iterable[str]) -> int:
    """Contents that the erasure took and that are still there."""
    if intent.kind is ErasureKind.RESET:
        row = connection.execute(
            "SELECT count(content) FROM turns WHERE space = ? AND seq <= ?", (intent.space, intent.last_seq)
        ).fetchone()
    else:
        row = connection.execute(
            "SELECT count(content) FROM turns"
            " WHERE space = ? AND turn_id IN (SELECT value FROM json_each(?)) AND seq <= ?",
            (intent.space, json.dumps([*intent.resolution.turn_ids, *turn_ids]), intent.last_seq),
        ).fetchone()
    return int(row[0])


def open_of(connection: sqlite3.Connection, space: str) -> list[Intent]:
    """Unfinished erasures, oldest first."""
    rows = connection.execute(
        "SELECT erasure_id, space, kind, intent FROM erasures"
        " WHERE space = ? AND intent IS NOT NULL ORDER BY erasure_id",
        (space,),
    )
    return [_intent(row) for row in rows]


def foresee(connection: sqlite3.Connection, intent: Intent, turn_ids: Sequence[str], memory_ids: Sequence[str]) -> None:
    """Notes what the system is about to take."""
    connection.execute(
        "UPDATE erasures SET intent = json_set(intent, '$.foreseen_turns', json(?), '$.foreseen_memories', json(?))"
        " WHERE erasure_id = ? AND intent IS NOT NULL",
        (json.dumps(turn_ids), json.dumps(memory_ids), intent.erasure_id),
    )


def finish(connection: sqlite3.Connection, intent: Intent, answer: bytes) -> None:
    """Keeps the answer of an erasure that has a request id, and nothing of any other."""
    connection.execute("DELETE FROM erasures WHERE erasure_id = ? AND request_id = ''", (intent.erasure_id,))
    connection.execute(
        "UPDATE erasures SET intent = NULL, answer = ? WHERE erasure_id = ?", (answer, intent.erasure_id)
    )


def abandon(connection: sqlite3.Connection, intent: Intent) -> None:
    """Drops an erasure."""
    connection.execute("DELETE FROM erasures WHERE erasure_id = ?", (intent.erasure_id,))


def _intent(row: tuple[int, str, str, str]) -> Intent:
    erasure_id, space, kind, text = row
    facts = json.loads(text)
    selection = Selection(**{name: tuple(ids) for name, ids in facts.pop("selection").items()})
    resolution = Resolution(**{name: tuple(ids) for name, ids in facts.pop("resolution").items()})
    return Intent(
        erasure_id=erasure_id,
        space=space,
        kind=ErasureKind(kind),
        selection=selection,
        resolution=resolution,
        foreseen_turns=tuple(facts.pop("foreseen_turns", ())),
        foreseen_memories=tuple(facts.pop("foreseen_memories", ())),
        **facts,
    )
