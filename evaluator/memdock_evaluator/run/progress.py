"""How far a run is: bars on a terminal, a line now and then elsewhere; rates and the time left in both."""

import time
from enum import StrEnum
from typing import Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Task, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars
from rich.text import Text

_LINE_EVERY_S = 15.0


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


def show_progress(console: Console) -> Progress:
    """Bars where `console` is a terminal, else lines."""
    return _BarProgress(console) if console.is_terminal else _LineProgress(console)


class _Rate(TextColumn):
    def __init__(self) -> None:
        super().__init__("")

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed or 0.0:,.1f}/s", style="dim")


class _Counts:
    """What was done of what there is to do; work of which there is none does not show."""

    def __init__(self) -> None:
        self.total: dict[Work, int] = {}
        self.done: dict[Work, int] = {}

    def expect(self, work: Work, total: int) -> None:
        if total:
            self.total[work], self.done[work] = total, 0

    def add(self, work: Work, done: int) -> bool:
        """Whether it shows."""
        if work in self.done:
            self.done[work] += done
        return work in self.done

    def note(self, work: Work) -> str:
        """How many turns wait at the barrier, beside those that do not any more."""
        waiting = self.done.get(Work.ACCEPTED, 0) - self.done.get(Work.PROCESSED, 0)
        return f"{waiting} wait" if work is Work.PROCESSED and waiting > 0 else ""


class _BarProgress:
    def __init__(self, console: Console) -> None:
        columns = (
            TextColumn("{task.description:<20}"),
            BarColumn(),
            MofNCompleteColumn(),
            _Rate(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
        )
        self._bars = Bars(*columns, console=console)
        self._counts = _Counts()
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
    def __init__(self, console: Console) -> None:
        self._console = console
        self._counts = _Counts()
        self._started = self._said = time.monotonic()

    def expect(self, work: Work, total: int) -> None:
        self._counts.expect(work, total)

    def advance(self, work: Work, done: int = 1) -> None:
        if self._counts.add(work, done) and time.monotonic() - self._said >= _LINE_EVERY_S:
            self._line()

    def say(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def __enter__(self) -> Self:
        self._started = self._said = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        self._line()

    def _line(self) -> None:
        self._said = time.monotonic()
        elapsed_s = self._said - self._started
        self.say(f"{elapsed_s:.0f} s: " + "; ".join(self._state(work, elapsed_s) for work in self._counts.total))

    def _state(self, work: Work, elapsed_s: float) -> str:
        done, total = self._counts.done[work], self._counts.total[work]
        rate = done / elapsed_s if elapsed_s > 0 else 0.0
        left = f"{(total - done) / rate:.0f} s left" if rate > 0 and done < total else ""
        return (
            f"{done}/{total} {work.value} ({', '.join(filter(None, (f'{rate:.1f}/s', left, self._counts.note(work))))})"
        )
