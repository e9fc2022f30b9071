"""Progress: bars with rates and the time left on a terminal, lines elsewhere; nothing is lost above the bars."""

import io

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
    assert "s left)" in lines[0]
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


@pytest.mark.parametrize("terminal", [True, False])
def test_turns_that_wait_at_the_barrier_are_counted(terminal: bool) -> None:
    text = stored(terminal=terminal)
    assert "turns accepted" in text
    assert "turns processed" in text
    assert "18 wait" in text
