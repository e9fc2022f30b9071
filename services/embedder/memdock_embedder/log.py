"""The log: one JSON object a line. A line that cannot be written, as on a full disk, is lost, and the work goes on."""

from contextlib import suppress
from typing import TextIO

import structlog


class _Bearing:
    """What a log needs of a file."""

    def __init__(self, lines: TextIO) -> None:
        self._lines = lines

    def write(self, text: str, /) -> int:
        with suppress(OSError, ValueError):
            self._lines.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            self._lines.flush()


def set_up_log(lines: TextIO) -> None:
    """Sends the log there."""
    structlog.configure(
        processors=[
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.add_log_level,
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        logger_factory=structlog.WriteLoggerFactory(_Bearing(lines)),  # type: ignore[arg-type]  # two methods of a file suffice
    )
