"""Which texts there are to translate, read from the code, the templates and the page's script."""

from collections.abc import Iterator
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po, write_po

from memdock_evaluator.words.language import path_of

KEYWORDS: dict[str, tuple[int, ...] | None] = {"t": None, "tn": (1, 2), "said": None, "said_n": (1, 2)}
"""The names of the functions whose literals are texts, and which arguments they are."""

_SOURCES = Path(__file__).parent.parent
_METHODS = [("**.py", "python"), ("**/templates/**.js", "javascript"), ("**/templates/**.html", "jinja2")]


def template() -> Catalog:
    """Every text of the sources, without translations; each names the files that hold it."""
    found = Catalog(charset="utf-8")
    for file, _, text, _, _ in extract_from_dir(_SOURCES, _METHODS, keywords=KEYWORDS):
        found.add(text, locations=[(file, 0)])
    return found


def stored(language: str) -> Catalog:
    """The translations into a language as its file has them."""
    with path_of(language).open(encoding="utf-8") as file:
        return read_po(file, locale=language, abort_invalid=True)


def update(language: str) -> list[str]:
    """Bring the file of a language up to date with the sources; returns the texts that wait for a translation."""
    catalogue = stored(language)
    catalogue.update(template(), no_fuzzy_matching=True, update_creation_date=False)
    with path_of(language).open("wb") as file:
        write_po(file, catalogue, width=116, sort_output=True, ignore_obsolete=True, include_lineno=False)
    return list(untranslated(catalogue))


def untranslated(catalogue: Catalog) -> Iterator[str]:
    """The texts of a catalogue that lack a translation or a plural form of it, or have one for another text (fuzzy)."""
    for message in catalogue:
        forms = message.string if isinstance(message.string, tuple) else (message.string,)
        if message.id and (message.fuzzy or not all(forms)):
            yield message.id if isinstance(message.id, str) else message.id[0]
