"""Times as data files write them, read into aware `datetime`s once.

A time without an offset is wall clock in the zone that whoever opens the file declares. The clock is kept and the zone
attached, so the weekday that the authors saw never changes.
"""

from collections.abc import Callable
from datetime import datetime
from zoneinfo import ZoneInfo

TimeParser = Callable[[str, ZoneInfo], datetime]
"""From a file's words to an aware time; raises `ValueError` where they are no time of that format."""


def read_iso(written: str, zone: ZoneInfo) -> datetime:
    """Read ISO 8601 ("2024-03-05T19:20:00", "2024-03-05"); an offset that stands there is kept."""
    time = datetime.fromisoformat(written.strip())
    return time if time.tzinfo else time.replace(tzinfo=zone)


def read_iso_clock(written: str, zone: ZoneInfo) -> datetime:
    """Read ISO 8601 by its clock alone: a "Z" or an offset is dropped, and `zone` is what the clock is in.

    For files in which "Z" is a habit of the tool that wrote them: the same times stand elsewhere without it.
    """
    return datetime.fromisoformat(written.strip()).replace(tzinfo=zone)


def read_spoken(written: str, zone: ZoneInfo) -> datetime:
    """Read LoCoMo's "1:56 pm on 8 May, 2023"."""
    return datetime.strptime(written.strip(), "%I:%M %p on %d %B, %Y").replace(tzinfo=zone)


def read_with_weekday(written: str, zone: ZoneInfo) -> datetime:
    """Read LongMemEval's "2023/05/30 (Tue) 23:40"; a weekday that is not the date's own is a `ValueError`."""
    time = datetime.strptime(written.strip(), "%Y/%m/%d (%a) %H:%M").replace(tzinfo=zone)
    if f"({time:%a})" not in written:
        raise ValueError(f"{time:%Y-%m-%d} is a {time:%A}")
    return time
