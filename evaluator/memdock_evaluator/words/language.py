"""Sentences, numbers and dates in a reader's language. English is the key of every text; `ru.po` has the others."""

from datetime import datetime
from functools import cache
from gettext import GNUTranslations, NullTranslations
from io import BytesIO
from pathlib import Path

from babel import Locale
from babel.dates import format_date
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.numbers import get_decimal_symbol, get_group_symbol

LANGUAGES = {"en": "English", "ru": "Русский"}
"""The languages of a report, each by its own name; the first is that of the texts in code and templates."""

_LOCALES = {"en": "en_GB"}


def later(text: str) -> str:
    """The text itself, marked for the catalogue: where it is shown, `Words.word` translates it."""
    return text


class Words:
    """What a reader of one language gets.

    `t` and `tn` take literals of ours alone, since the catalogue is made from them; what comes from data goes through
    `word`. Values fill `{name}`: whole numbers are written as the language does, everything else as it stands.
    """

    def __init__(self, language: str) -> None:
        self.language = language
        self._locale = Locale.parse(_LOCALES.get(language, language))
        self._catalogue = catalogue(language)
        self._marks = str.maketrans({",": get_group_symbol(self._locale), ".": get_decimal_symbol(self._locale)})

    def t(self, text: str, /, **values: object) -> str:
        """A sentence of ours."""
        return self._filled(self._catalogue.gettext(text), values)

    def tn(self, one: str, many: str, n: int, /, **values: object) -> str:
        """A sentence of ours that counts `{n}`, in the form that the number asks for: "1 turn", "2,016 turns"."""
        return self._filled(self._catalogue.ngettext(one, many, n), {"n": n, **values})

    def word(self, word: str, /) -> str:
        """The word for something that the data or the code names, itself where there is none; never markup."""
        return self._catalogue.gettext(word) if word else word

    def number(self, value: float, digits: int = 0) -> str:
        """ "1,234.5", "1 234,5" """
        return f"{value:,.{digits}f}".translate(self._marks)

    def percent(self, share: float, digits: int = 0) -> str:
        """A share of 1: "66.0%", "66,0 %" with a space that does not break."""
        return self.number(100 * share, digits) + ("%" if self.language == "en" else "\u00a0%")

    def day(self, time: datetime) -> str:
        """ "30 November 2026", "30 ноября 2026 г." """
        return format_date(time, "long", locale=self._locale)

    def _filled(self, text: str, values: dict[str, object]) -> str:
        return text.format_map(
            {name: self.number(value) if isinstance(value, int) else value for name, value in values.items()}
        )


def path_of(language: str) -> Path:
    """The catalogue's file, in the format of gettext."""
    return Path(__file__).parent / f"{language}.po"


@cache
def catalogue(language: str) -> NullTranslations:
    """The translations into a language; of English none are needed."""
    if language == "en":
        return NullTranslations()
    with path_of(language).open(encoding="utf-8") as file:
        read = read_po(file, locale=language)
    compiled = BytesIO()
    write_mo(compiled, read)
    compiled.seek(0)
    return GNUTranslations(compiled)


ENGLISH = Words("en")
