from collections.abc import Callable
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from memdock_evaluator.dataset import times

MOSCOW = ZoneInfo("Europe/Moscow")
Parser = Callable[[str, ZoneInfo], datetime]


@pytest.mark.parametrize(
    ("parser", "written"),
    [
        (times.read_iso, "2024-03-05T23:40:00"),
        (times.read_iso, " 2024-03-05 23:40 "),
        (times.read_iso_clock, "2024-03-05T23:40:00Z"),
        (times.read_iso_clock, "2024-03-05T23:40:00"),
        (times.read_spoken, "11:40 pm on 5 March, 2024"),
        (times.read_with_weekday, "2024/03/05 (Tue) 23:40"),
    ],
)
@pytest.mark.parametrize("zone", ["UTC", "Europe/Moscow", "America/Los_Angeles", "Pacific/Kiritimati"])
def test_clock_and_weekday_stay_in_any_zone(parser: Parser, written: str, zone: str) -> None:
    time = parser(written, ZoneInfo(zone))

    assert (time.year, time.month, time.day, time.hour, time.minute) == (2024, 3, 5, 23, 40)
    assert f"{time:%A}" == "Tuesday"
    assert time.tzinfo == ZoneInfo(zone)


def test_zone_moves_the_instant() -> None:
    assert times.read_iso("2024-03-05T02:00:00", MOSCOW).utcoffset() == timedelta(hours=3)
    assert times.read_iso("2024-03-05T02:00:00", MOSCOW) == times.read_iso("2024-03-04T23:00:00", ZoneInfo("UTC"))


def test_offset_that_is_written_is_kept() -> None:
    assert times.read_iso("2024-03-05T02:00:00-08:00", MOSCOW).utcoffset() == timedelta(hours=-8)


@pytest.mark.parametrize(
    ("parser", "written"),
    [
        (times.read_iso, "yesterday"),
        (times.read_iso, "2024-02-30"),
        (times.read_spoken, "13:70 pm on 5 March, 2024"),
        (times.read_with_weekday, "2024/03/05 (Wed) 23:40"),
        (times.read_with_weekday, "2024-03-05"),
    ],
)
def test_anything_else_is_refused(parser: Parser, written: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        parser(written, MOSCOW)
