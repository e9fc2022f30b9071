"""Which of the selected dialogues and questions a run takes: a seeded sample of them, and of that one shard."""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from memdock_evaluator.dataset import Dialogue, Question
from memdock_evaluator.results.plan import Sample

ItemT = TypeVar("ItemT")
_SHARD = re.compile("[0-9]{1,6}/[0-9]{1,6}")

QuestionName = tuple[str, str]
"""The dialogue's id and the question's: the same in every language."""


class ChoiceError(ValueError):
    """A sample or a shard that cannot be taken; the message says what to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """Shard `number`, from 1, of `of`."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    @classmethod
    def read(cls, written: str) -> "Shard":
        """Of "2/8"; raises `ChoiceError`."""
        number, _, of = written.partition("/")
        if not (_SHARD.fullmatch(written) and 1 <= int(number) <= int(of)):
            raise ChoiceError(f"shard {written[:40]!r}: give i/n with i from 1 to n, such as 2/8, and n up to 999999")
        return cls(number=int(number), of=int(of))


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What a run takes; `None`: all there is."""

    dialogues: frozenset[str] | None = None
    questions: frozenset[QuestionName] | None = None

    def of(self, dialogue: Dialogue) -> Dialogue | None:
        """The dialogue with the questions that were chosen; `None` where it is not taken."""
        if self.dialogues is not None and dialogue.dialogue_id not in self.dialogues:
            return None
        if self.questions is None:
            return dialogue
        chosen = (each for each in dialogue.questions if (dialogue.dialogue_id, each.question_id) in self.questions)
        return replace(dialogue, questions=tuple(chosen))


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What the selected data holds: each dialogue's languages, in the files' order, and each question's stratum."""

    dialogues: Mapping[str, tuple[str, ...]]
    questions: Mapping[QuestionName, str]


def contents(dialogues: Iterable[Dialogue]) -> Contents:
    """Reads them once."""
    languages: dict[str, tuple[str, ...]] = {}
    strata: dict[QuestionName, str] = {}
    for dialogue in dialogues:
        name = dialogue.dialogue_id
        languages[name] = (*languages.get(name, ()), dialogue.language)
        for question in dialogue.questions:
            strata.setdefault((name, question.question_id), _stratum(question))
    return Contents(dialogues=languages, questions=strata)


def choose(found: Contents, sample: Sample | None, shard: Shard | None) -> Choice:
    """The sample first, then its shard. Both go by ids, so that the languages of a dialogue stay together.

    A sample of dialogues is stratified by the languages that they are in, one of questions by what they ask for. The
    shards take turns over the dialogues in the files' order. Raises `ChoiceError`.
    """
    dialogues, questions = list(found.dialogues), None
    if sample is not None and sample.dialogues is not None:
        languages = {name: " ".join(sorted(codes)) for name, codes in found.dialogues.items()}
        chosen = _sample(languages, sample.dialogues, sample.seed, str, "dialogues")
        dialogues = [name for name in dialogues if name in chosen]
    if sample is not None and sample.questions is not None:
        kept = set(dialogues)
        strata = {name: stratum for name, stratum in found.questions.items() if name[0] in kept}
        questions = _sample(strata, sample.questions, sample.seed, "/".join, "questions")
        asked = {dialogue for dialogue, _ in questions}
        dialogues = [name for name in dialogues if name in asked]
    if shard is not None:
        if shard.of > len(dialogues):
            raise ChoiceError(f"--shard {shard}: there are {len(dialogues)} dialogues, so give at most as many shards")
        dialogues = dialogues[shard.number - 1 :: shard.of]
    return Choice(dialogues=frozenset(dialogues), questions=questions)


def _sample(
    strata: Mapping[ItemT, str], size: int, seed: int, name: Callable[[ItemT], str], what: str
) -> frozenset[ItemT]:
    """`size` items, of each stratum its share to the nearest; the largest remainders get what is left.

    Who is taken of a stratum is decided by a hash of the seed and the item's name: the file's order decides nothing.
    """
    if size > len(strata):
        raise ChoiceError(f"the data that is selected has {len(strata)} {what}: a sample of {size} is more")
    members: dict[str, list[ItemT]] = {}
    for item, stratum in strata.items():
        members.setdefault(stratum, []).append(item)
    quotas = {stratum: divmod(len(items) * size, len(strata)) for stratum, items in sorted(members.items())}
    left = size - sum(whole for whole, _ in quotas.values())
    favoured = sorted(quotas, key=lambda stratum: (-quotas[stratum][1], stratum))[:left]
    return frozenset(
        item
        for stratum, (whole, _) in quotas.items()
        for item in sorted(members[stratum], key=lambda each: _lot(seed, name(each)))[: whole + (stratum in favoured)]
    )


def _lot(seed: int, name: str) -> bytes:
    return hashlib.sha256(f"{seed}/{name}".encode()).digest()


def _stratum(question: Question) -> str:
    """What it asks for: RUMBA's semantic type, elsewhere the tags that the file gives; abstentions apart."""
    kind = question.axes.get("semantic") or ", ".join(
        f"{axis} {value}" for axis, value in sorted(question.axes.items())
    )
    return f"{kind} abstention" if question.abstention else kind


def taken(dialogues: Iterable[Dialogue], choice: Choice) -> Iterator[Dialogue]:
    """The dialogues that a run takes."""
    for dialogue in dialogues:
        if (chosen := choice.of(dialogue)) is not None:
            yield chosen
