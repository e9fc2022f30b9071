"""What a system showed of a pair at a moment, kept as the moment ends, so that a suite that was killed goes on."""

from dataclasses import dataclass
from types import MappingProxyType

from pydantic import TypeAdapter

from memdock_evaluator.leaks.rows import Moment, TrialRow
from memdock_evaluator.leaks.trials import Pairing
from memdock_evaluator.leaks.twins import Pair
from memdock_evaluator.results.folder import Folder
from memdock_evaluator.results.parts import Parts, Unit
from memdock_evaluator.results.records import Kind
from memdock_evaluator.run.settling import settled


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentRows:
    """A pair's trials, and what each of the two found of its own (`trials.Pairing`), sorted."""

    rows: tuple[TrialRow, ...]
    first: tuple[str, ...] = ()
    second: tuple[str, ...] = ()

    @property
    def pairing(self) -> Pairing:
        """What the next moment compares with."""
        return Pairing(first=frozenset(self.first), second=frozenset(self.second))


KINDS = MappingProxyType({moment: Kind(moment.name.lower(), TypeAdapter(MomentRows)) for moment in Moment})
"""By moment, the part that keeps it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The parts of one system."""

    folder: Folder
    system: str

    def of(self, moment: Moment, pair: Pair) -> MomentRows | None:
        """What an earlier attempt kept; `None` where it did not get there or failed for want of infrastructure."""
        found = self._parts(pair).newest(KINDS[moment])
        return found[-1] if found and all(settled(row.blame) for row in found[-1].rows) else None

    def keep(self, moment: Moment, pair: Pair, rows: MomentRows) -> None:
        """Writes it."""
        self._parts(pair).write(KINDS[moment], [rows])

    def _parts(self, pair: Pair) -> Parts:
        language, number = pair.key
        return Parts(self.folder, Unit(system=self.system, language=language, dialogue_id=f"pair-{number}"))
