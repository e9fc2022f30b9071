"""Structured logs: one JSON object a line; ids and sizes, never the text of a turn, a key or a memory."""

import logging
import sys
import time
import traceback
from collections.abc import MutableMapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Protocol

import orjson
import structlog

from memdock.errors import MemdockError

REPEATED_AFTER_S = 60.0

_log = structlog.get_logger("memdock")


class Lines(Protocol):
    """Where log lines go: what they need of a binary file."""

    def write(self, line: bytes, /) -> Any:
        """Takes a line."""

    def flush(self) -> Any:
        """Called after each line."""


class _Bearing:
    """Lines that cannot be written, as on a full disk, are lost: what is logged about must go on all the same."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines

    def write(self, line: bytes, /) -> None:
        with suppress(OSError, ValueError):
            self._lines.write(line)

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            self._lines.flush()


def set_up_logs(lines: Lines) -> None:
    """Sends every log line of the process there, those of libraries too."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            _add_time,
            structlog.processors.JSONRenderer(serializer=orjson.dumps),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.BytesLoggerFactory(_Bearing(lines)),  # type: ignore[arg-type]  # two methods of a file suffice
        cache_logger_on_first_use=False,
    )
    logging.basicConfig(handlers=[_ToStructlog()], level=logging.WARNING, force=True)


def log_fault(event: str, fault: BaseException, **facts: str) -> None:
    """Tells what failed and where, without the exception's message: that may hold a caller's text.

    An error of the protocol is a warning, since it may pass; anything else is a bug.
    """
    frames = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(fault.__traceback__)]
    level, reason = (logging.WARNING, fault.reason) if isinstance(fault, MemdockError) else (logging.ERROR, "INTERNAL")
    _log.log(level, event, reason=reason, kind=type(fault).__name__, frames=frames, **facts)


def _add_time(_logger: Any, _level: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """The time in UTC where the line has none, as a datetime that orjson writes: half the cost of structlog's stamp."""
    if "timestamp" not in event:
        event["timestamp"] = datetime.now(UTC)
    return event


class _ToStructlog(logging.Handler):
    """Warnings of libraries as lines of the same form.

    Their texts are theirs and may hold a caller's, so only where they come from is told, and the exception that is
    handled there. A place is told once a minute, with the number of times that it was `left_out` since: a stranger must
    not be able to fill the log.
    """

    def __init__(self) -> None:
        super().__init__()
        self._told: dict[tuple[str, str], tuple[float, int]] = {}

    def emit(self, record: logging.LogRecord) -> None:
        place, problem = f"{record.filename}:{record.lineno} {record.funcName}", _problem_of(record)
        now = time.monotonic()
        told, left_out = self._told.get((place, problem), (-REPEATED_AFTER_S, 0))
        if now - told < REPEATED_AFTER_S:
            self._told[place, problem] = told, left_out + 1
            return
        self._told[place, problem] = now, 0
        structlog.get_logger().log(
            record.levelno, "library", logger=record.name, place=place, problem=problem, left_out=left_out
        )


def _problem_of(record: logging.LogRecord) -> str:
    """The class of the exception that the record was written about, empty for none: the first of a chain."""
    _, fault, _ = record.exc_info or sys.exc_info()
    return type(fault.__context__ or fault).__name__ if fault else ""
