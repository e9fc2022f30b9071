"""Silence of an endpoint is told while it lasts."""

import asyncio

import pytest

from memdock_evaluator import waiting
from memdock_evaluator.waiting import Waiting


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "SILENT_S", 0.01)


class Said:
    """What was said, and an event for the next sentence."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.heard = asyncio.Event()

    def __call__(self, line: str) -> None:
        self.lines.append(line)
        self.heard.set()

    async def next(self) -> str:
        self.heard.clear()
        await asyncio.wait_for(self.heard.wait(), 10)
        return self.lines[-1]


async def test_it_is_told_again_and_again_with_the_last_trouble() -> None:
    said = Said()
    calls = Waiting("the judge", said)
    with calls.call():
        assert await said.next() == "the judge has not answered for 0 s"
        calls.failed("answers 503: loading")
        assert await said.next() == "the judge has not answered for 0 s; its last error: answers 503: loading"


async def test_one_answer_among_many_calls_breaks_the_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    said = Said()
    calls = Waiting("the judge", said)
    with calls.call():
        calls.failed("answers 503: loading")
        with calls.call():
            pass
        assert await said.next() == "the judge has not answered for 0 s", "the trouble was before"


async def test_nobody_waits_nothing_is_told() -> None:
    said, others = Said(), Said()
    calls = Waiting("the judge", said)
    with calls.call():
        pass
    with pytest.raises(ValueError, match="given up"), calls.call():
        raise ValueError("given up")
    with Waiting("another", others).call():
        for _ in range(3):
            await others.next()
    assert said.lines == []
