"""Words to terms: one case, Snowball stems by script (Russian for Cyrillic, English for the rest)."""

import re
from collections import Counter
from threading import local
from unicodedata import normalize

import Stemmer

# Part of the configuration's digest: raise it when equal texts would give other terms.
VERSION = 2

_WORD = re.compile(r"\w+")
_CYRILLIC = re.compile("[а-я]")
# Beyond this a "word" is a number, a key or a blob.
_MAX_WORD = 64


class _Stemmers(local):
    """A stemmer keeps a state: each thread has its own pair."""

    def __init__(self) -> None:
        self.russian = Stemmer.Stemmer("russian")
        self.english = Stemmer.Stemmer("english")


_stemmers = _Stemmers()


def count_terms(text: str) -> Counter[str]:
    """How often each term stands in a text, in the order of first appearance. No stop words: BM25 weighs them down."""
    russian, english = _stemmers.russian.stemWord, _stemmers.english.stemWord
    # A letter may be written as one sign or as two ("й" comes so from some systems), or as a ligature.
    words = _WORD.findall(normalize("NFKC", text).casefold().replace("ё", "е"))
    return Counter((russian if _CYRILLIC.search(word) else english)(word[:_MAX_WORD]) for word in words)
