"""Which turns a memory was made from, told by its text, for systems that do not say."""

from memdock_evaluator.answer.stems import stems
from memdock_evaluator.dataset import Dialogue
from memdock_evaluator.scores import Source

LEAST_SHARE = 0.5
"""Of a memory's stems, how many a turn must hold to be taken for its source."""

LEAST_STEMS = 2


class TextSources:
    """The turns of one dialogue, to be found by what a memory says.

    A guess: a summary of many turns, or a memory in other words, may name no turn or a wrong one.
    """

    def __init__(self, dialogue: Dialogue) -> None:
        """Takes down the stems of every turn."""
        self._language = dialogue.language
        self._turns = [
            ((session.session_id, turn.turn_id), _Text(turn.text, dialogue.language))
            for session in dialogue.sessions
            for turn in session.turns
        ]
        self._known: dict[str, tuple[Source, ...]] = {}

    def of(self, memory: str) -> tuple[Source, ...]:
        """The turns that the memory quotes, or that quote it; else those that share most stems with it, if enough.

        None: the text fits no turn.
        """
        if memory not in self._known:
            self._known[memory] = self._find(_Text(memory, self._language))
        return self._known[memory]

    def _find(self, memory: "_Text") -> tuple[Source, ...]:
        quoted = tuple(source for source, turn in self._turns if turn.is_in(memory) or memory.is_in(turn))
        if quoted:
            return quoted
        shared = [len(memory.stems & turn.stems) for _, turn in self._turns]
        most = max(shared, default=0)
        if most < max(LEAST_STEMS, LEAST_SHARE * len(memory.stems)):
            return ()
        return tuple(source for (source, _), count in zip(self._turns, shared, strict=True) if count == most)


class _Text:
    """A text as its stems, in order and as a set."""

    def __init__(self, text: str, language: str) -> None:
        found = stems(text, language)
        self.stems = frozenset(found)
        self.line = f" {' '.join(found)} "

    def is_in(self, other: "_Text") -> bool:
        """Whether the other holds this one's stems in a row; a text of next to nothing is in none."""
        return len(self.stems) >= LEAST_STEMS and self.line in other.line
