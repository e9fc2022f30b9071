"""Progress: bars with rates and the time left on a terminal, lines elsewhere; nothing is lost above the bars."""

import io
from collections.abc import Sequence

import pytest
from rich.console import Console

from memdock_evaluator.run import progress
from memdock_evaluator.run.progress import Work, show_progress


def shown(*, terminal: bool) -> str:
    said = io.StringIO()
    shows = show_progress(Console(file=said, force_terminal=terminal, width=120))
    with shows:
        shows.expect(Work.ACCEPTED, 0)
        shows.expect(Work.ANSWERS, 40)
        shows.advance(Work.ANSWERS, 10)
        shows.advance(Work.ACCEPTED, 5)
        shows.say("toy: something [odd] happened")
        shows.advance(Work.ANSWERS, 20)
    return said.getvalue()


def test_bars_on_a_terminal() -> None:
    text = shown(terminal=True)
    assert "questions answered" in text
    assert "30/40" in text
    assert "/s" in text
    assert "toy: something [odd] happened" in text
    assert "turns accepted" not in text, "there is nothing to store"


def test_lines_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_LINE_EVERY_S", 0.0)
    lines = shown(terminal=False).splitlines()
    assert lines[0].startswith("0 s: 10/40 questions answered (")
    assert "left" not in lines[0], "ten at once say nothing about the time left"
    assert lines[1] == "toy: something [odd] happened"
    assert lines[-1].startswith("0 s: 30/40 questions answered (")


def test_lines_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_LINE_EVERY_S", 3600.0)
    assert len(shown(terminal=False).splitlines()) == 2


def stored(*, terminal: bool) -> str:
    said = io.StringIO()
    shows = show_progress(Console(file=said, force_terminal=terminal, width=120))
    with shows:
        for work in (Work.ACCEPTED, Work.PROCESSED):
            shows.expect(work, 40)
        shows.advance(Work.ACCEPTED, 30)
        shows.advance(Work.PROCESSED, 12)
    return said.getvalue()


class Clock:
    """Seconds as the test has them pass."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def lines_of(steps: Sequence[tuple[float, int]], total: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A line after each step: seconds that pass, and what is done in them."""
    monkeypatch.setattr(progress, "_LINE_EVERY_S", 0.0)
    said, clock = io.StringIO(), Clock()
    with show_progress(Console(file=said, width=120), clock) as shows:
        shows.expect(Work.ANSWERS, total)
        for passed_s, done in steps:
            clock.now += passed_s
            shows.advance(Work.ANSWERS, done)
    return said.getvalue().splitlines()


def test_the_time_left_is_told_when_enough_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = lines_of([(45, 2), (5, 8), (5, 10), (5, 10)], 472, monkeypatch)
    assert lines[0] == "45 s: 2/472 questions answered (0.0/s)"
    assert ["left" in line for line in lines[:4]] == [False, False, False, True]
    assert lines_of([(2, 20), (2, 20), (2, 20)], 100, monkeypatch)[2].endswith("(10.0/s)"), "six seconds are too few"


def test_the_time_left_is_by_the_recent_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    slow, quick = [(40.0, 1)] * 5, [(10.0, 20)] * 8
    lines = lines_of(slow + quick, 365, monkeypatch)
    assert lines[4] == "200 s: 5/365 questions answered (0.0/s)"
    assert lines[12] == "280 s: 165/365 questions answered (2.0/s, 100 s left)"


def test_a_bar_has_the_same_time_left() -> None:
    said, clock = io.StringIO(), Clock()
    with show_progress(Console(file=said, force_terminal=True, width=120), clock) as shows:
        shows.expect(Work.ANSWERS, 100)
        for _ in range(4):
            clock.now += 5
            shows.advance(Work.ANSWERS, 10)
    assert "2.0/s, 30 s left" in said.getvalue()


@pytest.mark.parametrize("terminal", [True, False])
def test_turns_that_wait_at_the_barrier_are_counted(terminal: bool) -> None:
    text = stored(terminal=terminal)
    assert "turns accepted" in text
    assert "turns processed" in text
    assert "18 wait" in text
