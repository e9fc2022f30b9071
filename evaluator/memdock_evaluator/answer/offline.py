"""An answerer and a judge without a model: deterministic, for trying things out, and no measure of answer quality.

They show that a run works and whether the right memories came back; their figures carry their names.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from math import log

from memdock_evaluator.answer.abstention import abstains
from memdock_evaluator.answer.answerer import Answer, Asked
from memdock_evaluator.answer.judge import ToJudge, Verdict
from memdock_evaluator.answer.prompts import RefusalWords
from memdock_evaluator.answer.stems import stems
from memdock_evaluator.results.plan import ModelFacts

EXTRACTIVE, OVERLAP, REFUSING = "offline-extractive", "offline-overlap", "constant-refusal"
_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|\n+")
_NUMBER = re.compile(r"\d+")
ENOUGH_OVERLAP = 0.4
"""The share of a question's weight that a sentence must hold to be given as the answer."""
ENOUGH_RECALL, SOME_RECALL, ENOUGH_PRECISION = 0.75, 0.34, 0.5


class ExtractiveAnswerer:
    """Answers with the sentence of the memories that shares most with the question, rare words weighing more.

    The weight of a stem is log(1 + n / df) over the n sentences of the retrieved memories. The fixed refusal where no
    sentence holds `ENOUGH_OVERLAP` of the question's weight; of equal sentences the earlier memory's.
    """

    def __init__(self, refusals: Mapping[str, RefusalWords]) -> None:
        """`refusals` holds every language of the run."""
        self._refusals = refusals

    @property
    def facts(self) -> ModelFacts:
        """Its name is all there is."""
        return ModelFacts(kind=EXTRACTIVE)

    async def answer(self, asked: Asked, *, repeat: int) -> Answer:  # noqa: ARG002 - a repeat changes nothing
        """Looks through the memories."""
        best = _best_sentence(asked)
        refusal = self._refusals[asked.language]
        return Answer(text=best or refusal.sentence, abstained=not best or abstains(best, refusal))

    async def close(self) -> None:
        """Nothing is open."""


class RefusingAnswerer:
    """Answers every question with the fixed refusal of its language."""

    def __init__(self, refusals: Mapping[str, RefusalWords]) -> None:
        """`refusals` holds every language of the run."""
        self._refusals = refusals

    @property
    def facts(self) -> ModelFacts:
        """Its name is all there is."""
        return ModelFacts(kind=REFUSING)

    async def answer(self, asked: Asked, *, repeat: int) -> Answer:  # noqa: ARG002 - a repeat changes nothing
        """The sentence."""
        return Answer(text=self._refusals[asked.language].sentence, abstained=True)

    async def close(self) -> None:
        """Nothing is open."""


class OverlapJudge:
    """Gives a label by how many of a reference's stems the answer holds, best over the references.

    3: at least `ENOUGH_RECALL` of the reference's stems and all its numbers, among much else; 2: the same, and at least
    `ENOUGH_PRECISION` of the answer's stems stand in the reference; 1: `SOME_RECALL`; else 0. Where the reference says
    that there is no such information, an answer that says so too is 2; where only one of the two says it, 0.
    """

    def __init__(self, refusals: Mapping[str, RefusalWords]) -> None:
        """`refusals` holds every language of the run."""
        self._refusals = refusals

    @property
    def facts(self) -> ModelFacts:
        """Its name is all there is."""
        return ModelFacts(kind=OVERLAP)

    async def judge(self, item: ToJudge, *, repeat: int) -> Verdict:  # noqa: ARG002 - a repeat changes nothing
        """Compares the words."""
        return Verdict(label=max(self._label(item, reference) for reference in item.references))

    def _label(self, item: ToJudge, reference: str) -> int:
        refusal = self._refusals[item.language]
        wanted, said = abstains(reference, refusal), abstains(item.answer, refusal)
        if wanted or said:
            return 2 if wanted and said else 0
        return _overlap_label(stems(reference, item.language), stems(item.answer, item.language))

    async def close(self) -> None:
        """Nothing is open."""


def _best_sentence(asked: Asked) -> str:
    sentences = [part for memory in asked.memories for part in _SENTENCE_END.split(memory.text) if part.strip()]
    words = [set(stems(sentence, asked.language)) for sentence in sentences]
    frequency = Counter(stem for sentence in words for stem in sentence)
    weights = {stem: log(1 + len(words) / (frequency[stem] or 1)) for stem in stems(asked.text, asked.language)}
    total = sum(weights.values())
    overlaps = [sum(weight for stem, weight in weights.items() if stem in sentence) for sentence in words]
    best = max(range(len(sentences)), key=overlaps.__getitem__, default=None)
    if best is None or not total or overlaps[best] < ENOUGH_OVERLAP * total:
        return ""
    return sentences[best].strip()


def _overlap_label(reference: Iterable[str], answer: Iterable[str]) -> int:
    wanted, said = set(reference), set(answer)
    if not wanted or not said:
        return 0
    common = wanted & said
    recall, precision = len(common) / len(wanted), len(common) / len(said)
    numbers = {stem for stem in wanted if _NUMBER.fullmatch(stem)}
    if recall >= ENOUGH_RECALL and numbers <= said:
        return 2 if precision >= ENOUGH_PRECISION else 3
    return 1 if recall >= SOME_RECALL else 0
