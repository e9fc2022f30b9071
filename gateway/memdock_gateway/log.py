"""Structured logs: one JSON object a line on standard output, one line a call; ids and sizes, never content.

Lines are gathered for a tenth of a second and written together: a write system call for each would cost a tenth of a
call's own time.
"""

import asyncio
import logging
import sys
from collections.abc import MutableMapping
from datetime import UTC, datetime
from typing import Any, BinaryIO

import orjson
import structlog

GATHER_S = 0.1


class GatheredLines:
    """A file for `structlog.BytesLogger` that writes in bursts while an event loop runs, and at once otherwise."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._lines: list[bytes] = []

    def write(self, line: bytes) -> None:
        """Keeps the line for the next burst."""
        self._lines.append(line)
        if len(self._lines) > 1:
            return
        try:
            asyncio.get_running_loop().call_later(GATHER_S, self.write_out)
        except RuntimeError:
            self.write_out()

    def flush(self) -> None:
        """Called after each line by the logger; the burst does it."""

    def write_out(self) -> None:
        """Writes what was gathered."""
        lines, self._lines = self._lines, []
        self._file.write(b"".join(lines))
        self._file.flush()


def _add_time(_logger: Any, _level: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """The time in UTC, as a datetime that orjson writes by itself: half the cost of structlog's own stamp."""
    event["timestamp"] = datetime.now(UTC)
    return event


class _ToStructlog(logging.Handler):
    """Warnings of libraries as lines of the same form; their texts are theirs, so only where they come from is told."""

    def emit(self, record: logging.LogRecord) -> None:
        structlog.get_logger().log(
            record.levelno,
            "library",
            logger=record.name,
            place=f"{record.filename}:{record.lineno}",
            problem=record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else "",
        )


def set_up_logs(file: BinaryIO | None = None) -> GatheredLines:
    """Sends every log line of the process to `file` (default: standard output)."""
    lines = GatheredLines(file or sys.stdout.buffer)
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            _add_time,
            structlog.processors.JSONRenderer(serializer=orjson.dumps),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.BytesLoggerFactory(lines),  # type: ignore[arg-type]  # two methods of a file suffice
        cache_logger_on_first_use=False,
    )
    logging.basicConfig(handlers=[_ToStructlog()], level=logging.WARNING, force=True)
    return lines
