"""The values of ProtoJSON, narrowed: each reader takes what orjson gives and returns what protobuf's constructor takes.

A reader that refuses raises `RefusedValueError` with the reason and a description; the plan knows the field's path.
"""

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from google.protobuf.descriptor import EnumDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

Reader = Callable[[Any], Any]
Writer = Callable[[Any], Any]

MAX_UINT32 = 2**32 - 1
MAX_DURATION_S = 315_576_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST_SECOND = -62_135_596_800
LAST_SECOND = 253_402_300_799

TIME_FORM = 'must be an RFC 3339 time with an offset, such as "2024-05-01T09:30:00Z"'
DURATION_FORM = 'must be a duration in seconds, such as "2.5s"'

_CLOCK = r"(?:[01]\d|2[0-3]):[0-5]\d"
_TIME = re.compile(rf"\d{{4}}-\d\d-\d\d[Tt]{_CLOCK}:[0-5]\d(?:\.(\d{{1,9}}))?(?:[Zz]|[+-]{_CLOCK})", re.ASCII)
_DURATION = re.compile(r"(-?)(\d{1,12})(?:\.(\d{1,9}))?s", re.ASCII)


class RefusedValueError(Exception):
    """A value that its field does not take."""

    def __init__(self, description: str, reason: str = "VALIDATION_FAILED") -> None:
        self.description = description
        self.reason = reason
        super().__init__(description)


def read_string(value: Any) -> str:
    """Takes a string."""
    if type(value) is not str:
        raise RefusedValueError("must be a string")
    return value


def read_bool(value: Any) -> bool:
    """Takes true or false."""
    if type(value) is not bool:
        raise RefusedValueError("must be true or false")
    return value


def read_uint32(value: Any) -> int:
    """Takes a whole number of 32 bits; a number in quotes is refused."""
    if type(value) is not int or not 0 <= value <= MAX_UINT32:
        raise RefusedValueError(f"must be a whole number from 0 to {MAX_UINT32}")
    return value


def read_double(value: Any) -> float:
    """Takes a number; NaN and the infinities have no JSON here."""
    if type(value) not in (int, float):
        raise RefusedValueError("must be a number")
    return float(value)


def read_time(value: Any) -> dict[str, int]:
    """Takes an RFC 3339 time with an offset, years 1 to 9999, at most nine digits of a second."""
    match = _TIME.fullmatch(value) if type(value) is str else None
    if match is None:
        raise RefusedValueError(TIME_FORM, "BAD_TIMESTAMP")
    try:
        since = datetime.fromisoformat(value.upper()) - EPOCH
    except ValueError:
        raise RefusedValueError("must be a day that exists", "BAD_TIMESTAMP") from None
    seconds = since.days * 86400 + since.seconds
    if not FIRST_SECOND <= seconds <= LAST_SECOND:
        raise RefusedValueError("must be in the years 1 to 9999 of UTC", "BAD_TIMESTAMP")
    return {"seconds": seconds, "nanos": _nanos(match[1])}


def read_duration(value: Any) -> dict[str, int]:
    """Takes seconds with at most nine digits and the letter s."""
    match = _DURATION.fullmatch(value) if type(value) is str else None
    if match is None or int(match[2]) > MAX_DURATION_S:
        raise RefusedValueError(DURATION_FORM)
    sign = -1 if match[1] else 1
    return {"seconds": sign * int(match[2]), "nanos": sign * _nanos(match[3])}


def enum_reader(enum: EnumDescriptor, *, strict: bool) -> Reader:
    """Takes a value's full name. A reader of answers (not `strict`) also takes what a newer server may send.

    That is any number as it stands, and a name that is not known here as the enum's zero.
    """
    numbers = {value.name: value.number for value in enum.values}
    names = ", ".join(name for name, number in numbers.items() if number)

    def read_strictly(value: Any) -> int:
        number = numbers.get(value, 0) if type(value) is str else 0
        if not number:
            raise RefusedValueError(f"must be one of {names}")
        return number

    def read_tolerantly(value: Any) -> int:
        if type(value) is str:
            return numbers.get(value, 0)
        if type(value) is not int or not -(2**31) <= value < 2**31:
            raise RefusedValueError("must be an enum's name or number")
        return value

    return read_strictly if strict else read_tolerantly


def write_double(value: float) -> float:
    """Refuses what JSON has no number for."""
    if not math.isfinite(value):
        raise RefusedValueError("is not a finite number")
    return value


def write_time(value: Timestamp) -> str:
    """RFC 3339 in UTC, with 0, 3, 6 or 9 digits of a second."""
    if not FIRST_SECOND <= value.seconds <= LAST_SECOND or not 0 <= value.nanos < 10**9:
        raise RefusedValueError("is not an instant in the years 1 to 9999", "BAD_TIMESTAMP")
    whole = (EPOCH + timedelta(seconds=value.seconds)).isoformat()[:19]
    return f"{whole}{_fraction(value.nanos)}Z"


def write_duration(value: Duration) -> str:
    """Seconds and the letter s, without trailing zeros: `2.5s`."""
    sign = "-" if value.seconds < 0 or value.nanos < 0 else ""
    fraction = f".{abs(value.nanos):09d}".rstrip("0").rstrip(".")
    return f"{sign}{abs(value.seconds)}{fraction}s"


def enum_writer(enum: EnumDescriptor) -> Writer:
    """Writes the full name; a number of a newer version, which has none here, as it stands."""
    names = {value.number: value.name for value in enum.values}
    return lambda number: names.get(number, number)


def _nanos(fraction: str | None) -> int:
    return int(fraction.ljust(9, "0")) if fraction else 0


def _fraction(nanos: int) -> str:
    if not nanos:
        return ""
    digits = f"{nanos:09d}"
    while digits.endswith("000"):
        digits = digits[:-3]
    return f".{digits}"
