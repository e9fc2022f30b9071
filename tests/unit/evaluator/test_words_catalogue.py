"""Every text of the report has its translation, no translation is left over, and both take the same values."""

from collections.abc import Iterator
from string import Formatter

import pytest
from babel.messages.catalog import Catalog, Message

from memdock_evaluator.words.catalogue import stored, template, untranslated
from memdock_evaluator.words.language import LANGUAGES

OTHERS = list(LANGUAGES)[1:]


def texts(catalogue: Catalog) -> dict[object, Message]:
    return {message.id: message for message in catalogue if message.id}


def forms(of: object) -> tuple[str, ...]:
    return of if isinstance(of, tuple) else (str(of),)


def names(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


@pytest.mark.parametrize("language", OTHERS)
def test_the_catalogue_has_the_texts_of_the_sources_and_no_others(language: str) -> None:
    """`python -m memdock_evaluator.words` adds and takes out what this names."""
    used, there = set(texts(template())), set(texts(stored(language)))
    assert used - there == set()
    assert there - used == set()
    assert len(used) > 30


@pytest.mark.parametrize("language", OTHERS)
def test_every_text_has_a_translation(language: str) -> None:
    assert list(untranslated(stored(language))) == []


@pytest.mark.parametrize("language", OTHERS)
def test_translations_take_the_values_of_their_texts(language: str) -> None:
    def amiss() -> Iterator[str]:
        for text, message in texts(stored(language)).items():
            expected = names(forms(text)[-1])
            yield from (form for form in forms(message.string) if names(form) != expected)

    assert list(amiss()) == []


@pytest.mark.parametrize("language", OTHERS)
def test_sentences_hold_no_character_that_ends_an_attribute(language: str) -> None:
    """A sentence may stand in an attribute between double quotes, and is not escaped there."""
    written = [
        form for text, message in texts(stored(language)).items() for form in (*forms(text), *forms(message.string))
    ]
    assert [form for form in written if '"' in form or "&" in form] == []
