"""Rows of `timings.jsonl` for the calls of one unit."""

from collections.abc import Iterable
from dataclasses import dataclass

from memdock.types import StageTiming
from memdock_evaluator.results.parts import Unit
from memdock_evaluator.results.rows import Stage, Timing


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopwatch:
    """Whose calls are timed: a unit's, of one question or of none."""

    unit: Unit
    question_id: str | None = None
    repeat: int = 0

    def timings(self, stage: Stage, ms: float, inner: Iterable[StageTiming] = ()) -> tuple[Timing, ...]:
        """What was waited, then what the system's answer says of its own stages."""
        parts = [("", ms), *((each.stage, each.ms) for each in inner)]
        return tuple(
            Timing(
                system=self.unit.system,
                language=self.unit.language,
                dialogue_id=self.unit.dialogue_id,
                question_id=self.question_id,
                repeat=self.repeat,
                stage=stage,
                inner=name,
                ms=round(spent, 3),
            )
            for name, spent in parts
        )
