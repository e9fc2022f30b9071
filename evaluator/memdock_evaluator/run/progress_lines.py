"""How far a run is, for programs: a JSON object a line.

{"done": {"turns accepted": [12, 840]}} tells done and total of each kind of work, at most once a second and at the end;
{"said": "..."} is a sentence for the user.
"""

import time
from typing import Self, TextIO

import orjson

from memdock_evaluator.run.progress import Clock, Work

_EVERY_S = 1.0


class ProgressLines:
    """A `Progress` that writes to `file`. `clock`: seconds from any start."""

    def __init__(self, file: TextIO, clock: Clock = time.monotonic) -> None:
        self._file, self._clock = file, clock
        self._counts: dict[Work, list[int]] = {}
        self._told = float("-inf")

    def expect(self, work: Work, total: int) -> None:
        """Work of which there is none does not show."""
        if total:
            self._counts[work] = [0, total]

    def advance(self, work: Work, done: int = 1) -> None:
        """More of it is done."""
        if work in self._counts:
            self._counts[work][0] += done
            if self._clock() - self._told >= _EVERY_S:
                self._tell()

    def say(self, line: str) -> None:
        """Writes the sentence at once."""
        self._write({"said": line})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._tell()

    def _tell(self) -> None:
        self._told = self._clock()
        self._write({"done": {work.value: counts for work, counts in self._counts.items()}})

    def _write(self, line: object) -> None:
        self._file.write(orjson.dumps(line).decode() + "\n")
        self._file.flush()
