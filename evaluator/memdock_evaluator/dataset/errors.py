"""What a reader says when a file cannot be read."""

from pathlib import Path

_MOST = 600
"""Characters of a part of a message."""


class DatasetError(ValueError):
    """A data file that is broken beyond repair; the message names the place, what was expected and what to do.

    `record` counts from 1: the line of a JSON-lines file, the element of an array, the row of a table; `None`: the
    file as a whole. `field` is a path inside the record such as `qa[3].question`. What a message quotes of the file is
    cut where it is long.
    """

    def __init__(
        self, problem: str, *, path: Path | str, record: int | None = None, field: str = "", remedy: str = ""
    ) -> None:
        """Build the message from its parts; `problem` and `remedy` are sentences without a full stop."""
        self.problem, self.path, self.record, self.field, self.remedy = problem, Path(path), record, field, remedy
        place = str(path)
        if record is not None:
            place += f", record {record}"
        if field:
            place += f", field {_cut(field)}"
        super().__init__(f"{place}: {_cut(problem)}" + (f"; {remedy}" if remedy else ""))


def _cut(words: str) -> str:
    return words if len(words) <= _MOST else f"{words[:_MOST]} ..."
