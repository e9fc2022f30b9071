"""The offline pair: what it answers and how it judges, the same every time."""

from datetime import UTC

import pytest

from memdock_evaluator.answer.answerer import Asked
from memdock_evaluator.answer.judge import ToJudge
from memdock_evaluator.answer.offline import ExtractiveAnswerer, OverlapJudge, RefusingAnswerer
from memdock_evaluator.answer.opening import refusals
from memdock_evaluator.answer.stems import stems
from memdock_evaluator.results.rows import RetrievedMemory

WORDS = refusals(["ru", "en"])


def asked(text: str, language: str, *memories: str) -> Asked:
    kept = tuple(
        RetrievedMemory(rank=rank, kind="", text=memory, score=None, time=None)
        for rank, memory in enumerate(memories, start=1)
    )
    return Asked(text=text, date=None, language=language, zone=UTC, memories=kept)


async def test_the_sentence_that_shares_the_rare_words_is_the_answer() -> None:
    answer = await ExtractiveAnswerer(WORDS).answer(
        asked("Как зовут моего кота?", "ru", "Погода хорошая. Кота моего зовут Бублик! Он рыжий.", "Кот спит."),
        repeat=0,
    )
    assert answer.text == "Кота моего зовут Бублик!"
    assert not answer.abstained


async def test_an_earlier_memory_wins_where_sentences_are_equal() -> None:
    answer = await ExtractiveAnswerer(WORDS).answer(
        asked("cat name?", "en", "The cat name is A", "The cat name is B"), repeat=0
    )
    assert answer.text == "The cat name is A"


@pytest.mark.parametrize("memories", [(), ("Nothing of the kind stands here.",)])
async def test_without_overlap_it_refuses(memories: tuple[str, ...]) -> None:
    answer = await ExtractiveAnswerer(WORDS).answer(
        asked("Which trumpet did grandfather play?", "en", *memories), repeat=0
    )
    assert (answer.text, answer.abstained) == ("There is no such information.", True)


async def test_the_refusing_answerer_looks_at_nothing() -> None:
    answer = await RefusingAnswerer(WORDS).answer(asked("Кот?", "ru", "Кот."), repeat=3)
    assert (answer.text, answer.abstained) == ("Такой информации нет.", True)


@pytest.mark.parametrize(
    ("reference", "answer", "label"),
    [
        ("Bublik", "Bublik", 2),
        ("The cat is called Bublik", "Bublik is what the cat is called", 2),
        ("Bublik", "I picked up Bublik two years ago behind the garages, ginger and cheeky", 3),
        ("A ginger cat named Bublik", "A ginger cat", 1),
        ("Bublik", "Barsik", 0),
        ("12 days", "21 days", 1),
        ("There is no such information: you asked to delete it.", "There is no such information.", 2),
        ("There is no such information.", "The code is 5083", 0),
        ("The code is 5083", "There is no such information.", 0),
        ("Bublik", "", 0),
    ],
)
async def test_the_overlap_judge(reference: str, answer: str, label: int) -> None:
    item = ToJudge(question="?", references=(reference,), answer=answer, language="en")
    assert (await OverlapJudge(WORDS).judge(item, repeat=0)).label == label


async def test_the_best_reference_counts() -> None:
    item = ToJudge(question="?", references=("Barsik", "Bublik"), answer="Bublik", language="en")
    assert (await OverlapJudge(WORDS).judge(item, repeat=0)).label == 2


def test_stems_join_the_forms_of_a_word_and_leave_empty_words_out() -> None:
    assert stems("Где мои зелёные велосипеды?", "ru") == stems("зеленый велосипед", "ru")
    assert stems("the bicycles", "en") == ["bicycl"]
    assert stems("Who is he", "en") == ["who", "is", "he"]
    assert stems("Добар дан", "sr") == ["добар", "дан"]
