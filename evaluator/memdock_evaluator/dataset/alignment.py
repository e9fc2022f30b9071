"""Evidence that is given as text, found again among the turns of its dialogue."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable

from memdock_evaluator.dataset.types import DialogueTurn


class Aligner:
    """Finds turns of one dialogue by their text."""

    def __init__(self, turns: Iterable[DialogueTurn]) -> None:
        """Index the turns by their text as it stands and in plain form."""
        self._exact: defaultdict[str, list[str]] = defaultdict(list)
        self._plain: defaultdict[str, list[str]] = defaultdict(list)
        for turn in turns:
            self._exact[turn.text].append(turn.turn_id)
            self._plain[_plain(turn.text)].append(turn.turn_id)

    def find(self, text: str) -> tuple[str, ...]:
        """The ids of the turns with this text: the same letter for letter, else in plain form, else around it.

        Several ids: the text was said more than once. None: nobody said it.
        """
        if text in self._exact:
            return tuple(self._exact[text])
        plain = _plain(text)
        if plain in self._plain:
            return tuple(self._plain[plain])
        around = (ids for said, ids in self._plain.items() if plain and plain in said)
        return tuple(turn_id for ids in around for turn_id in ids)


def _plain(text: str) -> str:
    """Words alone: compatibility forms and case folded, "ё" as "е", punctuation and runs of space as one space."""
    folded = unicodedata.normalize("NFKC", text).casefold().replace("ё", "е")
    return " ".join(re.findall(r"\w+", folded))
