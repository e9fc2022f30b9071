"""A user's turn and the reply that follows it in its session, which belong together, or a lone turn."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

from memdock.adapter.framework_calls import failed, outcome_of
from memdock.adapter.native_ids import NativeIds
from memdock.engine.faults import is_passing
from memdock.errors import MemdockError
from memdock.system import Batch, Outcome
from memdock.types import Turn, TurnResult

# An open user turn waits for its reply, but not while more turns than this of other sessions come in between.
MAX_GAP = 32


def group_turns(turns: Sequence[Turn], *, final: bool) -> list[tuple[int, ...]]:
    """Places of the turns of each pair or lone turn, in the order of their first turns.

    Unless `final`, an opening turn that may yet be answered belongs to no group, and neither does what stands after it:
    the groups cover a prefix of `turns`.
    """
    groups: list[tuple[int, ...]] = []
    open_by_session: dict[str, int] = {}
    for place, turn in enumerate(turns):
        opened = open_by_session.pop(turn.session_id, None)
        if opened is not None and place - opened - 1 <= MAX_GAP and _answers(turns[opened], turn):
            groups.append((opened, place))
            continue
        if opened is not None:
            groups.append((opened,))
        if _opens(turn):
            open_by_session[turn.session_id] = place
        else:
            groups.append((place,))
    waiting = []
    for place in open_by_session.values():
        if final or len(turns) - place - 1 > MAX_GAP:
            groups.append((place,))
        else:
            waiting.append(place)
    return sorted(_prefix(groups, min(waiting, default=len(turns))))


async def add_groups(
    turns: Sequence[Turn], groups: Sequence[tuple[int, ...]], add: Callable[[Sequence[Turn]], Awaitable[Outcome]]
) -> Batch:
    """Adds one group after the other; all turns of a group have its outcome."""
    outcomes: dict[int, Outcome] = {}
    for group in groups:
        outcome = await add([turns[place] for place in group])
        outcomes |= dict.fromkeys(group, outcome)
    return Batch(outcomes=[outcomes[place] for place in sorted(outcomes)])


def halves_of(
    ids: NativeIds, space: str, memory_ids: Sequence[str], forgotten: Collection[str]
) -> dict[str, list[Turn]]:
    """For each memory, what is kept of its turns and not forgotten."""
    return {each: [turn for turn in ids.kept(space, each) if turn.turn_id not in forgotten] for each in memory_ids}


class Halves:
    """Stores halves of pairs anew, each alone, once the others are erased.

    `remember` stores turns by one add; `memories_of` gives the ids of a turn's memories. What became of a half is told
    again where a Forget is repeated, since a kill may have kept the first telling from the ledger.
    """

    def __init__(
        self,
        ids: NativeIds,
        remember: Callable[[str, Sequence[Turn]], Awaitable[Sequence[str]]],
        memories_of: Callable[[str, str], Awaitable[Sequence[str]]],
    ) -> None:
        self._ids = ids
        self._remember = remember
        self._memories_of = memories_of

    async def store_anew(
        self, space: str, halves: Mapping[str, Sequence[Turn]], groups: Sequence[str], forgotten: Collection[str]
    ) -> tuple[TurnResult, ...]:
        """Of `groups`, which are erased, nothing is noted afterwards. `halves`: the turns of each that stay.

        Answers what became of all turns that were ever stored anew without `forgotten` ones. One that cannot be is
        FAILED; its group stays noted, so that the same Forget tries it again, and so does whoever sends the turn again.
        A failure that may pass is raised.
        """
        outcomes: dict[str, Outcome] = {}
        open_groups: set[str] = set()
        for group, turns in halves.items():
            if not turns:
                continue
            turn_ids = [turn.turn_id for turn in turns]
            try:
                await self._remember(space, turns)
            except MemdockError as fault:
                if is_passing(fault):
                    raise
                open_groups.add(group)
                outcomes |= dict.fromkeys(turn_ids, failed(fault))
            else:
                await asyncio.to_thread(self._ids.store_anew, space, group, turn_ids)
        await asyncio.to_thread(self._ids.remove, space, [each for each in groups if each not in open_groups])
        for turn_id in await asyncio.to_thread(self._ids.stored_anew, space, forgotten):
            if turn_id not in outcomes:
                outcomes[turn_id] = await outcome_of(self._memories_of(space, turn_id))
        return tuple(
            TurnResult(turn_id=turn_id, state=each.state, memory_ids=each.memory_ids, error=each.error)
            for turn_id, each in outcomes.items()
        )


def _prefix(groups: list[tuple[int, ...]], end: int) -> list[tuple[int, ...]]:
    """The groups before `end`, less those that reach over it, and all after the first of those."""
    while (cut := min((group[0] for group in groups if group[0] < end <= group[-1]), default=end)) < end:
        end = cut
    return [group for group in groups if group[-1] < end]


def _opens(turn: Turn) -> bool:
    # A named speaker is a person, whatever the role: of two people either may begin.
    return turn.role == "user" or (turn.role == "assistant" and bool(turn.name))


def _answers(opening: Turn, turn: Turn) -> bool:
    return {opening.role, turn.role} == {"user", "assistant"}
