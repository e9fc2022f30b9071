"""Pairing turns, what goes into a vector, ids that grow."""

import random
from datetime import UTC, datetime
from uuid import RFC_4122

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memdock.adapter.pairs import MAX_GAP, group_turns
from memdock.types import Turn
from memdock_pgvector.chunks import Chunk, new_chunk_id


def turns(script: str) -> list[Turn]:
    """`au bA`: a user turn of session a, then a named assistant's turn of session b. Roles: u, a, s, t; named: U, A."""
    roles = {"u": "user", "a": "assistant", "s": "system", "t": "tool"}
    return [
        Turn(
            turn_id=f"t{place}",
            session_id=word[0],
            role=roles[word[1].lower()],
            text=f"text {place}",
            name="Ann" if word[1].isupper() else "",
        )
        for place, word in enumerate(script.split())
    ]


@pytest.mark.parametrize(
    ("script", "final", "expected"),
    [
        ("au aa au aa", False, [(0, 1), (2, 3)]),
        ("au aa au", False, [(0, 1)]),
        ("au aa au", True, [(0, 1), (2,)]),
        ("au au aa", False, [(0,), (1, 2)]),
        ("aa au aa", False, [(0,), (1, 2)]),
        ("as au at aa", False, [(0,), (1,), (2,), (3,)]),
        ("au bu aa ba", False, [(0, 2), (1, 3)]),
        ("au bu aa", False, []),
        ("bu ba au bu aa", False, [(0, 1)]),
        ("au bu", True, [(0,), (1,)]),
        # Two people: whoever speaks first opens the pair.
        ("aA aU aA aU", False, [(0, 1), (2, 3)]),
        ("aA aA aU", False, [(0,), (1, 2)]),
        ("", True, []),
    ],
)
def test_a_pair_is_a_turn_and_the_reply_that_follows_it_in_its_session(
    script: str, final: bool, expected: list[tuple[int, ...]]
) -> None:
    assert group_turns(turns(script), final=final) == expected


def test_a_turn_without_a_reply_does_not_hold_up_other_sessions_for_ever() -> None:
    others = "bu ba " * (MAX_GAP // 2)
    assert group_turns(turns(f"au {others}"), final=False) == []
    assert group_turns(turns(f"au {others} bs"), final=False)[0] == (0,)
    assert group_turns(turns(f"au {others} bs aa"), final=False)[0] == (0,), "a reply too late is on its own"


@given(st.lists(st.sampled_from(["au", "aa", "bu", "ba", "as", "aA", "bU"])), st.booleans())
def test_groups_cover_a_prefix_once_and_all_of_it_at_the_end(words: list[str], final: bool) -> None:
    given_turns = turns(" ".join(words))
    places = sorted(place for group in group_turns(given_turns, final=final) for place in group)
    assert places == list(range(len(places)))
    assert not final or len(places) == len(given_turns)


def test_what_was_left_out_comes_again_to_the_same_groups() -> None:
    chance = random.Random(7)
    script = turns(" ".join(chance.choice("abc") + chance.choice("ua") for _ in range(200)))
    whole = group_turns(script, final=True)
    pieces: list[tuple[int, ...]] = []
    done, seen = 0, 0
    while done < len(script):
        seen = min(len(script), seen + chance.randint(1, 9))
        groups = group_turns(script[done:seen], final=seen == len(script))
        pieces += [tuple(place + done for place in group) for group in groups]
        done += sum(map(len, groups))
    assert pieces == whole


def test_a_chunk_speaks_by_name_or_role_and_has_its_first_known_time() -> None:
    said_at = datetime(2023, 5, 8, tzinfo=UTC)
    question = Turn(turn_id="1", session_id="s", role="user", name="Ann", text="What is new?")
    answer = Turn(turn_id="2", session_id="s", role="assistant", text="Nothing", time=said_at)
    chunk = Chunk(id=new_chunk_id(), turns=(question, answer))
    assert chunk.text == "Ann: What is new?\nassistant: Nothing"
    assert chunk.said_at == said_at
    assert chunk.terms["noth"] == 1


def test_a_vector_is_of_all_that_a_user_said_and_the_head_of_a_reply() -> None:
    question = Turn(turn_id="1", session_id="s", role="user", text="q" * 5000)
    answer = Turn(turn_id="2", session_id="s", role="assistant", text="ж" * 5000)
    text = Chunk(id=new_chunk_id(), turns=(question, answer)).embedded_text(2000)
    assert text == "user: " + "q" * 5000 + "\nassistant: " + "ж" * 2000


def test_ids_are_uuids_of_version_7_and_grow() -> None:
    ids = [new_chunk_id() for _ in range(10_000)]
    assert ids == sorted(set(ids))
    assert {(one.version, one.variant) for one in ids} == {(7, RFC_4122)}
    now_ms = datetime.now(UTC).timestamp() * 1000
    assert abs((ids[-1].int >> 80) - now_ms) < 60_000


def test_a_text_that_begins_with_its_speakers_name_is_not_given_it_again() -> None:
    named = Turn(turn_id="1", session_id="s", role="user", name="Ann", text="Ann: What is new?")
    other = Turn(turn_id="2", session_id="s", role="assistant", name="Bob", text="Ann: is your name.")
    chunk = Chunk(id=new_chunk_id(), turns=(named, other))
    assert chunk.text == "Ann: What is new?\nBob: Ann: is your name."
    assert chunk.embedded_text(8) == "Ann: What is new?\nBob: Ann: is "
