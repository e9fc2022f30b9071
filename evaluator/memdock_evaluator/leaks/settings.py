"""What the suite was asked to do, beside what it shares with a run."""

from dataclasses import dataclass

from memdock_evaluator.run.settings import RunSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class LeakSettings:
    """`pairs` of twins a language, drawn by `run.seed`; `run.concurrency` calls at once under concurrency.

    `restart_command` restarts what is tested, as words; empty: nothing is asked after a restart.
    """

    run: RunSettings
    languages: tuple[str, ...]
    pairs: int = 5
    restart_command: tuple[str, ...] = ()
    restart_timeout_s: float = 300.0
