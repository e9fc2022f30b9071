"""`trials.jsonl`: each canary looked for where it does not belong, at each moment.

No run id, no memory id and no time of the clock, so that two runs on a deterministic system give the same bytes.
"""

from dataclasses import dataclass
from enum import StrEnum

from memdock_evaluator.results.records import Blame
from memdock_evaluator.words.sentence import said

TRIALS = "trials.jsonl"


class Moment(StrEnum):
    """When it is looked for, in the order in which that happens."""

    REST = said("at rest")
    CONCURRENT = said("under concurrency")
    RESTART = said("after a restart")
    FORGET = said("after Forget")
    RESET = said("after Reset")


class Void(StrEnum):
    """Why a trial shows nothing although no leak was seen."""

    NOT_FOUND = "its own user does not find it"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRow:
    """`asker` is asked for the canary that `owner` told as `fact`.

    `leaked_by`: how a canary that the asker may not see was seen: "question" (the fact's), "value" (the canary itself
    as the query), "list" (ListMemories). `leaked_from`: whose it was, the asker's own where it had been forgotten.
    `taken`: the asker's own canary of this fact, which it found before, is gone though only the owner forgot.
    """

    system: str
    language: str
    moment: Moment
    pair: int
    asker: str
    owner: str
    fact: str
    blame: Blame | None = None
    void: Void | None = None
    leaked_by: tuple[str, ...] = ()
    leaked_from: tuple[str, ...] = ()
    taken: bool = False

    @property
    def key(self) -> tuple[str, str, int, int, str, str]:
        """What names the row, and its place in the file."""
        return self.system, self.language, tuple(Moment).index(self.moment), self.pair, self.asker, self.fact
