"""What the ledger does for Forget and Reset, each function inside a transaction of its caller."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from psycopg import AsyncConnection
from psycopg.types.json import Jsonb

from memdock.ledger import Begun, ErasureKind, Intent, Recorded, Resolution
from memdock.types import Selection, TurnResult


async def resolve(connection: AsyncConnection, space: str, selection: Selection) -> Resolution:
    """What a selection means now."""
    column = "session_id" if selection.session_ids else "turn_id"
    wanted = selection.session_ids or selection.turn_ids
    cursor = await connection.execute(
        f"SELECT {column}, turn_id, state = 'FORGOTTEN' FROM turn"  # noqa: S608 - one of two columns
        f" WHERE space = %s AND {column} = ANY(%s) ORDER BY seq",
        [space, list(wanted)],
    )
    rows = await cursor.fetchall()
    held = [(name, turn_id) for name, turn_id, forgotten in rows if not forgotten]
    held_names = {name for name, _ in held}
    return Resolution(
        turn_ids=tuple(turn_id for _, turn_id, _ in rows),
        held_turn_ids=tuple(turn_id for _, turn_id in held),
        not_found=tuple(name for name in dict.fromkeys(wanted) if name not in held_names),
    )


async def begin(
    connection: AsyncConnection,
    space: str,
    kind: ErasureKind,
    selection: Selection,
    request_id: str,
    fingerprint: bytes,
) -> Begun:
    """Finds the erasure that the request id names, or begins one."""
    known = await _known(connection, space, kind, request_id, fingerprint) if request_id else None
    if known is not None:
        return known
    last_seq = await _last_seq(connection)
    resolution, erased = Resolution(), (0, 0)
    if kind is ErasureKind.RESET:
        erased = await _clear(connection, space)
    else:
        resolution = await resolve(connection, space, selection)
        await forget_turns(connection, space, resolution.held_turn_ids, upto=last_seq)
    facts = {
        "selection": asdict(selection),
        "resolution": asdict(resolution),
        "last_seq": last_seq,
        "erased_turns": erased[0],
        "erased_memories": erased[1],
    }
    cursor = await connection.execute(
        "INSERT INTO erasure (space, kind, request_id, fingerprint, intent) VALUES (%s, %s, %s, %s, %s)"
        " RETURNING id, space, kind, intent",
        [space, kind.value, request_id, fingerprint, Jsonb(facts)],
    )
    row = await cursor.fetchone()
    assert row is not None
    return Begun(intent=_intent(*row))


async def _known(
    connection: AsyncConnection, space: str, kind: ErasureKind, request_id: str, fingerprint: bytes
) -> Begun | None:
    cursor = await connection.execute(
        "SELECT kind, fingerprint, answer, id, intent FROM erasure WHERE space = %s AND request_id = %s",
        [space, request_id],
    )
    row = await cursor.fetchone()
    if row is None:
        return None
    if (row[0], row[1]) != (kind.value, fingerprint):
        return Begun(mismatch=True)
    return Begun(answer=row[2]) if row[2] is not None else Begun(intent=_intent(row[3], space, kind, row[4]))


async def _last_seq(connection: AsyncConnection) -> int:
    cursor = await connection.execute(
        "SELECT coalesce(pg_sequence_last_value(pg_get_serial_sequence('turn', 'seq')::regclass), 0)"
    )
    row = await cursor.fetchone()
    return int(row[0]) if row else 0


async def _clear(connection: AsyncConnection, space: str) -> tuple[int, int]:
    """Takes all of a space; answers how many turns, and how many memories known to have stood on them."""
    cursor = await connection.execute(
        """
        WITH gone AS (DELETE FROM turn WHERE space = %(space)s RETURNING state, memory_ids),
            spent AS (DELETE FROM cost WHERE space = %(space)s),
            forgets AS (DELETE FROM erasure WHERE space = %(space)s AND kind = 'FORGET')
        SELECT (SELECT count(*) FROM gone WHERE state <> 'FORGOTTEN'),
            (SELECT count(DISTINCT memory) FROM gone, jsonb_array_elements_text(memory_ids) AS memory)
        """,
        {"space": space},
    )
    row = await cursor.fetchone()
    assert row is not None
    return row[0], row[1]


async def forget_turns(
    connection: AsyncConnection, space: str, turn_ids: Sequence[str], *, upto: int
) -> tuple[str, ...]:
    """Makes turns FORGOTTEN: what stays is the id, the session, the digest and the place. Answers those it took."""
    cursor = await connection.execute(
        "UPDATE turn SET state = 'FORGOTTEN', content = NULL, error = NULL, memory_ids = '[]', retried = false"
        " WHERE space = %s AND turn_id = ANY(%s) AND seq <= %s AND state <> 'FORGOTTEN' RETURNING seq, turn_id",
        [space, list(turn_ids), upto],
    )
    return tuple(turn_id for _, turn_id in sorted(await cursor.fetchall()))


async def recorded(connection: AsyncConnection, space: str, memory_ids: Sequence[str]) -> Recorded:
    """Which of these memories turns are recorded with, and these turns."""
    cursor = await connection.execute(
        "SELECT turn_id, memory_id FROM turn, jsonb_array_elements_text(memory_ids) AS memory_id"
        " WHERE space = %(space)s AND memory_ids ?| %(ids)s AND memory_id = ANY(%(ids)s) ORDER BY seq",
        {"space": space, "ids": list(memory_ids)},
    )
    rows = await cursor.fetchall()
    held = {memory_id for _, memory_id in rows}
    return Recorded(
        memory_ids=tuple(each for each in dict.fromkeys(memory_ids) if each in held),
        turn_ids=tuple(dict.fromkeys(turn_id for turn_id, _ in rows)),
    )


async def forget_memories(connection: AsyncConnection, space: str, memory_ids: Sequence[str]) -> None:
    """Takes memory ids out of all turns of a space."""
    await connection.execute(
        "UPDATE turn SET memory_ids = memory_ids - %(ids)s::text[] WHERE space = %(space)s AND memory_ids ?| %(ids)s",
        {"space": space, "ids": list(memory_ids)},
    )


async def change_turns(connection: AsyncConnection, intent: Intent, results: Sequence[TurnResult]) -> None:
    """Records what became of turns that stay."""
    if not results:
        return
    await connection.cursor().executemany(
        "UPDATE turn SET state = %s, memory_ids = %s, error = %s"
        " WHERE space = %s AND turn_id = %s AND seq <= %s AND state NOT IN ('PENDING', 'FORGOTTEN')",
        [
            (
                result.state.value,
                Jsonb(result.memory_ids),
                Jsonb(asdict(result.error)) if result.error else None,
                intent.space,
                result.turn_id,
                intent.last_seq,
            )
            for result in results
        ],
    )


async def count_contents(connection: AsyncConnection, intent: Intent, turn_ids: Iterable[str]) -> int:
    """Contents that the erasure took and that are still there."""
    turn_ids = [*intent.resolution.turn_ids, *turn_ids]
    cursor = await connection.execute(
        "SELECT count(content) FROM turn WHERE space = %s AND seq <= %s AND (%s OR turn_id = ANY(%s))",
        [intent.space, intent.last_seq, intent.kind is ErasureKind.RESET, turn_ids],
    )
    row = await cursor.fetchone()
    return int(row[0]) if row else 0


async def open_of(connection: AsyncConnection, space: str) -> list[Intent]:
    """Unfinished erasures, oldest first."""
    cursor = await connection.execute(
        "SELECT id, space, kind, intent FROM erasure WHERE space = %s AND intent IS NOT NULL ORDER BY id", [space]
    )
    return [_intent(*row) for row in await cursor.fetchall()]


async def foresee(
    connection: AsyncConnection, intent: Intent, turn_ids: Sequence[str], memory_ids: Sequence[str]
) -> None:
    """Notes what the system is about to take."""
    seen = {"foreseen_turns": list(turn_ids), "foreseen_memories": list(memory_ids)}
    await connection.execute(
        "UPDATE erasure SET intent = intent || %s WHERE id = %s AND intent IS NOT NULL",
        [Jsonb(seen), intent.erasure_id],
    )


async def finish(connection: AsyncConnection, intent: Intent, answer: bytes) -> None:
    """Keeps the answer of an erasure that has a request id, and nothing of any other."""
    await connection.execute("DELETE FROM erasure WHERE id = %s AND request_id = ''", [intent.erasure_id])
    await connection.execute("UPDATE erasure SET intent = NULL, answer = %s WHERE id = %s", [answer, intent.erasure_id])


async def abandon(connection: AsyncConnection, intent: Intent) -> None:
    """Drops an erasure."""
    await connection.execute("DELETE FROM erasure WHERE id = %s", [intent.erasure_id])


def _intent(erasure_id: int, space: str, kind: str, facts: Mapping[str, Any]) -> Intent:
    return Intent(
        erasure_id=erasure_id,
        space=space,
        kind=ErasureKind(kind),
        selection=Selection(**_tuples(facts["selection"])),
        resolution=Resolution(**_tuples(facts["resolution"])),
        last_seq=facts["last_seq"],
        erased_turns=facts["erased_turns"],
        erased_memories=facts["erased_memories"],
        foreseen_turns=tuple(facts.get("foreseen_turns", ())),
        foreseen_memories=tuple(facts.get("foreseen_memories", ())),
    )


def _tuples(lists: Mapping[str, list[str]]) -> dict[str, tuple[str, ...]]:
    return {name: tuple(ids) for name, ids in lists.items()}
