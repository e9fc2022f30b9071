"""A framework that is given pairs: what becomes of the half that stays is told, also by a Forget that is repeated."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from memdock.adapter.framework_calls import FrameworkCalls
from memdock.adapter.grouped import GroupedSystem
from memdock.adapter.native_ids import NativeIds
from memdock.errors import UnavailableError, error
from memdock.types import Erasure, Residue, Selection, Turn, TurnState

A_FORGOTTEN = Selection(turn_ids=("a",))


class Framework(GroupedSystem):
    """One memory a turn; `silent` turns give none, `fault` is what an add raises."""

    def __init__(self, ids: NativeIds) -> None:
        super().__init__(FrameworkCalls("toy", store="A dict", store_packages=()), ids, pairs=True)
        self.silent: set[str] = set()
        self.fault: Exception | None = None
        self.held: dict[str, str] = {}
        """The group of each memory."""
        self._count = 0

    def _store(self, space: str, turns: Sequence[Turn], group: str) -> list[str]:
        if self.fault is not None:
            raise self.fault
        made = []
        for turn in turns:
            if turn.turn_id not in self.silent:
                self._count += 1
                made.append(f"m{self._count}")
        self.held |= dict.fromkeys(made, group)
        return made

    async def _memories_of(self, space: str, groups: Sequence[str]) -> list[str]:
        return [memory_id for memory_id, group in self.held.items() if group in groups]

    async def _group_of(self, space: str, memory_id: str) -> str | None:
        return self.held.get(memory_id)

    async def _erase(self, space: str, groups: Sequence[str]) -> tuple[Residue, ...]:
        self.held = {memory_id: group for memory_id, group in self.held.items() if group not in groups}
        return ()


@pytest.fixture
def framework(tmp_path: Path) -> Framework:
    return Framework(NativeIds(tmp_path / "ids.sqlite"))


async def store_pair(framework: Framework) -> None:
    pair = [
        Turn(turn_id="a", session_id="s", role="user", text="hello"),
        Turn(turn_id="b", session_id="s", role="assistant", text="hi"),
    ]
    batch = await framework.add("space", pair, final=True)
    assert [each.state for each in batch.outcomes] == [TurnState.SEARCHABLE] * 2


async def forget_a(framework: Framework) -> Erasure:
    return await framework.forget("space", A_FORGOTTEN, dry_run=False)


def told(erasure: Erasure) -> list[tuple[str, TurnState, tuple[str, ...]]]:
    return [(each.turn_id, each.state, each.memory_ids) for each in erasure.changed]


async def test_what_became_of_a_half_is_told_as_often_as_it_is_asked(framework: Framework) -> None:
    await store_pair(framework)
    first = await forget_a(framework)
    assert (first.erased_memory_ids, first.erased_turn_ids) == (("m1", "m2"), ("a",))
    assert told(first) == [("b", TurnState.SEARCHABLE, ("m3",))]
    again = await forget_a(framework)  # as after a kill before the ledger heard of the first
    assert told(again) == told(first)
    assert (again.erased_memory_ids, list(framework.held)) == ((), ["m3"])


async def test_a_half_without_a_memory_is_told_as_often(framework: Framework) -> None:
    await store_pair(framework)
    framework.silent.add("b")
    assert told(await forget_a(framework)) == [("b", TurnState.NO_MEMORY, ())]
    assert told(await forget_a(framework)) == [("b", TurnState.NO_MEMORY, ())]


async def test_a_half_that_cannot_be_stored_is_failed_until_it_can(framework: Framework) -> None:
    await store_pair(framework)
    framework.fault = error("PROVIDER_PROTOCOL_ERROR", "no JSON")
    (failed,) = (await forget_a(framework)).changed
    assert failed.error is not None
    assert (failed.turn_id, failed.state, failed.error.reason) == ("b", TurnState.FAILED, "PROVIDER_PROTOCOL_ERROR")
    framework.fault = None
    assert told(await forget_a(framework)) == [("b", TurnState.SEARCHABLE, ("m3",))]


async def test_a_failure_that_may_pass_is_raised_and_the_half_stays_noted(framework: Framework) -> None:
    await store_pair(framework)
    framework.fault = error("PROVIDER_UNREACHABLE", "away")
    with pytest.raises(UnavailableError):
        await forget_a(framework)
    framework.fault = None
    assert told(await forget_a(framework)) == [("b", TurnState.SEARCHABLE, ("m3",))]


async def test_of_a_half_that_went_too_nothing_is_told(framework: Framework) -> None:
    await store_pair(framework)
    await forget_a(framework)
    await framework.forget("space", Selection(turn_ids=("b",)), dry_run=False)
    assert told(await forget_a(framework)) == []
    assert framework.held == {}


async def test_a_dry_run_and_a_forget_by_memory_store_nothing(framework: Framework) -> None:
    await store_pair(framework)
    assert told(await framework.forget("space", A_FORGOTTEN, dry_run=True)) == []
    erasure = await framework.forget("space", Selection(memory_ids=("m1", "zz")), dry_run=False)
    assert (set(erasure.erased_turn_ids), erasure.not_found, told(erasure)) == ({"a", "b"}, ("zz",), [])
    assert framework.held == {}
