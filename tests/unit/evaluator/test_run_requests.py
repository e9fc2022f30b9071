"""A dialogue as requests: pairs by position, larger units, limits, what had been said by a date."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memdock.types import Limits
from memdock_evaluator.dataset import Dialogue, DialogueTurn, Session
from memdock_evaluator.run.requests import groups, pairs, requests, said_by
from memdock_evaluator.run.settings import IngestUnit, SettingsError

BEGIN = datetime(2024, 3, 4, 20, 15, tzinfo=UTC)
ROLES = st.lists(st.sampled_from(["user", "assistant", "system", "tool"]), min_size=1, max_size=9)


def dialogue(*sessions: list[str]) -> Dialogue:
    def session(index: int, roles: list[str]) -> Session:
        time = BEGIN + timedelta(days=index)
        turns = tuple(
            DialogueTurn(turn_id=f"s{index}-t{n}", role=role, text=f"text {index} {n}", time=time)
            for n, role in enumerate(roles)
        )
        return Session(session_id=f"s{index}", index=index, turns=turns, time=time)

    return Dialogue(
        dialogue_id="0",
        language="en",
        sessions=tuple(session(index, roles) for index, roles in enumerate(sessions, start=1)),
        questions=(),
    )


def ids(unit: str, *sessions: list[str]) -> list[list[str]]:
    return [[turn.turn_id for turn in group] for group in groups(dialogue(*sessions), IngestUnit(name=unit))]


TWO = (["user", "assistant", "user", "assistant", "user"], ["assistant", "user"])


def test_pairs_go_by_position_and_never_cross_a_session() -> None:
    assert ids("pair", *TWO) == [["s1-t0", "s1-t1"], ["s1-t2", "s1-t3"], ["s1-t4"], ["s2-t0", "s2-t1"]]


def test_a_system_turn_shifts_no_pair() -> None:
    roles = ["system", "user", "tool", "assistant", "user", "assistant"]
    assert ids("pair", roles) == [["s1-t0", "s1-t1", "s1-t2", "s1-t3"], ["s1-t4", "s1-t5"]]


def test_other_units() -> None:
    assert ids("turn", *TWO) == [[f"s1-t{n}"] for n in range(5)] + [["s2-t0"], ["s2-t1"]]
    assert ids("session", *TWO) == [[f"s1-t{n}" for n in range(5)], ["s2-t0", "s2-t1"]]
    assert [len(group) for group in ids("batch:4", *TWO)] == [4, 3]


@pytest.mark.parametrize("unit", ["pairs", "batch:0", "batch:", "batch:-1", "", "batch:100000"])
def test_an_unknown_unit_is_refused(unit: str) -> None:
    with pytest.raises(SettingsError, match="batch:50"):
        IngestUnit(name=unit)


@given(st.lists(ROLES, min_size=1, max_size=4), st.sampled_from(["pair", "turn", "session", "batch:3", "batch:100"]))
def test_every_unit_sends_every_turn_once_and_in_order(sessions: list[list[str]], unit: str) -> None:
    made = dialogue(*sessions)
    sent = [turn.turn_id for group in groups(made, IngestUnit(name=unit)) for turn in group]
    assert sent == [turn.turn_id for turn in made.turns]


@given(ROLES)
def test_no_pair_has_more_than_two_spoken_turns(roles: list[str]) -> None:
    for pair in pairs(dialogue(roles).sessions[0]):
        assert sum(turn.role in ("user", "assistant") for turn in pair) <= 2


def test_turns_keep_their_times_and_sessions() -> None:
    (turns,) = groups(dialogue(["user", "assistant"]), IngestUnit(name="pair"))
    assert [(turn.session_id, turn.role, turn.time) for turn in turns] == [
        ("s1", "user", BEGIN + timedelta(days=1)),
        ("s1", "assistant", BEGIN + timedelta(days=1)),
    ]


def test_a_group_past_the_limits_is_cut() -> None:
    group = next(groups(dialogue(["user"] * 5), IngestUnit(name="session")))
    by_count = [len(request) for request in requests([group], Limits(max_turns_per_request=2))]
    assert by_count == [2, 2, 1]
    by_size = [len(request) for request in requests([group], Limits(max_request_bytes=1200))]
    assert by_size == [2, 2, 1]


def test_said_by_a_date() -> None:
    made = dialogue(["user"], ["user"], ["user"])
    date = BEGIN + timedelta(days=2)
    assert [turn.turn_id for turn in made.turns if said_by(date)(turn)] == ["s1-t0", "s2-t0"]
    assert all(map(said_by(None), made.turns))
    assert said_by(date)(DialogueTurn(turn_id="x", role="user", text="undated"))
