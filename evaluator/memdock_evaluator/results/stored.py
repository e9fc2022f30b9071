"""What is known of a dialogue's storage: how its space was filled, and which turns surely stand behind no memory."""

from collections.abc import Iterable
from dataclasses import dataclass

from memdock_evaluator.results.parts import Parts
from memdock_evaluator.results.records import INGEST, Ingested


def ingested_in(store: Parts) -> Ingested | None:
    """What became of the turns of a space; `None` where nothing was kept of that, or only why it could not be filled.

    Without it nobody knows what the questions were asked of. Raises `PartError`.
    """
    newest = store.newest(INGEST)
    return newest[-1] if newest and newest[-1].blame is None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """`failed`: turns that the system failed to store; `absent`: those that it took and made no memory of.

    `listed`: it lists its memories with their sources, so that every other turn stands behind one.
    """

    failed: frozenset[str] = frozenset()
    absent: frozenset[str] = frozenset()
    listed: bool = False

    @classmethod
    def of(cls, ingested: Iterable[Ingested]) -> "Stored":
        """What the last filling of a space tells."""
        records = list(ingested)
        failed = {turn.turn_id for each in records for turn in each.failed_turns}
        silent = {turn_id for each in records for turn_id in each.turns_without_memory}
        unsourced = {turn_id for each in records for turn_id in each.unsourced_turns or ()}
        return cls(
            failed=frozenset(failed),
            absent=frozenset((silent | unsourced) - failed),
            listed=bool(records) and all(each.unsourced_turns is not None for each in records),
        )
