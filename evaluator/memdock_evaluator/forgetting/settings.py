"""What the suite was asked to do, beside what it shares with a run."""

from dataclasses import dataclass

from memdock_evaluator.forgetting.modes import Mode
from memdock_evaluator.run.settings import RunSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgettingSettings:
    """`targets`: of each dialogue, the questions whose evidence is forgotten; `run.seed` draws them.

    `replies`: the questions are also put to the answer model, before and after.
    """

    run: RunSettings
    modes: tuple[Mode, ...] = tuple(Mode)
    targets: int = 5
    replies: bool = False
