"""What the templates say and how they write figures, in one language.

In a template: `{{ t("English sentence with {n}", n=3) }}`, `{{ tn("{n} question", "{n} questions", n) }}`, and for what
is named by data or code (an axis, a slice, an outcome) `{{ name|word }}`. Sentences may hold markup, values never do.
"""

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from math import floor, log10
from typing import Any

from markupsafe import Markup, escape

from memdock_evaluator.summary.axes import slice_name
from memdock_evaluator.words.language import Words
from memdock_evaluator.words.sentence import said

_NAMES = {"en": said("English"), "ru": said("Russian")}
_REQUESTS = {
    "pair": said("one request a pair of turns"),
    "turn": said("one request a turn"),
    "session": said("one request a session"),
}
_BLANK = "–"


class PageWords(Words):
    """`Words` whose sentences are markup, and the filters of the templates."""

    def _filled(self, text: str, values: Mapping[str, object]) -> str:
        return Markup(super()._filled(text, values))  # noqa: S704 - our own literals, and values are escaped

    def _value(self, value: object) -> object:
        found = super()._value(value)
        return escape(found) if isinstance(found, str) else found

    @property
    def filters(self) -> dict[str, Callable[..., Any]]:
        """The filters by the names that the templates use."""
        return {
            "amount": self.amount,
            "breakable": breakable,
            "coefficient": self.coefficient,
            "count": self.number,
            "language": lambda code: language_name(code, self),
            "ms": self.ms,
            "moment": self.moment,
            "points": self.points,
            "probability": self.probability,
            "requests": self.requests,
            "share": self.share,
            "slice_name": lambda value, axis: self.word(slice_name(axis, value)),
            "step_name": self.step,
            "word": self.word,
        }

    def requests(self, unit: str) -> str:
        """What goes into one request of ingest: `unit` is "pair", "turn", "session" or "batch:50"."""
        if unit.startswith("batch:"):
            n = int(unit.removeprefix("batch:"))
            return self.tn("one request every {n} turn", "one request every {n} turns", n)
        return self.word(_REQUESTS.get(unit, unit))

    def share(self, value: float | None, digits: int = 1) -> str:
        """A score of 0 to 1 in per cent, without the sign."""
        return _BLANK if value is None else self.number(100 * value, digits)

    def points(self, difference: float) -> str:
        """A difference of shares in points, with its sign."""
        points = self.number(abs(100 * difference), 1)
        return points if points == self.number(0, 1) else ("−" if difference < 0 else "+") + points

    def amount(self, money: float | None) -> str:
        """Money to three digits that count and at least to the hundredth."""
        if money is None:
            return _BLANK
        return self.number(money, max(2, 2 - floor(log10(abs(money)))) if money else 2)

    def coefficient(self, value: float | None) -> str:
        """An agreement of at most 1."""
        return _BLANK if value is None else self.number(value, 3).replace("-", "−")

    def step(self, name: str) -> str:
        """A timed stage ("retrieve"), or a step inside it ("retrieve/embed")."""
        return ": ".join(map(self.word, name.split("/")))

    def probability(self, value: float | None) -> str:
        """A p-value to three digits."""
        if value is None:
            return _BLANK
        return f"< {self.number(0.001, 3)}" if value < 0.001 else self.number(value, 3)

    def ms(self, value: float) -> str:
        """A time in the unit that reads best, from milliseconds to minutes."""
        if value >= 120_000:
            return self.t("{time} min", time=self.number(value / 60_000, 1))
        if value >= 1000:
            return self.t("{time} s", time=self.number(value / 1000, 1))
        return self.t("{time} ms", time=self.number(value, 0 if value >= 100 else 1))

    def moment(self, time: datetime) -> str:
        """A day and a time of it, in the zone that it comes with."""
        return f"{self.day(time)}, {time:%H:%M} {time.tzname() or ''}".strip()


def language_name(code: str, words: Words) -> str:
    """A language of the data: "en" is "English", an unknown code itself."""
    return words.word(_NAMES.get(code, code))


def breakable(word: str) -> Markup:
    """A word that a narrow column may part before a capital or an "@" and after an underscore or a plus."""
    return Markup("<wbr>").join(re.split(r"(?<=[a-z])(?=[A-Z])|(?<=\w)(?=@)|(?<=[_+])", word))
