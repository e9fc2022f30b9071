"""Where the gateway's log lines go: standard output, in bursts.

Lines are gathered for a tenth of a second and written together: a write system call for each would cost a tenth of a
call's own time.
"""

import asyncio
import sys
from typing import BinaryIO

from memdock import log

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


def set_up_logs(file: BinaryIO | None = None) -> GatheredLines:
    """Sends every log line of the process to `file` (default: standard output)."""
    lines = GatheredLines(file or sys.stdout.buffer)
    log.set_up_logs(lines)
    return lines
