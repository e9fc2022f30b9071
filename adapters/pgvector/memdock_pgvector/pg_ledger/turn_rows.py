"""What the ledger does with turns, each function inside a transaction of its caller."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from psycopg import AsyncConnection
from psycopg.types.json import Jsonb

from memdock.adapter.unreachable import unreachable
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

_RECORD = "turn_id, session_id, state, memory_ids, error"


async def lock_space(connection: AsyncConnection, space: str) -> None:
    """One admission or start of an erasure at a time in a space, so that places are taken in the order of commits."""
    await connection.execute(
        "SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ' ' || %s, 0))", [space]
    )


async def admit(connection: AsyncConnection, key: bytes, space: str, turns: Sequence[Turn]) -> Admission:
    """Accepts all turns or none, as `Ledger.admit` says."""
    contents = [pack_content(turn) for turn in turns]
    digests = [content_digest(key, content) for content in contents]
    async with connection.pipeline():
        await lock_space(connection, space)
        cursor = await connection.execute(
            f"SELECT digest, {_RECORD} FROM turn WHERE space = %s AND turn_id = ANY(%s)",  # noqa: S608 - columns
            [space, [turn.turn_id for turn in turns]],
        )
        held = {row[1]: (row[0], _record(row[1:])) for row in await cursor.fetchall()}
    results, conflicts, fresh = [], [], []
    for place, turn in enumerate(turns):
        digest, record = held.get(turn.turn_id, (None, None))
        if record is None:
            fresh.append(place)
            results.append(TurnResult(turn_id=turn.turn_id, state=TurnState.PENDING))
        elif digest != digests[place]:
            conflicts.append(place)
        elif record.state is TurnState.FAILED:
            fresh.append(place)
            results.append(TurnResult(turn_id=turn.turn_id, state=TurnState.PENDING, duplicate=True))
        else:
            results.append(
                TurnResult(turn_id=turn.turn_id, state=record.state, duplicate=True, memory_ids=record.memory_ids)
            )
    if conflicts:
        return Admission(conflicts=tuple(conflicts))
    if fresh:
        await _insert(
            connection,
            space,
            [(turns[place], digests[place], contents[place], turns[place].turn_id in held) for place in fresh],
        )
    return Admission(results=tuple(results))


async def _insert(connection: AsyncConnection, space: str, fresh: Sequence[tuple[Turn, bytes, bytes, bool]]) -> None:
    retried = [turn.turn_id for turn, _, _, was_held in fresh if was_held]
    if retried:
        await connection.execute("DELETE FROM turn WHERE space = %s AND turn_id = ANY(%s)", [space, retried])
    await connection.execute(
        "INSERT INTO turn (space, turn_id, session_id, digest, content, retried)"
        " SELECT %s, turn_id, session_id, digest, content, retried"
        " FROM unnest(%s::text[], %s::text[], %s::bytea[], %s::bytea[], %s::bool[])"
        " WITH ORDINALITY AS fresh (turn_id, session_id, digest, content, retried, place) ORDER BY place",
        [
            space,
            [turn.turn_id for turn, *_ in fresh],
            [turn.session_id for turn, *_ in fresh],
            [digest for _, digest, _, _ in fresh],
            [content for _, _, content, _ in fresh],
            [was_held for *_, was_held in fresh],
        ],
    )


async def pending(connection: AsyncConnection, space: str, upto: int | None, limit: int) -> list[PendingTurn]:
    """The oldest PENDING turns, in order."""
    cursor = await connection.execute(
        "SELECT seq, turn_id, content, retried FROM turn WHERE space = %s AND state = 'PENDING'"
        " AND (%s::bigint IS NULL OR seq <= %s) ORDER BY seq LIMIT %s",
        [space, upto, upto, limit],
    )
    return [
        PendingTurn(seq=seq, turn=unpack_content(turn_id, content), retried=retried)
        for seq, turn_id, content, retried in await cursor.fetchall()
    ]


async def last_pending(connection: AsyncConnection, space: str) -> int:
    """The place of the newest PENDING turn, or 0."""
    cursor = await connection.execute(
        "SELECT coalesce(max(seq), 0) FROM turn WHERE space = %s AND state = 'PENDING'", [space]
    )
    row = await cursor.fetchone()
    return int(row[0]) if row else 0


async def lock_settled(connection: AsyncConnection, space: str, settled: Sequence[Settled]) -> None:
    """Locks the turns to be settled; raises `UnavailableError` where another process has settled one already.

    Only Forget and Reset may have come in between, and what they took is erased from the system afterwards. So a second
    owner, which a broken network can make for a moment, stores nothing twice.
    """
    cursor = await connection.execute(
        "SELECT state FROM turn WHERE space = %s AND seq = ANY(%s) ORDER BY seq FOR UPDATE",
        [space, [row.seq for row in settled]],
    )
    if any(state not in ("PENDING", "FORGOTTEN") for (state,) in await cursor.fetchall()):
        raise unreachable("another process has worked on the same turns")


async def settle(connection: AsyncConnection, space: str, settled: Sequence[Settled]) -> None:
    """Records outcomes."""
    outcomes = [row.outcome for row in settled]
    await connection.execute(
        "UPDATE turn SET state = done.state, memory_ids = done.memory_ids, error = done.error,"
        " content = NULL, retried = false"
        " FROM unnest(%s::bigint[], %s::text[], %s::jsonb[], %s::jsonb[]) AS done (seq, state, memory_ids, error)"
        " WHERE turn.space = %s AND turn.seq = done.seq AND turn.state = 'PENDING'",
        [
            [row.seq for row in settled],
            [outcome.state.value for outcome in outcomes],
            [Jsonb(list(outcome.memory_ids)) for outcome in outcomes],
            [None if outcome.error is None else Jsonb(asdict(outcome.error)) for outcome in outcomes],
            space,
        ],
    )


async def counts(connection: AsyncConnection, space: str, upto: int | None) -> Counts:
    """PENDING and FAILED turns."""
    cursor = await connection.execute(
        "SELECT (SELECT count(*) FROM turn WHERE space = %(space)s AND state = 'PENDING'"
        " AND (%(upto)s::bigint IS NULL OR seq <= %(upto)s)),"
        " (SELECT count(*) FROM turn WHERE space = %(space)s AND state = 'FAILED')",
        {"space": space, "upto": upto},
    )
    row = await cursor.fetchone()
    assert row is not None
    return Counts(pending=row[0], failed=row[1])


async def failed(connection: AsyncConnection, space: str, limit: int) -> list[LedgerRow]:
    """FAILED turns, oldest first."""
    cursor = await connection.execute(
        f"SELECT seq, {_RECORD} FROM turn WHERE space = %s AND state = 'FAILED' ORDER BY seq LIMIT %s",  # noqa: S608
        [space, limit],
    )
    return _rows(await cursor.fetchall())


async def page(connection: AsyncConnection, space: str, after: int, limit: int) -> list[LedgerRow]:
    """Turns in order, after a place."""
    cursor = await connection.execute(
        f"SELECT seq, {_RECORD} FROM turn WHERE space = %s AND seq > %s ORDER BY seq LIMIT %s",  # noqa: S608
        [space, after, limit],
    )
    return _rows(await cursor.fetchall())


async def find(connection: AsyncConnection, space: str, turn_ids: Sequence[str]) -> Mapping[str, TurnRecord]:
    """Turns by id."""
    cursor = await connection.execute(
        f"SELECT {_RECORD} FROM turn WHERE space = %s AND turn_id = ANY(%s)",  # noqa: S608 - columns
        [space, list(turn_ids)],
    )
    return {record.turn_id: record for record in map(_record, await cursor.fetchall())}


def _rows(rows: Sequence[tuple[Any, ...]]) -> list[LedgerRow]:
    return [LedgerRow(seq=row[0], record=_record(row[1:])) for row in rows]


def _record(row: tuple[Any, ...]) -> TurnRecord:
    turn_id, session_id, state, memory_ids, error = row
    return TurnRecord(
        turn_id=turn_id,
        session_id=session_id,
        state=TurnState(state),
        memory_ids=tuple(memory_ids),
        error=None if error is None else TurnError(**error),
    )
