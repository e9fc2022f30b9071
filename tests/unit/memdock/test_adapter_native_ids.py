"""The map from a framework's memories to the turns that they came from."""

from pathlib import Path

import pytest

from memdock.adapter.native_ids import NativeIds
from memdock.errors import MemdockError
from memdock.types import Source


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


def test_a_memory_outlives_one_of_its_turns_and_not_the_last(ids: NativeIds) -> None:
    ids.remove_turns("a", ["t1"])
    assert ids.sources_of("a", ["m1"]) == {"m1": (source("t2"),)}
    ids.remove_turns("a", ["t2", "t9"])
    assert (ids.all_of("a"), ids.all_of("b")) == ([], ["m1"])


def test_it_is_there_after_a_restart(ids: NativeIds, tmp_path: Path) -> None:
    ids.close()
    assert NativeIds(tmp_path / "ids.sqlite").all_of("a") == ["m1", "m2", "m3"]


def test_a_file_that_cannot_be_used_is_told_as_the_store(ids: NativeIds) -> None:
    ids._db.execute("DROP TABLE made")
    with pytest.raises(MemdockError) as refused:
        ids.all_of("a")
    assert refused.value.reason == "STORE_UNREACHABLE"
