"""What is known of a dialogue's storage: which turns surely stand behind no memory."""

from collections.abc import Iterable
from dataclasses import dataclass

from memdock_evaluator.results.records import Ingested


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
