"""Ends that are asked for: Ctrl-C, SIGTERM and a closed terminal end a command at a place where that is safe."""

import asyncio
import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

ResultT = TypeVar("ResultT")

_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1  # of Linux's prctl.h
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Notice:
    """Whether this process was told to end."""

    def __init__(self) -> None:
        self.given = False

    def give(self) -> None:
        """Tells it."""
        self.given = True

    def heed(self) -> None:
        """Raises `KeyboardInterrupt` where it was told."""
        if self.given:
            raise KeyboardInterrupt


@contextmanager
def noticing() -> Iterator[Notice]:
    """Inside, a signal interrupts nothing: it gives notice, which whoever can end in order looks at."""
    notice = Notice()
    with _on_signals(notice.give):
        yield notice


def run_until_told(work: Coroutine[Any, Any, ResultT]) -> ResultT:
    """`asyncio.run`, with `work` cancelled by a signal; then raises `KeyboardInterrupt`.

    On uvloop, which spends less on a call, where it is installed.
    """

    async def cancellable() -> ResultT:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        with _on_signals(lambda: loop.call_soon_threadsafe(task.cancel)):
            return await work

    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            return runner.run(cancellable())
    except asyncio.CancelledError as error:
        raise KeyboardInterrupt from error


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:  # there is none for Windows
        return None
    return uvloop.new_event_loop


@contextmanager
def _on_signals(act: Callable[[], object]) -> Iterator[None]:
    """Not on other threads, which get no signals, and not for a signal that is ignored, as `nohup` has it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    heard = {number: handler for number, handler in before.items() if handler is not signal.SIG_IGN}
    for number in heard:
        signal.signal(number, lambda *_: act())
    try:
        yield
    finally:
        for number, handler in heard.items():
            signal.signal(number, handler)


def end_with_parent(parent: int) -> None:
    """This process gets SIGTERM when its parent, which was `parent`, has ended, however that came about.

    Linux alone can do this; elsewhere what a killed process had started must be ended by hand.
    """
    if sys.platform == "linux":
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # it has ended meanwhile
            os._exit(1)
