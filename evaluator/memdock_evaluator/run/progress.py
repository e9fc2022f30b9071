"""How far a run is: bars on a terminal, a line now and then elsewhere; rates and the time left in both.

The time left is told from the recent rate, and not before enough is done for it to mean something.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, Self, TypeAlias

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, Task, TaskID, TextColumn
from rich.progress import Progress as Bars
from rich.text import Text

_LINE_EVERY_S = 15.0
_RECENT_S = 30.0
"""The rate is that of the last 30 to 60 seconds."""
_LEAST_S, _LEAST_STEPS, _LEAST_SHARE = 10.0, 3, 0.05
"""How long, in how many steps and how much of the whole must be done before the time left is told."""

Clock: TypeAlias = Callable[[], float]


class Work(StrEnum):
    """What is counted. Of the turns that a system has accepted, it still works on those that are not processed."""

    ACCEPTED = "turns accepted"
    PROCESSED = "turns processed"
    RETRIEVALS = "questions retrieved"
    ANSWERS = "questions answered"
    VERDICTS = "answers judged"


class Progress(Protocol):
    """Where a run tells how far it is."""

    def expect(self, work: Work, total: int) -> None:
        """How much there is to do."""

    def advance(self, work: Work, done: int = 1) -> None:
        """More of it is done."""

    def say(self, line: str) -> None:
        """A sentence for the user, above the bars."""

    def __enter__(self) -> Self:
        """Begins to show."""

    def __exit__(self, *_: object) -> None:
        """Shows the end."""


def show_progress(console: Console, clock: Clock = time.monotonic) -> Progress:
    """Bars where `console` is a terminal, else lines. `clock`: seconds from any start."""
    return _BarProgress(console, clock) if console.is_terminal else _LineProgress(console, clock)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mark:
    at_s: float
    done: int


class _Pace:
    """How fast one kind of work goes: since the older of two marks, of which a new one is made now and then."""

    def __init__(self, total: int, now_s: float) -> None:
        self.total, self.done = total, 0
        self._steps, self._started_s = 0, now_s
        self._older = self._newer = _Mark(at_s=now_s, done=0)

    def add(self, done: int, now_s: float) -> None:
        self.done += done
        self._steps += 1
        if now_s - self._newer.at_s >= _RECENT_S:
            self._older, self._newer = self._newer, _Mark(at_s=now_s, done=self.done)

    def rate(self, now_s: float) -> float:
        """Of late, a second; of all the time where all is done."""
        since = _Mark(at_s=self._started_s, done=0) if self.done >= self.total else self._older
        passed_s = now_s - since.at_s
        return (self.done - since.done) / passed_s if passed_s > 0 else 0.0

    def left_s(self, now_s: float) -> float | None:
        """Seconds to the end; `None` where it cannot be told yet, and at the end."""
        told = (
            now_s - self._started_s >= _LEAST_S
            and self._steps >= _LEAST_STEPS
            and _LEAST_SHARE * self.total <= self.done < self.total
        )
        rate = self.rate(now_s)
        return (self.total - self.done) / rate if told and rate > 0 else None


class _Rate(ProgressColumn):
    """The rate and the time left."""

    def __init__(self, counts: "_Counts") -> None:
        super().__init__()
        self._counts = counts

    def render(self, task: Task) -> Text:
        return Text(self._counts.speed(Work(task.description)), style="dim")


class _Counts:
    """What was done of what there is to do; work of which there is none does not show."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.paces: dict[Work, _Pace] = {}

    def expect(self, work: Work, total: int) -> None:
        if total:
            self.paces[work] = _Pace(total, self._clock())

    def add(self, work: Work, done: int) -> bool:
        """Whether it shows."""
        if work in self.paces:
            self.paces[work].add(done, self._clock())
        return work in self.paces

    def speed(self, work: Work) -> str:
        """ "2.0/s, 35 s left"."""
        pace, now_s = self.paces[work], self._clock()
        left_s = pace.left_s(now_s)
        return f"{pace.rate(now_s):,.1f}/s" + ("" if left_s is None else f", {left_s:,.0f} s left")

    def note(self, work: Work) -> str:
        """How many turns wait at the barrier, beside those that do not any more."""
        accepted, processed = self.paces.get(Work.ACCEPTED), self.paces.get(Work.PROCESSED)
        waiting = accepted.done - processed.done if accepted and processed else 0
        return f"{waiting} wait" if work is Work.PROCESSED and waiting > 0 else ""


class _BarProgress:
    def __init__(self, console: Console, clock: Clock) -> None:
        self._counts = _Counts(clock)
        columns = (
            TextColumn("{task.description:<20}"),
            BarColumn(),
            MofNCompleteColumn(),
            _Rate(self._counts),
            TextColumn("{task.fields[note]}"),
        )
        self._bars = Bars(*columns, console=console)
        self._tasks: dict[Work, TaskID] = {}

    def expect(self, work: Work, total: int) -> None:
        self._counts.expect(work, total)
        if total:
            self._tasks[work] = self._bars.add_task(work.value, total=total, note="")

    def advance(self, work: Work, done: int = 1) -> None:
        if self._counts.add(work, done):
            self._bars.advance(self._tasks[work], done)
            for each, task in self._tasks.items():
                self._bars.update(task, note=self._counts.note(each))

    def say(self, line: str) -> None:
        self._bars.console.print(line, markup=False, highlight=False, soft_wrap=True)

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()


class _LineProgress:
    def __init__(self, console: Console, clock: Clock) -> None:
        self._console, self._clock = console, clock
        self._counts = _Counts(clock)
        self._started = self._said = clock()

    def expect(self, work: Work, total: int) -> None:
        self._counts.expect(work, total)

    def advance(self, work: Work, done: int = 1) -> None:
        if self._counts.add(work, done) and self._clock() - self._said >= _LINE_EVERY_S:
            self._line()

    def say(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def __enter__(self) -> Self:
        self._started = self._said = self._clock()
        return self

    def __exit__(self, *_: object) -> None:
        self._line()

    def _line(self) -> None:
        self._said = self._clock()
        elapsed_s = self._said - self._started
        self.say(f"{elapsed_s:.0f} s: " + "; ".join(map(self._state, self._counts.paces)))

    def _state(self, work: Work) -> str:
        pace = self._counts.paces[work]
        notes = filter(None, (self._counts.speed(work), self._counts.note(work)))
        return f"{pace.done}/{pace.total} {work.value} ({', '.join(notes)})"
