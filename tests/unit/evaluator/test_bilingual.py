"""The same questions in two languages, and memories in another script, by hand-made rows and a reference."""

import numpy as np
import pytest

from memdock_evaluator.results.rows import RetrievedMemory, Row
from memdock_evaluator.statistics.bilingual import language_pairs
from memdock_evaluator.statistics.matrix import ScoredRow, matrix_of
from memdock_evaluator.summary.comparisons import compare
from memdock_evaluator.summary.scripts import memory_scripts, script_of
from support.synthetic_rows import a_row


def asked(dialogue: int, question: int, en: bool | None, ru: bool | None, system: str = "mem") -> list[ScoredRow]:
    return [
        ScoredRow(
            system=system, language=language, dialogue_id=str(dialogue), question_id=f"q{question}", correct=correct
        )
        for language, correct in (("en", en), ("ru", ru))
    ]


# Dialogue by dialogue, right in English and in Russian.
SCORES = [
    [(True, True), (True, False), (True, False)],
    [(True, False), (False, False), (False, True)],
    [(True, True), (True, False), (False, False)],
]


def test_questions_are_counted_by_the_languages_in_which_they_are_right() -> None:
    rows = [
        row
        for dialogue, scores in enumerate(SCORES)
        for question, (en, ru) in enumerate(scores)
        for row in asked(dialogue, question, en, ru)
    ]
    rows += asked(0, 9, True, None)
    (pair,) = language_pairs(matrix_of(rows))
    assert (pair.first, pair.second, pair.asked, pair.n, pair.n_dialogues) == ("en", "ru", 10, 9, 3)
    assert (pair.both, pair.only_first, pair.only_second, pair.neither) == (2, 4, 1, 2)
    assert pair.difference == pytest.approx(3 / 9, abs=1e-6)
    # Cluster-robust by hand: residuals of each dialogue's sum from its share, G / (G - 1), t on 2 degrees.
    sums = np.array([2, 0, 1]) - 3 * 3 / 9
    error = (3 / 2 * (sums**2).sum()) ** 0.5 / 9
    assert pair.clustered_error == pytest.approx(error, rel=1e-5)
    assert pair.low == pytest.approx(3 / 9 - 4.302653 * error, rel=1e-5)
    assert pair.high == 1.0, "3 / 9 + 4.302653 * error is more than a difference can be"
    t = 3 / 9 / error
    assert pair.p == pytest.approx(1 - t / (2 + t * t) ** 0.5, rel=1e-5), "Student's t on 2 degrees, in closed form"


def test_a_system_in_one_language_has_no_pair_and_repeats_go_by_their_mean() -> None:
    alone = [row for row in asked(0, 0, True, True) if row.language == "en"]
    assert language_pairs(matrix_of(alone)) == ()
    repeats = [*asked(0, 0, True, True), *asked(0, 0, True, False), *asked(0, 0, False, False)]
    (pair,) = language_pairs(matrix_of(repeats))
    # Right in 2 of 3 repeats of the first language and 1 of 3 of the second, each repeat with each.
    assert (pair.both, pair.only_first, pair.only_second, pair.neither) == pytest.approx(
        (2 / 9, 4 / 9, 1 / 9, 2 / 9), abs=1e-6
    )
    assert pair.both + pair.only_first == pytest.approx(2 / 3, abs=1e-6), "the first language's accuracy"
    assert pair.difference == pytest.approx(1 / 3, abs=1e-6)


def test_an_interval_ends_where_no_difference_can_lie() -> None:
    rows = [*asked(0, 0, True, False), *asked(1, 0, True, True)]
    (pair,) = language_pairs(matrix_of(rows))
    # One degree of freedom: t is 12.7, and 0.5 + 12.7 * 0.5 lies far beyond.
    assert (pair.difference, pair.low, pair.high) == (0.5, -1.0, 1.0)


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("Кота зовут Бублик", "CYRILLIC"),
        ("Кот Bublik живёт в Перми", "CYRILLIC"),
        ("The cat is called Бублик", "LATIN"),
        ("2024-03-04, 5083", ""),
        ("Ёж и Žluťoučký kůň", "LATIN"),
        ("猫の名前", "CJK"),
    ],
)
def test_a_text_is_in_the_script_of_most_of_its_letters(text: str, script: str) -> None:
    assert script_of(text) == script


def given(*texts: str, **changes: object) -> Row:
    memories = tuple(
        RetrievedMemory(rank=rank, kind="fact", text=text, score=None, time=None)
        for rank, text in enumerate(texts, start=1)
    )
    return a_row(language="ru", question="Как зовут кота?", memories=memories, **changes)


def test_memories_in_another_script_are_counted_where_they_were_given() -> None:
    rows = [
        given("Кота зовут Бублик", "The cat is called Bublik", "5083"),
        given("The cat is ginger", dialogue_id="1"),
        given("The cat is ginger", dialogue_id="1", repeat=1, judging=1),
        a_row(memories=()),
    ]
    (found,) = memory_scripts(rows)
    assert (found.system, found.language, found.n, found.other) == ("rag-dense", "ru", 3, 2)
    assert found.share == 0.666667
    assert found.scripts == {"CYRILLIC": 1, "LATIN": 2}
    assert compare(rows, resamples=1).languages.memories == (found,)
