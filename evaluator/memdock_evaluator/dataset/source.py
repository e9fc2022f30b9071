"""A data file as its reader sees it: numbered records, checked against the shape that the format promises."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from memdock_evaluator.dataset.errors import DatasetError
from memdock_evaluator.dataset.records import read_records
from memdock_evaluator.dataset.times import TimeParser

ShapeT = TypeVar("ShapeT", bound=BaseModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One record of a file; `number` counts from 1."""

    number: int
    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A file with what whoever opens it declares: the zone of its clock and, where given, its language."""

    path: Path
    zone: ZoneInfo
    language: str | None = None

    def records(self) -> Iterator[Record]:
        """All records, the file read anew by each call. Raises `DatasetError`, also where there is none."""
        number = 0
        for value in read_records(self.path):
            number += 1
            yield Record(number=number, value=value)
        if not number:
            raise DatasetError("the file holds no records", path=self.path)

    def parse(self, shape: type[ShapeT], record: Record, *keys: str) -> ShapeT:
        """Read a record, or what `keys` lead to in it, as `shape`.

        Raises a `DatasetError` that names the first field that is not as promised.
        """
        value = record.value
        for key in keys:
            value = value[key]
        try:
            return shape.model_validate(value)
        except ValidationError as error:
            found = error.errors(include_url=False, include_input=False, include_context=False)
            remedy = "put that field right, or name the file's format if it is another"
            problem = found[0]["msg"] + _misspelt(found)
            raise self.broken(record, _path((*keys, *found[0]["loc"])), problem, remedy) from error

    def time(self, record: Record, field: str, written: str, parser: TimeParser) -> datetime | None:
        """Read a time, `None` where `written` is empty, or raise a `DatasetError` that names the field."""
        if not written:
            return None
        try:
            time = parser(written, self.zone)
            time.astimezone(UTC)  # an instant that no calendar of ours has must not stop a run later
        except (ValueError, OverflowError) as error:
            raise self.broken(record, field, f"{written!r} is no time of this format: {error}") from error
        return time

    def broken(self, record: Record, field: str, problem: str, remedy: str = "") -> DatasetError:
        """The error to raise for a field of a record."""
        return DatasetError(problem, path=self.path, record=record.number, field=field, remedy=remedy)


def _misspelt(found: Sequence[ErrorDetails]) -> str:
    """Where the first problem is a missing field: the unknown one beside it whose name is nearest, if any is near."""
    *place, name = found[0]["loc"] or ("",)
    beside = [
        str(each["loc"][-1]) for each in found if each["type"] == "extra_forbidden" and [*each["loc"][:-1]] == place
    ]
    near = get_close_matches(str(name), beside, n=1) if found[0]["type"] == "missing" else []
    return f" (and there is no field {near[0]!r})" if near else ""


def _path(location: tuple[int | str, ...]) -> str:
    path = ""
    for step in location:
        path += f"[{step}]" if isinstance(step, int) else f".{step}" if path else step
    return path
