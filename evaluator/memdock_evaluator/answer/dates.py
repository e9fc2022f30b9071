"""Times as people write them, with the weekday, in the prompt's language."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from types import MappingProxyType


def _listed(words: str) -> tuple[str, ...]:
    return tuple(words.split())


_RU_MONTHS = _listed("января февраля марта апреля мая июня июля августа сентября октября ноября декабря")
_RU_DAYS = _listed("понедельник вторник среда четверг пятница суббота воскресенье")
_EN_MONTHS = _listed("January February March April May June July August September October November December")
_EN_DAYS = _listed("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
_UNKNOWN: Mapping[str, str] = MappingProxyType({"ru": "неизвестный день", "en": "an unknown day"})


def written(time: datetime | None, language: str) -> str:
    """ "Wednesday, 2 October 2024, 10:00" of the wall clock that `time` carries; midnight sharp is a day alone."""
    if time is None:
        return _UNKNOWN.get(language, _UNKNOWN["en"])
    if language == "ru":
        day = f"{_RU_DAYS[time.weekday()]}, {time.day} {_RU_MONTHS[time.month - 1]} {time.year} г."
    else:
        day = f"{_EN_DAYS[time.weekday()]}, {time.day} {_EN_MONTHS[time.month - 1]} {time.year}"
    since_midnight = timedelta(hours=time.hour, minutes=time.minute, seconds=time.second)
    return f"{day}, {time:%H:%M}" if since_midnight else day
