"""The SQLite ledger's part of Forget and Reset."""

import sqlite3
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from memdock.ledger import Begun, Counts, ErasureKind, Intent, Recorded, Resolution, Settled
from memdock.sqlite_ledger import SqliteLedger
from memdock.system import Outcome
from memdock.types import Component, ModelUsage, Residue, Selection, Turn, TurnError, TurnResult, TurnState

SPACE = "space"
CLEAN = Residue(component=Component.RAW_TURNS, verified=True)
COST = ModelUsage(model="m", purpose="extraction", calls=1)


def turn(turn_id: str, session_id: str = "s1") -> Turn:
    return Turn(turn_id=turn_id, session_id=session_id, role="user", text="hello")


@pytest_asyncio.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[SqliteLedger]:
    opened = SqliteLedger(tmp_path / "ledger.db")
    await opened.open()
    await opened.admit(SPACE, [turn("a"), turn("b"), turn("c", "s2"), turn("d", "s2")])
    await opened.admit("sibling", [turn("a")])
    held = await opened.pending(SPACE, limit=2)
    outcome = Outcome(state=TurnState.SEARCHABLE, memory_ids=("m1", "m2"))
    await opened.settle(SPACE, [Settled(seq=one.seq, outcome=outcome) for one in held], usage=[COST])
    yield opened
    await opened.close()


async def begin(
    ledger: SqliteLedger,
    kind: ErasureKind,
    selection: Selection | None = None,
    *,
    request_id: str = "",
    fingerprint: bytes = b"f",
) -> Begun:
    return await ledger.begin_erasure(
        SPACE, kind, selection or Selection(), request_id=request_id, fingerprint=fingerprint
    )


async def forget(ledger: SqliteLedger, selection: Selection) -> Intent:
    begun = await begin(ledger, ErasureKind.FORGET, selection)
    assert begun.intent is not None
    return begun.intent


async def states(ledger: SqliteLedger) -> dict[str, TurnState]:
    return {row.record.turn_id: row.record.state for row in await ledger.turns(SPACE, after=0, limit=100)}


async def test_resolve_knows_turns_and_sessions_and_changes_nothing(ledger: SqliteLedger) -> None:
    before = await states(ledger)
    assert await ledger.resolve(SPACE, Selection(turn_ids=("d", "zz", "a"))) == Resolution(
        turn_ids=("a", "d"), held_turn_ids=("a", "d"), not_found=("zz",)
    )
    assert await ledger.resolve(SPACE, Selection(session_ids=("s2", "s9"))) == Resolution(
        turn_ids=("c", "d"), held_turn_ids=("c", "d"), not_found=("s9",)
    )
    assert await ledger.resolve(SPACE, Selection(memory_ids=("m1",))) == Resolution()
    assert await states(ledger) == before


async def test_forget_takes_pending_and_searchable_turns_at_once(ledger: SqliteLedger) -> None:
    intent = await forget(ledger, Selection(turn_ids=("a", "c", "zz")))
    assert intent.resolution.held_turn_ids == ("a", "c")
    assert await states(ledger) == {
        "a": TurnState.FORGOTTEN,
        "b": TurnState.SEARCHABLE,
        "c": TurnState.FORGOTTEN,
        "d": TurnState.PENDING,
    }
    assert [one.turn.turn_id for one in await ledger.pending(SPACE, limit=9)] == ["d"]
    assert await ledger.open_erasures(SPACE) == [intent]
    taken = await ledger.erase(intent, turn_ids=["b", "a", "unknown"], memory_ids=["m1"])
    assert (taken.turn_ids, taken.residue) == (("b",), CLEAN)
    await ledger.finish_erasure(intent, answer=b"done")
    assert await ledger.open_erasures(SPACE) == []
    again = await ledger.resolve(SPACE, Selection(turn_ids=("a",)))
    assert again == Resolution(turn_ids=("a",), held_turn_ids=(), not_found=("a",))


async def test_a_late_retry_of_a_forgotten_turn_stays_forgotten(ledger: SqliteLedger) -> None:
    await forget(ledger, Selection(turn_ids=("a",)))
    (result,) = (await ledger.admit(SPACE, [turn("a")])).results
    assert (result.state, result.duplicate, result.memory_ids) == (TurnState.FORGOTTEN, True, ())
    assert (await ledger.admit(SPACE, [turn("a", "s9")])).conflicts == (0,)
    assert (await states(ledger))["a"] is TurnState.FORGOTTEN


async def test_erased_memories_vanish_from_the_turns_that_stay(ledger: SqliteLedger) -> None:
    intent = await forget(ledger, Selection(memory_ids=("m1",)))
    assert (await states(ledger))["a"] is TurnState.SEARCHABLE
    await ledger.erase(intent, memory_ids=["m1"])
    assert (await ledger.find(SPACE, ["a"]))["a"].memory_ids == ("m2",)


