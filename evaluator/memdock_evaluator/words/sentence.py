"""Sentences that remember how they were made, so that a page can say them in its reader's language."""

from collections.abc import Mapping, Sequence
from string import Formatter
from typing import Any, Self

from memdock_evaluator.words.counting import half_up


class Filler(Formatter):
    """Fills `{name}` in a text; numbers are written with the signs of a language, `{share:.1%}` too."""

    def __init__(self, *, group: str = ",", point: str = ".", percent: str = "%") -> None:
        self._signs = str.maketrans({",": group, ".": point, "%": percent})

    def number(self, value: float, spec: str = ",") -> str:
        """A number in a format of Python's, a half rounded up; by default with signs between the thousands."""
        found = half_up(value, spec) if isinstance(value, float) and "." in spec else format(value, spec)
        return found.translate(self._signs)

    def format_field(self, value: Any, format_spec: str) -> str:
        """The text of one value: of several, with commas between them."""
        if isinstance(value, int | float):
            return self.number(value, format_spec or ",")
        return ", ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


class Sentence(str):
    """A string in English, whole as it stands. `text` (for `n` = 1) and `many`, filled with `values`, made it."""

    text: str
    many: str | None
    values: Mapping[str, Any]

    def __new__(cls, text: str, many: str | None = None, values: Mapping[str, Any] | None = None) -> Self:
        values = values or {}
        chosen = text if many is None or values["n"] == 1 else many
        made = super().__new__(cls, _ENGLISH.vformat(chosen, (), values))
        made.text, made.many, made.values = text, many, values
        return made


def said(text: str, /, **values: str | float | Sequence[str]) -> Sentence:
    """A sentence, or a name that is shown to people; a literal, for the catalogue is made from it."""
    return Sentence(text, None, values)


def said_n(one: str, many: str, n: int, /, **values: str | float | Sequence[str]) -> Sentence:
    """A sentence that counts `{n}` of something, in both of its forms."""
    return Sentence(one, many, {"n": n, **values})


_ENGLISH = Filler()
