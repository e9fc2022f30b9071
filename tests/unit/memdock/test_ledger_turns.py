"""The SQLite ledger's part of the turn life: admission, order, outcomes, counts."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st

from memdock.ledger import Counts, Settled, content_digest, pack_content, unpack_content
from memdock.sqlite_ledger import SqliteLedger
from memdock.system import Outcome
from memdock.types import ModelUsage, Turn, TurnError, TurnState

SPACE = "space"
SEARCHABLE = Outcome(state=TurnState.SEARCHABLE, memory_ids=("m1", "m2"))
FAILED = Outcome(state=TurnState.FAILED, error=TurnError(reason="PROVIDER_TIMEOUT", message="too slow", retryable=True))


def turn(turn_id: str, text: str = "hello", session_id: str = "s1") -> Turn:
    return Turn(turn_id=turn_id, session_id=session_id, role="user", text=text)


@pytest_asyncio.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[SqliteLedger]:
    opened = SqliteLedger(tmp_path / "ledger.db")
    await opened.open()
    yield opened
    await opened.close()


async def settle(ledger: SqliteLedger, outcome: Outcome, *turn_ids: str) -> None:
    held = {one.turn.turn_id: one.seq for one in await ledger.pending(SPACE, limit=100)}
    await ledger.settle(SPACE, [Settled(seq=held[turn_id], outcome=outcome) for turn_id in turn_ids])


async def test_new_turns_are_pending_in_order(ledger: SqliteLedger) -> None:
    admission = await ledger.admit(SPACE, [turn("b"), turn("a")])
    assert [(one.turn_id, one.state, one.duplicate) for one in admission.results] == [
        ("b", TurnState.PENDING, False),
        ("a", TurnState.PENDING, False),
    ]
    await ledger.admit("other", [turn("c")])
    held = await ledger.pending(SPACE, limit=10)
    assert [one.turn for one in held] == [turn("b"), turn("a")]
    assert held[0].seq < held[1].seq == await ledger.last_pending(SPACE)
    assert await ledger.pending(SPACE, upto=held[0].seq, limit=10) == held[:1]
    assert await ledger.counts(SPACE) == Counts(pending=2)
    assert await ledger.counts(SPACE, upto=held[0].seq) == Counts(pending=1)


FULL = Turn(
    turn_id="t",
    session_id="s1",
    role="user",
    text="hello",
    name="Анна",
    time=datetime(2024, 5, 1, 12, 0, 0, 1, UTC),
    time_zone="Europe/Moscow",
    metadata={"a": "1", "b": "2"},
)


@pytest.mark.parametrize(
    "other",
    [
        replace(FULL, role="assistant"),
        replace(FULL, name=""),
        replace(FULL, text="hello "),
        replace(FULL, time=FULL.time and FULL.time + timedelta(microseconds=1)),
        replace(FULL, time=None),
        replace(FULL, time_zone="UTC"),
        replace(FULL, session_id="s2"),
        replace(FULL, metadata={"a": "1"}),
        replace(FULL, metadata={"a": "12", "b": ""}),
    ],
)
async def test_other_content_is_a_conflict_and_nothing_is_admitted(ledger: SqliteLedger, other: Turn) -> None:
    await ledger.admit(SPACE, [FULL])
    admission = await ledger.admit(SPACE, [turn("new1"), other, turn("new2")])
    assert admission.conflicts == (1,)
    assert admission.results == ()
    assert [row.record.turn_id for row in await ledger.turns(SPACE, after=0, limit=10)] == ["t"]


async def test_every_conflict_is_named(ledger: SqliteLedger) -> None:
    await ledger.admit(SPACE, [turn("a"), turn("b")])
    assert (await ledger.admit(SPACE, [turn("b", "x"), turn("c"), turn("a", "x")])).conflicts == (0, 2)


async def test_the_same_content_is_a_duplicate_whatever_the_offset_or_the_order_of_labels(ledger: SqliteLedger) -> None:
    await ledger.admit(SPACE, [FULL])
    assert FULL.time is not None
    same = replace(FULL, time=FULL.time.astimezone(timezone(timedelta(hours=3))), metadata={"b": "2", "a": "1"})
    (result,) = (await ledger.admit(SPACE, [same])).results
    assert (result.state, result.duplicate) == (TurnState.PENDING, True)
    assert (await ledger.counts(SPACE)).pending == 1
    await settle(ledger, SEARCHABLE, "t")
    (result,) = (await ledger.admit(SPACE, [same])).results
    assert (result.state, result.duplicate, result.memory_ids) == (TurnState.SEARCHABLE, True, ("m1", "m2"))


async def test_ten_equal_requests_at_once_make_one_turn(ledger: SqliteLedger) -> None:
    admissions = await asyncio.gather(*(ledger.admit(SPACE, [turn("a"), turn("b")]) for _ in range(10)))
    assert sorted(one.duplicate for admission in admissions for one in admission.results) == [False] * 2 + [True] * 18
    assert (await ledger.counts(SPACE)).pending == 2


async def test_a_failed_turn_sent_again_goes_behind_what_was_accepted_meanwhile(ledger: SqliteLedger) -> None:
    await ledger.admit(SPACE, [turn("a"), turn("b")])
    await settle(ledger, FAILED, "a")
    assert await ledger.counts(SPACE) == Counts(pending=1, failed=1)
    (row,) = await ledger.failed(SPACE, limit=10)
    assert row.record.error == FAILED.error
    (result,) = (await ledger.admit(SPACE, [turn("a")])).results
    assert (result.state, result.duplicate, result.error) == (TurnState.PENDING, True, None)
    held = await ledger.pending(SPACE, limit=10)
    assert [(one.turn.turn_id, one.retried) for one in held] == [("b", False), ("a", True)]
    assert await ledger.counts(SPACE) == Counts(pending=2)


async def test_what_was_started_and_not_answered_is_no_longer_started(ledger: SqliteLedger) -> None:
    await ledger.admit(SPACE, [turn("a"), turn("b")])
    held = await ledger.pending(SPACE, limit=10)
    await ledger.start(SPACE, [one.seq for one in held])
    assert [one.started for one in await ledger.pending(SPACE, limit=10)] == [True, True]
    await ledger.settle(SPACE, [Settled(seq=held[0].seq, outcome=SEARCHABLE)])
    assert [(one.turn.turn_id, one.started) for one in await ledger.pending(SPACE, limit=10)] == [("b", False)]


async def test_outcomes_touch_only_pending_turns_of_their_space(ledger: SqliteLedger) -> None:
    await ledger.admit(SPACE, [turn("a")])
    await ledger.admit("other", [turn("a")])
    (held,) = await ledger.pending(SPACE, limit=10)
    (foreign,) = await ledger.pending("other", limit=10)
    await ledger.settle(SPACE, [Settled(seq=held.seq, outcome=SEARCHABLE), Settled(seq=foreign.seq, outcome=FAILED)])
    await ledger.settle(SPACE, [Settled(seq=held.seq, outcome=FAILED)])
    assert (await ledger.find(SPACE, ["a", "zz"]))["a"].state is TurnState.SEARCHABLE
    assert (await ledger.find("other", ["a"]))["a"].state is TurnState.PENDING


async def test_a_write_needs_a_shared_transaction(ledger: SqliteLedger) -> None:
    async def write(connection: object) -> None:
        raise AssertionError("never called")

    await ledger.admit(SPACE, [turn("a")])
    (held,) = await ledger.pending(SPACE, limit=1)
    with pytest.raises(TypeError, match="Batch without `write`"):
        await ledger.settle(SPACE, [Settled(seq=held.seq, outcome=SEARCHABLE)], write=write)
    assert (await ledger.counts(SPACE)).pending == 1


async def test_pages_have_no_gap_and_no_repeat(ledger: SqliteLedger) -> None:
    await ledger.admit(SPACE, [turn(f"t{index}") for index in range(7)])
    seen, after = [], 0
    for size in (1, 3, 2, 5):
        page = await ledger.turns(SPACE, after=after, limit=size)
        seen += [row.record.turn_id for row in page]
        after = page[-1].seq
    assert seen == [f"t{index}" for index in range(7)]


async def test_usage_adds_up_and_stays(ledger: SqliteLedger) -> None:
    one = ModelUsage(model="m", purpose="extraction", calls=1, input_tokens=10, output_tokens=2)
    await ledger.spend(SPACE, [one, replace(one, purpose="embedding")])
    await ledger.settle(SPACE, [], usage=[replace(one, estimated=True)])
    assert await ledger.spent(SPACE) == [
        replace(one, purpose="embedding"),
        replace(one, calls=2, input_tokens=20, output_tokens=4, estimated=True),
    ]
    assert await ledger.spent("other") == []
    await ledger.spend(SPACE, [replace(one, input_tokens=2**32 - 5)])
    assert (await ledger.spent(SPACE))[1].input_tokens == 2**32 - 1


async def test_busy_spaces(ledger: SqliteLedger) -> None:
    await ledger.admit(SPACE, [turn("a")])
    await ledger.admit("other", [turn("a")])
    assert sorted(await ledger.busy_spaces()) == ["other", SPACE]
    await settle(ledger, SEARCHABLE, "a")
    assert await ledger.busy_spaces() == ["other"]


@given(
    st.builds(
        Turn,
        turn_id=st.just("t"),
        session_id=st.text(),
        role=st.text(),
        text=st.text(),
        name=st.text(),
        time=st.none() | st.datetimes(timezones=st.just(UTC)),
        time_zone=st.text(),
        metadata=st.dictionaries(st.text(), st.text(), max_size=3),
    )
)
def test_content_survives_packing(one: Turn) -> None:
    assert unpack_content("t", pack_content(one)) == one


def test_a_digest_needs_its_key() -> None:
    content = pack_content(FULL)
    assert content_digest(b"k" * 32, content) == content_digest(b"k" * 32, content)
    assert content_digest(b"k" * 32, content) != content_digest(b"l" * 32, content)
