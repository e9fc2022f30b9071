"""Finds weekdays that a Russian or English text names beside a date."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

_RU_DAYS = ("понедельник", "вторник", "сред[ауые]", "четверг", "пятниц[ауые]", "суббот[ауые]", "воскресень[еяю]")
_RU_MONTHS = [
    "января",
    "февраля",
    "марта",
    "апреля",
    "мая",
    "июня",
    "июля",
    "августа",
    "сентября",
    "октября",
    "ноября",
    "декабря",
]
_EN_DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_EN_MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]

_RU_DAY = rf"(?P<weekday>{'|'.join(_RU_DAYS)})\w*"
_RU_DATE = rf"(?P<day>\d{{1,2}})(?:-?го|-?е)? (?P<month>{'|'.join(_RU_MONTHS)})(?: (?P<year>\d{{4}}))?"
_EN_DAY = rf"(?P<weekday>{'|'.join(_EN_DAYS)})"
_EN_MONTH = rf"(?P<month>{'|'.join(_EN_MONTHS)})"
_EN_DATES = (
    rf"{_EN_MONTH} (?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?:,? (?P<year>\d{{4}}))?",
    rf"(?:the )?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? {_EN_MONTH}(?:,? (?P<year>\d{{4}}))?",
)
_GAP = r"(?: года)?[\s,(–—-]{1,4}(?:(?:это|был[аои]?|в|во|a|the|on|is|was|it's) ){0,2}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """A weekday (0 is Monday) beside a date; `year` is 0 where none is said."""

    weekday: int
    day: int
    month: int
    year: int
    words: str

    def holds(self, near: date) -> bool:
        """Whether that date is that weekday; a date without a year is the one nearest to `near`."""
        years = [self.year] if self.year else [near.year - 1, near.year, near.year + 1]
        dates = [date(year, self.month, self.day) for year in years]
        return min(dates, key=lambda each: abs(each - near)).weekday() == self.weekday


def weekdays(text: str, language: str) -> Iterator[int]:
    """Every weekday that is named at all (0 is Monday)."""
    for place, name in enumerate(_RU_DAYS if language == "ru" else _EN_DAYS):
        if re.search(rf"\b{name}", text.lower()):
            yield place


def mentions(text: str, language: str) -> Iterator[Mention]:
    """Every weekday that stands directly before or after a date."""
    days, months = (_RU_DAYS, _RU_MONTHS) if language == "ru" else (_EN_DAYS, _EN_MONTHS)
    day, dates = (_RU_DAY, (_RU_DATE,)) if language == "ru" else (_EN_DAY, _EN_DATES)
    for date_pattern in dates:
        for pattern in (day + _GAP + date_pattern, date_pattern + _GAP + day):
            for found in re.finditer(pattern, text.lower()):
                yield Mention(
                    weekday=next(place for place, name in enumerate(days) if re.match(name, found["weekday"])),
                    day=int(found["day"]),
                    month=months.index(found["month"]) + 1,
                    year=int(found["year"] or 0),
                    words=found[0],
                )
