"""The map from a framework's memories to the turns that they came from."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memdock.adapter.native_ids import NativeIds
from memdock.errors import MemdockError
from memdock.types import Source, Turn

MOMENT = datetime(2019, 5, 4, 10, 30, tzinfo=UTC)


def source(turn: str, session: str = "s1") -> Source:
    return Source(session_id=session, turn_id=turn)


@pytest.fixture
def ids(tmp_path: Path) -> NativeIds:
    made = NativeIds(tmp_path / "ids.sqlite")
    made.add("a", ["m1", "m2"], [source("t1"), source("t2")])
    made.add("a", ["m3"], [source("t2")])
    made.add("b", ["m1"], [source("t1", "s2")])
    return made


def test_a_memory_knows_its_turns_and_a_turn_its_memories_in_one_space(ids: NativeIds) -> None:
    assert ids.memories_of("a", ["t2"]) == ["m1", "m2", "m3"]
    assert ids.memories_of("a", ["t1", "t2", "t9"]) == ["m1", "m2", "m3"]
    assert ids.sources_of("a", ["m1", "m3", "m9"]) == {"m1": (source("t1"), source("t2")), "m3": (source("t2"),)}
    assert ids.sources_of("b", ["m1"]) == {"m1": (source("t1", "s2"),)}
    assert (ids.all_of("a"), ids.all_of("b"), ids.all_of("c")) == (["m1", "m2", "m3"], ["m1"], [])


def test_what_is_noted_twice_stands_once(ids: NativeIds) -> None:
    ids.add("a", ["m1"], [source("t1")])
    assert ids.sources_of("a", ["m1"])["m1"] == (source("t1"), source("t2"))


def test_what_is_removed_is_gone_from_the_file_and_from_no_other_space(ids: NativeIds, tmp_path: Path) -> None:
    ids.add("a", ["m4"], [source("turn-of-7719")])
    ids.remove("a", ["m4", "m1"])
    assert ids.all_of("a") == ["m2", "m3"]
    assert not any(b"turn-of-7719" in path.read_bytes() for path in tmp_path.iterdir())
    ids.remove_space("a")
    assert (ids.all_of("a"), ids.all_of("b")) == ([], ["m1"])


def test_turns_that_were_stored_anew_are_known_by_what_went_until_they_go_too(ids: NativeIds) -> None:
    ids.store_anew("a", "m1", ["t2"])
    assert (ids.all_of("a"), ids.all_of("b")) == (["m2", "m3"], ["m1"])
    assert (ids.stored_anew("a", ["t1", "t9"]), ids.stored_anew("a", ["t2"]), ids.stored_anew("b", ["t1"])) == (
        ["t2"],
        [],
        [],
    )
    ids.drop("a", ["t1"])
    assert ids.stored_anew("a", ["t1"]) == ["t2"]
    ids.drop("a", ["t2"])
    assert ids.stored_anew("a", ["t1"]) == []
    ids.store_anew("a", "m2", ["t1"])
    ids.remove_space("a")
    assert ids.stored_anew("a", ["t2"]) == []


def test_a_memory_outlives_one_of_its_turns_and_not_the_last(ids: NativeIds) -> None:
    ids.remove_turns("a", ["t1"])
    assert ids.sources_of("a", ["m1"]) == {"m1": (source("t2"),)}
    ids.remove_turns("a", ["t2", "t9"])
    assert (ids.all_of("a"), ids.all_of("b")) == ([], ["m1"])


def test_a_memory_that_is_renamed_keeps_its_turns(ids: NativeIds) -> None:
    ids.rename("a", {"m1": "ended:m1", "m3": "m2", "m9": "m8"})
    assert ids.sources_of("a", ["ended:m1", "m2"]) == {
        each: (source("t1"), source("t2")) for each in ("ended:m1", "m2")
    }
    assert (set(ids.all_of("a")), ids.all_of("b")) == ({"ended:m1", "m2"}, ["m1"])


def test_it_is_there_after_a_restart(ids: NativeIds, tmp_path: Path) -> None:
    ids.close()
    assert NativeIds(tmp_path / "ids.sqlite").all_of("a") == ["m1", "m2", "m3"]


def test_a_file_that_cannot_be_used_is_told_as_the_store(ids: NativeIds) -> None:
    ids._db.execute("DROP TABLE made")
    with pytest.raises(MemdockError) as refused:
        ids.all_of("a")
    assert refused.value.reason == "STORE_UNREACHABLE"


def said(number: int, word: str) -> Turn:
    return Turn(turn_id=f"t{number}", session_id="s1", role="user", text=f"{word} {'and so on ' * number}", time=MOMENT)


def keep(ids: NativeIds, space: str, memory_id: str, turns: list[Turn]) -> None:
    ids.add(space, [memory_id], [source(turn.turn_id) for turn in turns], keep=turns)


def test_turns_that_are_kept_come_back_whole_and_in_order(ids: NativeIds) -> None:
    turns = [said(2, "persimmon"), replace(said(1, "quince"), role="assistant", name="Anna", metadata={"a": "b"})]
    keep(ids, "a", "m1", turns)
    keep(ids, "a", "m1", turns)
    assert ids.kept("a", "m1") == turns
    assert (ids.kept("b", "m1"), ids.kept("a", "m2")) == ([], [])
    ids.drop("a", ["t2", "t9"])
    assert ids.kept("a", "m1") == turns[1:]
    assert set(ids.sources_of("a", ["m1"])["m1"]) == {source("t1"), source("t2")}


def test_what_is_kept_goes_with_its_memory_and_with_its_space(ids: NativeIds) -> None:
    for memory_id in ("m1", "m2", "m3"):
        keep(ids, "a", memory_id, [said(1, "persimmon")])
    keep(ids, "b", "m1", [said(1, "persimmon")])
    ids.remove("a", ["m1"])
    assert [bool(ids.kept("a", each)) for each in ("m1", "m2", "m3")] == [False, True, True]
    ids.remove_space("a")
    assert [bool(ids.kept("a", each)) for each in ("m1", "m2", "m3")] == [False, False, False]
    assert ids.kept("b", "m1")


def test_a_memory_that_is_spared_keeps_its_turns(ids: NativeIds) -> None:
    ids.remove_turns("a", ["t1", "t2"], but=["m3"])
    assert (ids.all_of("a"), ids.sources_of("a", ["m3"])) == (["m3"], {"m3": (source("t2"),)})


def test_of_many_texts_those_that_go_are_in_no_file(ids: NativeIds, tmp_path: Path) -> None:
    """Pages are split and filled again on the way: what a page has moved elsewhere must not stay on it either."""
    words = [f"persimmon-{number}-" for number in range(90)]
    for number, word in enumerate(words):
        keep(ids, "a", f"m{number % 30}", [said(number, f"{word}{turn}") for turn in range(2)])
        if number % 3 == 2:
            ids.drop("a", [f"t{number - 1}"])
            ids.remove("a", [f"m{(number - 2) % 30}"])
    held = {turn.text.split()[0] for number in range(30) for turn in ids.kept("a", f"m{number}")}
    assert 0 < len(held) < 2 * len(words)
    content = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert [
        word for word in words if word.encode() in content and not any(each.startswith(word) for each in held)
    ] == []
