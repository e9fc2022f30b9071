"""What shows that something said is still there: turns that memories name as their sources, and words of its own."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from memdock.types import Memory
from memdock_evaluator.answer.stems import stems
from memdock_evaluator.dataset import Dialogue, Question

ENOUGH_WORDS = 2
ENOUGH_SHARE = 0.5
"""Of the evidence's own words that were there before, so many and this share are no accident."""

_LABELS = "user assistant system tool пользователь ассистент"
"""Words that systems write into memories by themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """What is looked for, or what was found of it, each sorted.

    `turns`: ids of turns. `words`: stems that stand in those turns and in nothing that is to stay. `answer`: those of
    them that a right answer has and the question has not.
    """

    turns: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    answer: tuple[str, ...] = ()


class Speech:
    """The words of a dialogue, by turn."""

    def __init__(self, dialogue: Dialogue) -> None:
        """Stems every turn once."""
        self._language = dialogue.language
        self._labels = frozenset(stems(_LABELS, dialogue.language))
        self._said = {turn.turn_id: frozenset(stems(turn.text, dialogue.language)) for turn in dialogue.turns}

    def wanted(self, question: Question, turns: Set[str], gone: Set[str]) -> Trace:
        """What tells that `turns` of the question's evidence are there, once all of `gone`, and no more, is erased."""
        kept = self._words(turn_id for turn_id in self._said if turn_id not in gone)
        own = self._words(turns) - kept - self._labels
        answers = self._stems(question.references) - self._stems([question.text])
        return Trace(turns=_sorted(turns), words=_sorted(own), answer=_sorted(own & answers))

    def found(self, wanted: Trace, memories: Iterable[Memory]) -> Trace:
        """What of `wanted` is in the memories."""
        memories = list(memories)
        named = {source.turn_id for memory in memories for source in memory.sources}
        words = self._stems(memory.text for memory in memories)
        return Trace(
            turns=_both(wanted.turns, named), words=_both(wanted.words, words), answer=_both(wanted.answer, words)
        )

    def _words(self, turn_ids: Iterable[str]) -> frozenset[str]:
        return frozenset().union(*(self._said[turn_id] for turn_id in turn_ids))

    def _stems(self, texts: Iterable[str]) -> frozenset[str]:
        return frozenset(stem for text in texts for stem in stems(text, self._language))


def left(before: Trace, after: Iterable[Trace]) -> tuple[str, ...]:
    """How `after` shows what it should not, of "turns", "words" and "answer"; `before` is all that was there.

    "turns": a memory names a turn. "words": at least `ENOUGH_WORDS` and `ENOUGH_SHARE` of the words that were there.
    "answer": all the answer's words that were there.
    """
    after = list(after)
    turns = {turn for trace in after for turn in trace.turns}
    words = {word for trace in after for word in trace.words} & set(before.words)
    answer = {word for trace in after for word in trace.answer} & set(before.answer)
    signs: Mapping[str, bool] = {
        "turns": bool(turns),
        "words": len(words) >= ENOUGH_WORDS and len(words) >= ENOUGH_SHARE * len(before.words),
        "answer": bool(answer) and len(answer) == len(before.answer),
    }
    return tuple(sign for sign, shows in signs.items() if shows)


def together(traces: Iterable[Trace]) -> Trace:
    """All that any of them holds."""
    traces = list(traces)
    return Trace(
        turns=_sorted({turn for trace in traces for turn in trace.turns}),
        words=_sorted({word for trace in traces for word in trace.words}),
        answer=_sorted({word for trace in traces for word in trace.answer}),
    )


def _both(wanted: Iterable[str], found: Set[str]) -> tuple[str, ...]:
    return tuple(each for each in wanted if each in found)


def _sorted(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(words))
