"""Sentences, numbers and dates in a reader's language. English is the key of every text; `ru.po` has the others."""

from collections.abc import Mapping
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

from memdock_evaluator.words.sentence import Filler, Sentence

LANGUAGES = {"en": "English", "ru": "Русский"}
"""The languages of a report, each by its own name; the first is that of the texts in code and templates."""

_LOCALES = {"en": "en_GB"}
_PERCENT = {"en": "%", "ru": "\u00a0%"}


class Words:
    """What a reader of one language gets.

    `t` and `tn` take literals of ours alone, since the catalogue is made from them; what is named elsewhere, by the
    code or by data, goes through `word`. Values fill `{name}` as `Filler` tells.
    """

    def __init__(self, language: str) -> None:
        self.language = language
        self._locale = Locale.parse(_LOCALES.get(language, language))
        self._catalogue = catalogue(language)
        self._filler = Filler(
            group=get_group_symbol(self._locale), point=get_decimal_symbol(self._locale), percent=_PERCENT[language]
        )

    def t(self, text: str, /, **values: object) -> str:
        """A sentence of ours."""
        return self._filled(self._catalogue.gettext(text), values)

    def tn(self, one: str, many: str, n: int, /, **values: object) -> str:
        """A sentence of ours that counts `{n}`, in the form that the number asks for: "1 turn", "2,016 turns"."""
        return self._filled(self._catalogue.ngettext(one, many, n), {"n": n, **values})

    def word(self, word: str, /) -> str:
        """A `Sentence` in this language, or the word for something that has a name; itself where there is none."""
        if isinstance(word, Sentence):
            return self.t(word.text, **word.values) if word.many is None else self._counted(word)
        return self._catalogue.gettext(word) if word else word

    def number(self, value: float, digits: int = 0) -> str:
        """ "1,234.5", "1 234,5" """
        return self._filler.number(value, f",.{digits}f")

    def percent(self, share: float, digits: int = 0) -> str:
        """A share of 1: "66.0%", "66,0 %" with a space that does not break."""
        return self._filler.number(share, f".{digits}%")

    def day(self, time: datetime) -> str:
        """ "30 November 2026", "30 ноября 2026 г." """
        return format_date(time, "long", locale=self._locale)

    def _counted(self, sentence: Sentence) -> str:
        values = {name: value for name, value in sentence.values.items() if name != "n"}
        return self.tn(sentence.text, str(sentence.many), sentence.values["n"], **values)

    def _filled(self, text: str, values: Mapping[str, object]) -> str:
        return self._filler.vformat(text, (), {name: self._value(value) for name, value in values.items()})

    def _value(self, value: object) -> object:
        """A value as it goes into a sentence; sentences among them are said in this language, too."""
        if isinstance(value, tuple | list):
            return tuple(self._value(each) for each in value)
        return self.word(value) if isinstance(value, Sentence) else value


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
