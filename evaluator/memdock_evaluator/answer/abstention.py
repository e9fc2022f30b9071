"""Whether an answer says that there is no answer: an attribute of the answer, never a verdict about it."""

import re

from memdock_evaluator.answer.prompts import RefusalWords

_SENTENCE_END = re.compile(r"(?<=[.!?…])\s|\n")
_AROUND = " \t\n\"'«»“”„`*_.,;:!?…—-"


def abstains(answer: str, words: RefusalWords) -> bool:
    """True where `answer` begins with the fixed sentence, or its first sentence fits one of the language's patterns.

    Case, surrounding quotes and punctuation do not count. An empty answer says nothing, so it does not abstain.
    """
    plain = _plain(answer)
    if plain.startswith(_plain(words.sentence)):
        return True
    first = _SENTENCE_END.split(answer.strip(_AROUND), maxsplit=1)[0].strip(_AROUND)
    return any(pattern.search(first) for pattern in words.patterns)


def _plain(text: str) -> str:
    return " ".join(text.strip(_AROUND).casefold().split())
