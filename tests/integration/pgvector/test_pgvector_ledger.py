"""The ledger in PostgreSQL: the same answers as the one in SQLite, and what only it promises."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from memdock.errors import MemdockError
from memdock.ledger import Counts, ErasureKind, Intent, Ledger, Settled
from memdock.sqlite_ledger import SqliteLedger
from memdock.system import Outcome
from memdock.types import ModelUsage, Selection, Turn, TurnError, TurnResult, TurnState
from memdock_pgvector.database import Database, connect
from memdock_pgvector.pg_ledger import PgLedger

SPACES = ("a", "b")
SEARCHABLE = Outcome(state=TurnState.SEARCHABLE, memory_ids=("m",))
NO_MEMORY = Outcome(state=TurnState.NO_MEMORY)
FAILED = Outcome(state=TurnState.FAILED, error=TurnError(reason="PROVIDER_TIMEOUT", message="late", retryable=True))


def turn(turn_id: str, text: str = "hello", session_id: str = "s") -> Turn:
    return Turn(turn_id=turn_id, session_id=session_id, role="user", text=text)


@pytest_asyncio.fixture
async def ledger(database: Database) -> AsyncIterator[PgLedger]:
    opened = PgLedger(database)
    await opened.open()
    yield opened
    await opened.close()


class Player:
    """Plays the same random calls on a ledger; what it saw is compared with another's."""

    def __init__(self, ledger: Ledger, seed: int) -> None:
        self._ledger = ledger
        self._chance = random.Random(seed)
        self._intents: list[Intent] = []
        self._places: dict[int, int] = {}

    async def play(self) -> Any:
        moves = (self._admit, self._settle, self._settle, self._forget, self._reset, self._finish, self._spend)
        move = self._chance.choices(moves, weights=(8, 4, 4, 2, 1, 3, 1))[0]
        return move.__name__, await move(self._chance.choice(SPACES)), [await self._state(space) for space in SPACES]

    async def _admit(self, space: str) -> Any:
        ids = self._chance.sample(range(30), self._chance.randint(1, 4))
        turns = [turn(f"t{n}", text=self._chance.choice(("x", "x", "x", "y")), session_id=f"s{n % 3}") for n in ids]
        return await self._ledger.admit(space, turns)

    async def _settle(self, space: str) -> Any:
        held = await self._ledger.pending(space, limit=self._chance.randint(1, 5))
        settled = [
            Settled(
                seq=one.seq, outcome=self._chance.choice((FAILED, replace(SEARCHABLE, memory_ids=(f"m{place}", "n"))))
            )
            for place, one in enumerate(held)
        ]
        usage = [ModelUsage(model="m", purpose="embedding", calls=1, input_tokens=self._chance.randint(0, 9))]
        await self._ledger.settle(space, settled, usage=usage)
        return [(one.turn, one.retried) for one in held]

    async def _forget(self, space: str) -> Any:
        selection = self._chance.choice(
            (
                Selection(turn_ids=tuple(f"t{n}" for n in self._chance.sample(range(30), 3))),
                Selection(session_ids=(self._chance.choice(("s1", "s2", "s9")),)),
                Selection(memory_ids=("m0", "n")),
            )
        )
        resolved = await self._ledger.resolve(space, selection)
        return resolved, await self._begin(space, ErasureKind.FORGET, selection)

    async def _reset(self, space: str) -> Any:
        return await self._begin(space, ErasureKind.RESET, Selection())

    async def _begin(self, space: str, kind: ErasureKind, selection: Selection) -> Any:
        request_id = self._chance.choice(("", "", "r1", "r2"))
        begun = await self._ledger.begin_erasure(
            space, kind, selection, request_id=request_id, fingerprint=f"{kind}{selection}".encode()
        )
        if begun.intent is not None:
            self._intents.append(begun.intent)
            if kind is ErasureKind.FORGET and selection.memory_ids:
                await self._ledger.foresee(begun.intent, turn_ids=["t1", "t7"], memory_ids=["n"])
        return begun.answer, begun.mismatch, begun.intent and self._comparable(begun.intent)

    async def _finish(self, space: str) -> Any:
        if not self._intents:
            return None
        intent = self._intents.pop(self._chance.randrange(len(self._intents)))
        if intent.kind is ErasureKind.FORGET and self._chance.random() < 0.2:
            return await self._ledger.abandon_erasure(intent)
        turn_ids = tuple(f"t{n}" for n in self._chance.sample(range(30), 2))
        kept = [
            TurnResult(turn_id=f"t{n}", state=outcome.state, memory_ids=outcome.memory_ids, error=outcome.error)
            for n, outcome in enumerate(self._chance.choices((FAILED, SEARCHABLE, NO_MEMORY), k=9))
        ]
        taken = await self._ledger.erase(intent, turn_ids=turn_ids, memory_ids=("m1", "n"), changed=kept)
        await self._ledger.finish_erasure(intent, answer=b"done", usage=[ModelUsage(model="f", purpose="x", calls=1)])
        return taken.turn_ids, taken.residue.items

    async def _spend(self, space: str) -> Any:
        await self._ledger.spend(space, [ModelUsage(model="m", purpose="search", calls=2, estimated=True)])

    async def _state(self, space: str) -> Any:
        ledger = self._ledger
        pages = await ledger.turns(space, after=0, limit=100)
        last = await ledger.last_pending(space)
        pending = [one.turn.turn_id for one in await ledger.pending(space, limit=100)]
        return (
            [row.record for row in pages],
            pending,
            pending[-1:] == [row.record.turn_id for row in pages if row.seq == last],
            await ledger.counts(space),
            await ledger.counts(space, upto=pages[len(pages) // 2].seq if pages else None),
            [row.record for row in await ledger.failed(space, limit=4)],
            await ledger.find(space, ["t1", "t2", "t3", "nothing"]),
            await ledger.recorded(space, ["m1", "m", "nothing", "n"]),
            [self._comparable(intent) for intent in await ledger.open_erasures(space)],
            sorted(await ledger.busy_spaces()),
            await ledger.spent(space),
        )

    @staticmethod
    def _comparable(intent: Intent) -> Intent:
        """Without numbers that each ledger chooses for itself."""
        return replace(intent, erasure_id=0, last_seq=0)


@pytest.mark.parametrize("seed", range(4))
async def test_it_answers_what_the_ledger_in_sqlite_answers(ledger: PgLedger, tmp_path: Path, seed: int) -> None:
    other = SqliteLedger(tmp_path / "ledger.db")
    await other.open()
    ours, theirs = Player(ledger, seed), Player(other, seed)
    for _ in range(120):
        assert await ours.play() == await theirs.play()
    await other.close()


async def test_data_and_outcomes_commit_together_or_not_at_all(ledger: PgLedger, database: Database) -> None:
    await ledger.admit("a", [turn("t1"), turn("t2")])
    first, second = await ledger.pending("a", limit=2)

    async def write(connection: Any) -> None:
        await connection.execute("INSERT INTO space (name, embedder, dimension) VALUES ('a', 'e', 1)")

    async def fail(connection: Any) -> None:
        await connection.execute("INSERT INTO space (name, embedder, dimension) VALUES ('b', 'e', 1)")
        raise ValueError("no")

    await ledger.settle("a", [Settled(seq=first.seq, outcome=SEARCHABLE)], write=write)
    with pytest.raises(ValueError, match="no"):
        await ledger.settle("a", [Settled(seq=second.seq, outcome=SEARCHABLE)], write=fail)
    assert [one.turn.turn_id for one in await ledger.pending("a", limit=2)] == ["t2"]
    async with database.connection() as connection:
        assert await (await connection.execute("SELECT name FROM space")).fetchall() == [("a",)]


async def test_what_another_process_has_settled_is_not_stored_twice(ledger: PgLedger) -> None:
    await ledger.admit("a", [turn("t1")])
    (held,) = await ledger.pending("a", limit=1)
    settled = [Settled(seq=held.seq, outcome=SEARCHABLE)]

    async def write(connection: Any) -> None:
        raise AssertionError("stored twice")

    await ledger.settle("a", settled)
    with pytest.raises(MemdockError, match="another process has worked on the same turns"):
        await ledger.settle("a", settled, write=write)


async def test_content_is_kept_while_a_turn_is_pending_and_no_longer(ledger: PgLedger, database: Database) -> None:
    await ledger.admit("a", [turn("t1", "секрет"), turn("t2", "секрет"), turn("t3", "секрет")])
    first, second, _ = await ledger.pending("a", limit=3)
    await ledger.settle("a", [Settled(seq=first.seq, outcome=SEARCHABLE), Settled(seq=second.seq, outcome=FAILED)])
    await ledger.begin_erasure("a", ErasureKind.FORGET, Selection(turn_ids=("t3",)), request_id="", fingerprint=b"")
    async with database.connection() as connection:
        cursor = await connection.execute("SELECT count(content) FROM turn")
        assert await cursor.fetchone() == (0,)


async def test_places_are_taken_in_the_order_of_commits(ledger: PgLedger) -> None:
    async def admit(number: int) -> None:
        await ledger.admit("a", [turn(f"t{number}-{n}") for n in range(5)])

    seen: list[int] = []
    adding = asyncio.gather(*(admit(number) for number in range(30)))
    while not adding.done():
        rows = await ledger.turns("a", after=seen[-1] if seen else 0, limit=1000)
        seen += [row.seq for row in rows]
        await asyncio.sleep(0)
    seen += [row.seq for row in await ledger.turns("a", after=seen[-1] if seen else 0, limit=1000)]
    assert len(seen) == 150, "a reader that goes on after the last place it saw misses nothing"


async def test_one_process_at_a_time_owns_a_schema(ledger: PgLedger, database: Database) -> None:
    second = PgLedger(database)
    with pytest.raises(MemdockError, match="in use by another process; stop that one, or name another system"):
        await second.open()
    await ledger.close()
    await second.open()
    await second.check_ready()
    with pytest.raises(MemdockError, match="is not held by this process"):
        await ledger.admit("a", [turn("t1")])
    await second.close()


async def test_an_owner_that_lost_its_schema_writes_nothing_until_it_holds_it_again(
    ledger: PgLedger, database: Database, postgres_url: str
) -> None:
    async with await connect(postgres_url) as other:
        await other.execute("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted")
        await other.execute("SELECT pg_advisory_lock(hashtextextended('memdock owner ' || %s, 0))", [database.schema])
        with pytest.raises(MemdockError, match="is not held by this process"):
            await _until(ledger.check_ready, refused=True)
        with pytest.raises(MemdockError, match="is not held by this process"):
            await ledger.admit("a", [turn("t1")])
    await _until(ledger.check_ready, refused=False)
    await ledger.admit("a", [turn("t1")])
    assert (await ledger.counts("a")).pending == 1


async def test_connections_that_broke_are_replaced_before_the_schema_is_held_again(
    ledger: PgLedger, postgres_url: str
) -> None:
    async def many() -> list[Counts]:
        return await asyncio.gather(*(ledger.counts("a") for _ in range(12)))

    await many()
    async with await connect(postgres_url) as other:
        await other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
    await _until(ledger.check_ready, refused=False)
    assert await many() == [Counts()] * 12


async def _until(check: Callable[[], Awaitable[None]], *, refused: bool) -> None:
    async with asyncio.timeout(5):
        while True:
            try:
                await check()
                if not refused:
                    return
            except MemdockError:
                if refused:
                    raise
            await asyncio.sleep(0.01)