async def test_turns_are_known_by_the_memories_that_their_outcomes_named(ledger: SqliteLedger) -> None:
    assert await ledger.recorded(SPACE, ["m9", "m2", "m2"]) == Recorded(memory_ids=("m2",), turn_ids=("a", "b"))
    assert await ledger.recorded(SPACE, ["m9"]) == await ledger.recorded("sibling", ["m1"]) == Recorded()
    await forget(ledger, Selection(turn_ids=("a",)))
    assert await ledger.recorded(SPACE, ["m1"]) == Recorded(memory_ids=("m1",), turn_ids=("b",))


async def test_turns_that_have_changed_are_told_as_they_are_now(ledger: SqliteLedger) -> None:
    intent = await forget(ledger, Selection(turn_ids=("a",)))
    failure = TurnError(reason="PROVIDER_PROTOCOL_ERROR", message="no JSON", retryable=True)
    for state, memory_ids, error in (
        (TurnState.SEARCHABLE, ("m8", "m9"), None),
        (TurnState.NO_MEMORY, (), None),
        (TurnState.FAILED, (), failure),
        (TurnState.SEARCHABLE, ("m9",), None),
    ):
        told = [
            TurnResult(turn_id=turn_id, state=state, memory_ids=memory_ids, error=error)
            for turn_id in ("a", "b", "c", "unknown")
        ]
        await ledger.erase(intent, memory_ids=["m1", "m2"], changed=told)
        found = await ledger.find(SPACE, ["a", "b", "c", "unknown"])
        assert (found["b"].state, found["b"].memory_ids, found["b"].error) == (state, memory_ids, error)
        assert (found["a"].state, found["c"].state, len(found)) == (TurnState.FORGOTTEN, TurnState.PENDING, 3)
    assert (await ledger.find("sibling", ["a"]))["a"].state is TurnState.PENDING


async def test_a_turn_that_was_sent_again_since_is_newer_than_the_change(ledger: SqliteLedger) -> None:
    intent = await forget(ledger, Selection(turn_ids=("a",)))
    error = TurnError(reason="INTERNAL", message="lost", retryable=False)
    lost = TurnResult(turn_id="b", state=TurnState.FAILED, error=error)
    await ledger.erase(intent, changed=[lost])
    await ledger.admit(SPACE, [turn("b")])
    (again,) = [one for one in await ledger.pending(SPACE, limit=9) if one.turn.turn_id == "b"]
    await ledger.settle(SPACE, [Settled(seq=again.seq, outcome=Outcome(state=TurnState.NO_MEMORY))])
    await ledger.erase(intent, changed=[lost])
    assert (await ledger.find(SPACE, ["b"]))["b"].state is TurnState.NO_MEMORY


async def test_what_was_foreseen_is_kept_until_the_end(ledger: SqliteLedger) -> None:
    intent = await forget(ledger, Selection(memory_ids=("m1",)))
    assert (intent.foreseen_turns, intent.foreseen_memories) == ((), ())
    await ledger.foresee(intent, turn_ids=["a"], memory_ids=["m1"])
    assert await ledger.open_erasures(SPACE) == [replace(intent, foreseen_turns=("a",), foreseen_memories=("m1",))]
    await ledger.finish_erasure(intent, answer=b"")
    await ledger.foresee(intent, turn_ids=["a"], memory_ids=["m1"])
    assert await ledger.open_erasures(SPACE) == []


async def test_an_old_forget_leaves_newer_turns_alone(ledger: SqliteLedger) -> None:
    intent = await forget(ledger, Selection(memory_ids=("m1",)))
    reset = await begin(ledger, ErasureKind.RESET)
    await ledger.admit(SPACE, [turn("a")])
    assert (await ledger.erase(intent, turn_ids=["a"])).turn_ids == ()
    await ledger.finish_erasure(intent, answer=b"")
    assert await states(ledger) == {"a": TurnState.PENDING}
    assert reset.intent is not None
    assert await ledger.open_erasures(SPACE) == [reset.intent]


async def test_reset_clears_its_space_and_only_that(ledger: SqliteLedger) -> None:
    await forget(ledger, Selection(turn_ids=("d",)))
    begun = await begin(ledger, ErasureKind.RESET)
    assert begun.intent is not None
    assert (begun.intent.erased_turns, begun.intent.erased_memories) == (3, 2)
    assert await states(ledger) == {}
    assert await ledger.counts(SPACE) == Counts()
    assert (await ledger.counts("sibling")).pending == 1
    assert await ledger.spent(SPACE) == []
    (result,) = (await ledger.admit(SPACE, [turn("d", "s9")])).results
    assert (result.state, result.duplicate) == (TurnState.PENDING, False)
    taken = await ledger.erase(begun.intent)
    assert taken.residue == CLEAN
    await ledger.finish_erasure(begun.intent, answer=b"done")
    assert await states(ledger) == {"d": TurnState.PENDING}


