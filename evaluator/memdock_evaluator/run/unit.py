"""A unit from its dialogue to its rows."""

from dataclasses import dataclass

from memdock_evaluator.dataset import Dialogue
from memdock_evaluator.results.parts import Parts
from memdock_evaluator.results.records import CLOSE, ROWS
from memdock_evaluator.results.rows import Outcome
from memdock_evaluator.run.answering import Answering, keys_of
from memdock_evaluator.run.recall import Recall
from memdock_evaluator.run.rows import RowMaker


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitRun:
    """One system and one dialogue: its memories, its answers, its verdicts, its rows."""

    dialogue: Dialogue
    parts: Parts
    recall: Recall
    answering: Answering
    row_maker: RowMaker
    repeats: int

    async def run(self) -> None:
        """Does what earlier attempts left to do; raises only `RunStoppedError`."""
        recalled = await self.recall.recall(self.dialogue, keys_of(self.dialogue, self.repeats))
        answered = await self.answering.answers(self.dialogue, recalled)
        judged = await self.answering.verdicts(self.dialogue, answered)
        self.parts.write(ROWS, self.row_maker.rows(self.dialogue, recalled, answered, judged))


def is_done(parts: Parts) -> bool:
    """Whether every question has its row, none is to be asked again, and the space was given back if there was one."""
    rows, closed = parts.newest(ROWS), parts.newest(CLOSE)
    asked = bool(rows) and all(row.outcome is not Outcome.INFRASTRUCTURE_ERROR for row in rows)
    return asked and all(end.blame is None for end in closed)
