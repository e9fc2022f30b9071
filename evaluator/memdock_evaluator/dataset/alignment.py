"""Evidence that is given as text, found again among the turns of its dialogue."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from memdock_evaluator.dataset.types import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    turn_id: str
    session_index: int
    text: str
    plain: str


class Aligner:
    """Finds turns of one dialogue by their text."""

    def __init__(self, sessions: Iterable[Session]) -> None:
        """Take down every turn's text, as it stands and in plain form."""
        self._said = [
            _Said(turn_id=turn.turn_id, session_index=session.index, text=turn.text, plain=_plain(turn.text))
            for session in sessions
            for turn in session.turns
        ]

    def find(self, text: str, session_index: int | None = None) -> tuple[str, ...]:
        """The ids of the turns with this text: the same letter for letter, else in plain form, else around it.

        Only in the session with that number where one is given. Several ids: the text was said more than once.
        None: nobody said it.
        """
        said = [turn for turn in self._said if session_index in (None, turn.session_index)]
        plain = _plain(text)
        for found in (
            [turn for turn in said if turn.text == text],
            [turn for turn in said if plain and turn.plain == plain],
            [turn for turn in said if plain and f" {plain} " in f" {turn.plain} "],
        ):
            if found:
                return tuple(turn.turn_id for turn in found)
        return ()


def _plain(text: str) -> str:
    """Words alone: compatibility forms and case folded, "ё" as "е", punctuation and runs of space as one space."""
    folded = unicodedata.normalize("NFKC", text).casefold().replace("ё", "е")
    return " ".join(re.findall(r"\w+", folded))