async def test_a_batch_that_ends_after_a_reset_settles_nothing_and_costs_nothing(ledger: SqliteLedger) -> None:
    in_flight = await ledger.pending(SPACE, limit=9)
    begun = await begin(ledger, ErasureKind.RESET)
    await ledger.admit(SPACE, [turn("c", "s2")])
    late = [Settled(seq=one.seq, outcome=Outcome(state=TurnState.SEARCHABLE)) for one in in_flight]
    await ledger.settle(SPACE, late, usage=[COST])
    await ledger.spend(SPACE, [COST])
    assert await states(ledger) == {"c": TurnState.PENDING}
    assert await ledger.spent(SPACE) == []
    assert begun.intent is not None
    await ledger.finish_erasure(begun.intent, answer=b"")
    await ledger.spend(SPACE, [COST])
    assert await ledger.spent(SPACE) == [COST]


async def test_a_request_id_is_answered_as_the_first_time(ledger: SqliteLedger) -> None:
    selection = Selection(turn_ids=("a",))
    first = await begin(ledger, ErasureKind.FORGET, selection, request_id="r")
    assert first.intent is not None
    assert await begin(ledger, ErasureKind.FORGET, selection, request_id="r") == first
    await ledger.finish_erasure(first.intent, answer=b"answer", usage=[COST])
    assert await begin(ledger, ErasureKind.FORGET, selection, request_id="r") == Begun(answer=b"answer")
    assert (await begin(ledger, ErasureKind.FORGET, selection, request_id="r", fingerprint=b"g")).mismatch
    assert (await begin(ledger, ErasureKind.RESET, request_id="r")).mismatch
    assert (await ledger.spent(SPACE))[0].calls == 2


async def test_a_late_repeat_of_a_reset_takes_no_newer_turns(ledger: SqliteLedger) -> None:
    for request_id in ("r1", "r2"):
        begun = await begin(ledger, ErasureKind.RESET, request_id=request_id)
        assert begun.intent is not None
        await ledger.finish_erasure(begun.intent, answer=request_id.encode())
    await ledger.admit(SPACE, [turn("new")])
    assert await begin(ledger, ErasureKind.RESET, request_id="r1") == Begun(answer=b"r1")
    assert await states(ledger) == {"new": TurnState.PENDING}


@pytest.mark.parametrize("request_id", ["", "r1"])
async def test_a_reset_leaves_its_request_id_and_answer_and_nothing_else(
    ledger: SqliteLedger, tmp_path: Path, request_id: str
) -> None:
    begun = await begin(ledger, ErasureKind.FORGET, Selection(turn_ids=("a",)), request_id="f")
    assert begun.intent is not None
    await ledger.finish_erasure(begun.intent, answer=b"forgotten")
    begun = await begin(ledger, ErasureKind.RESET, request_id=request_id)
    assert begun.intent is not None
    await ledger.finish_erasure(begun.intent, answer=b"done")
    await ledger.close()
    connection = sqlite3.connect(tmp_path / "ledger.db")
    left = [
        row
        for table in ("turns", "usage", "erasures")
        for row in connection.execute(f"SELECT * FROM {table} WHERE space = ?", (SPACE,))
    ]
    connection.close()
    kept = (SPACE, "RESET", "r1", b"f", None, b"done")
    assert [row[1:] for row in left] == ([kept] if request_id else [])


async def test_an_abandoned_forget_leaves_tombstones_and_frees_its_request_id(ledger: SqliteLedger) -> None:
    begun = await begin(ledger, ErasureKind.FORGET, Selection(turn_ids=("a",)), request_id="r")
    assert begun.intent is not None
    await ledger.abandon_erasure(begun.intent)
    assert await ledger.open_erasures(SPACE) == []
    assert (await states(ledger))["a"] is TurnState.FORGOTTEN
    again = await begin(ledger, ErasureKind.FORGET, Selection(turn_ids=("a",)), request_id="r")
    assert again.intent is not None
    assert again.intent.resolution.turn_ids == ("a",)


async def test_open_erasures_survive_and_make_a_space_busy(ledger: SqliteLedger, tmp_path: Path) -> None:
    first = await forget(ledger, Selection(session_ids=("s1",)))
    begun = await begin(ledger, ErasureKind.FORGET, Selection(memory_ids=("m9",)))
    await ledger.close()
    again = SqliteLedger(tmp_path / "ledger.db")
    await again.open()
    assert await again.open_erasures(SPACE) == [first, begun.intent]
    assert SPACE in await again.busy_spaces()
    await again.close()
