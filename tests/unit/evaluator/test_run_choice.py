"""Samples and shards: seeded, stratified, the same in every language, and together the whole."""

from collections import Counter

import pytest

from memdock_evaluator.dataset import Dialogue, Question
from memdock_evaluator.results.plan import Sample
from memdock_evaluator.run.choice import ChoiceError, Shard, choose, contents, taken

KINDS = ("StaticUser", "StaticUser", "StaticUser", "Ordering")


def dialogue(number: int, language: str) -> Dialogue:
    questions = tuple(
        Question(question_id=f"q{place}", text="?", references=("a",), axes={"semantic": kind})
        for place, kind in enumerate(KINDS)
    )
    return Dialogue(dialogue_id=str(number), language=language, sessions=(), questions=questions)


DIALOGUES = [dialogue(number, language) for language in ("ru", "en") for number in range(10)]
FOUND = contents(DIALOGUES)


def names(*, sample: Sample | None = None, shard: Shard | None = None) -> list[tuple[str, str, str]]:
    return [
        (each.language, each.dialogue_id, question.question_id)
        for each in taken(DIALOGUES, choose(FOUND, sample, shard))
        for question in each.questions
    ]


@pytest.mark.parametrize("sample", [None, Sample(questions=17, seed=3), Sample(dialogues=5)])
def test_shards_are_the_whole_without_overlap(sample: Sample | None) -> None:
    shards = [names(sample=sample, shard=Shard(number=number, of=4)) for number in range(1, 5)]
    assert Counter(name for shard in shards for name in shard) == Counter(names(sample=sample))


def test_both_languages_of_a_dialogue_are_in_the_same_shard() -> None:
    taken_here = names(shard=Shard(number=2, of=3))
    assert {name[1] for name in taken_here if name[0] == "ru"} == {name[1] for name in taken_here if name[0] == "en"}


def test_a_sample_of_questions_has_the_shares_of_the_whole_and_the_same_questions_in_each_language() -> None:
    chosen = names(sample=Sample(questions=8))
    of_language = [{name[1:] for name in chosen if name[0] == language} for language in ("ru", "en")]
    assert of_language[0] == of_language[1]
    kinds = Counter(KINDS[int(question_id[1:])] for _, question_id in of_language[0])
    assert kinds == {"StaticUser": 6, "Ordering": 2}


def test_the_seed_decides_and_nothing_else() -> None:
    first = names(sample=Sample(questions=8, seed=1))
    assert first == names(sample=Sample(questions=8, seed=1))
    assert first != names(sample=Sample(questions=8, seed=2))
    turned = choose(contents(DIALOGUES[::-1]), Sample(questions=8, seed=1), None)
    assert turned.questions == choose(FOUND, Sample(questions=8, seed=1), None).questions


def test_a_sample_of_questions_of_a_sample_of_dialogues() -> None:
    whole = {name[1] for name in names(sample=Sample(dialogues=3))}
    some = names(sample=Sample(dialogues=3, questions=4))
    assert len(whole) == 3
    assert len(some) == 2 * 4
    assert {name[1] for name in some} <= whole


@pytest.mark.parametrize(
    ("sample", "shard", "said"),
    [
        (Sample(questions=41), None, "has 40 questions: a sample of 41 is more"),
        (Sample(dialogues=11), None, "has 10 dialogues: a sample of 11 is more"),
        (None, Shard(number=1, of=11), "--shard 1/11: there are 10 dialogues"),
    ],
)
def test_more_than_there_is_is_refused(sample: Sample | None, shard: Shard | None, said: str) -> None:
    with pytest.raises(ChoiceError, match=said):
        choose(FOUND, sample, shard)


@pytest.mark.parametrize("written", ["", "1", "0/3", "4/3", "a/b", "1/3/5", "-1/3"])
def test_a_shard_is_a_number_of_a_number(written: str) -> None:
    with pytest.raises(ChoiceError, match="give i/n with i from 1 to n"):
        Shard.read(written)
