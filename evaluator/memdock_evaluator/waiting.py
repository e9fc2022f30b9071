"""Silence is told: whoever waits for an endpoint says so while it lasts, not only when it has given up."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

Say: TypeAlias = Callable[[str], None]
"""Shows a sentence to the user."""

SILENT_S = 20.0


def unheard(_: str) -> None:
    """The `Say` where nobody listens."""


class Waiting:
    """The calls of one endpoint that wait for their answers: after each `SILENT_S` without any, it says so."""

    def __init__(self, endpoint: str, say: Say) -> None:
        """`endpoint` is how the sentence begins."""
        self._endpoint, self._say = endpoint, say
        self._calls = 0
        self._heard = 0.0
        self._trouble = ""
        self._timer: asyncio.TimerHandle | None = None

    @contextmanager
    def call(self) -> Iterator[None]:
        """Inside, one call waits, however often it is tried; only an end without an error is an answer."""
        loop = asyncio.get_running_loop()
        if not self._calls:
            self._heard, self._trouble = loop.time(), ""
            self._timer = loop.call_later(SILENT_S, self._look)
        self._calls += 1
        try:
            yield
            self._heard, self._trouble = loop.time(), ""
        finally:
            self._calls -= 1
            if not self._calls and self._timer is not None:
                self._timer.cancel()

    def failed(self, trouble: str) -> None:
        """A try of a call has failed, and there will be another."""
        self._trouble = f"; its last error: {trouble}"

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        silent_s = loop.time() - self._heard
        if silent_s >= SILENT_S:
            self._say(f"{self._endpoint} has not answered for {silent_s:.0f} s{self._trouble}")
            silent_s = 0.0
        self._timer = loop.call_later(SILENT_S - silent_s, self._look)
