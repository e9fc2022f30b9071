"""The words of the page's script: what `t` and `tn` in it are given, in the language of the page."""

from functools import cache
from importlib import resources
from io import BytesIO

from babel.messages.extract import extract

from memdock_evaluator.words.catalogue import KEYWORDS
from memdock_evaluator.words.language import Words, catalogue

SCRIPTS = ("words.js", "packed.js", "detail.js", "explorer.js")
"""The files in `templates/`, in the order in which they run."""

_FORMS = {"en": (1, 2), "ru": (1, 2, 5)}
"""A number for each plural form, in the order of `words.js`."""


def script_words(words: Words) -> dict[str, str | list[str]]:
    """Text -> its translation; of a text that counts, its forms: one, few, many."""
    found: dict[str, str | list[str]] = {}
    translations = catalogue(words.language)
    for text in _texts():
        if isinstance(text, tuple):
            found[text[0]] = [translations.ngettext(*text, n) for n in _FORMS[words.language]]
        else:
            found[text] = translations.gettext(text)
    return found


@cache
def _texts() -> tuple[str | tuple[str, str], ...]:
    folder = resources.files("memdock_evaluator.report") / "templates"
    found: dict[str | tuple[str, str], None] = {}
    for name in SCRIPTS:
        for _, text, _, _ in extract("javascript", BytesIO(folder.joinpath(name).read_bytes()), KEYWORDS):
            found[(text[0], text[1]) if isinstance(text, tuple) else text] = None
    return tuple(found)
