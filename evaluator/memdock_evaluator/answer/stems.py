"""Words of a text as the offline pair compares them: lower case, stemmed where the language has a stemmer."""

import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

import Stemmer

_WORD = re.compile(r"\w+")
_ALGORITHMS: Mapping[str, str] = MappingProxyType(
    {
        "ru": "russian",
        "en": "english",
        "de": "german",
        "fr": "french",
        "es": "spanish",
        "it": "italian",
        "pt": "portuguese",
        "nl": "dutch",
    }
)


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.replace("ё", "е").split())


_EMPTY_WORDS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "en": _listed(
            "a an the and or but of to in on at by for with from as is are was were be been am do does did have has had"
            " i me my you your he him his she her it its we us our they them their this that these those there here"
            " what which who whom whose when where why how not no so if than then will would can could should"
        ),
        "ru": _listed(
            "и а но или в во на с со к ко о об от до из у за по для при без над под не ни же ли бы то это этот эта эти"
            " тот та те я меня мне мной мой моя моё мои ты тебя тебе твой он его ему она её ей оно мы нас нам наш вы"
            " вас вам ваш они их им что кто как где когда куда почему зачем какой какая какое какие сколько есть был"
            " была было были быть будет так там тут ещё уже"
        ),
    }
)


def stems(text: str, language: str) -> list[str]:
    """The stems of the words that carry meaning, in order; a text of empty words alone keeps them all."""
    words = [word.replace("ё", "е") for word in _WORD.findall(text.casefold())]
    empty = _EMPTY_WORDS.get(language, frozenset())
    full = [word for word in words if word not in empty]
    stemmer = _stemmer(language)
    return stemmer.stemWords(full or words) if stemmer else full or words


@lru_cache
def _stemmer(language: str) -> Stemmer.Stemmer | None:
    return Stemmer.Stemmer(_ALGORITHMS[language]) if language in _ALGORITHMS else None
