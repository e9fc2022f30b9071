"""Sentences, numbers and dates as English and Russian write them."""

from datetime import UTC, datetime

import orjson
import pytest

from memdock_evaluator.report.language import PageWords
from memdock_evaluator.words.counting import half_up
from memdock_evaluator.words.language import Words
from memdock_evaluator.words.sentence import Sentence, said, said_n

ENGLISH, RUSSIAN = Words("en"), Words("ru")


@pytest.mark.parametrize(
    ("n", "english", "russian"),
    [
        (0, "0 questions", "0 вопросов"),
        (1, "1 question", "1 вопрос"),
        (2, "2 questions", "2 вопроса"),
        (5, "5 questions", "5 вопросов"),
        (11, "11 questions", "11 вопросов"),
        (21, "21 questions", "21 вопрос"),
        (112, "112 questions", "112 вопросов"),
        (2003, "2,003 questions", "2\u00a0003 вопроса"),
    ],
)
def test_a_counted_thing_has_the_form_of_its_number(n: int, english: str, russian: str) -> None:
    assert ENGLISH.tn("{n} question", "{n} questions", n) == english
    assert RUSSIAN.tn("{n} question", "{n} questions", n) == russian


def test_numbers_and_dates_are_written_as_the_language_does() -> None:
    assert (ENGLISH.number(1234.56, 1), RUSSIAN.number(1234.56, 1)) == ("1,234.6", "1\u00a0234,6")
    assert (ENGLISH.percent(0.955, 1), RUSSIAN.percent(0.955, 1)) == ("95.5%", "95,5\u00a0%")
    day = datetime(2026, 11, 30, 9, 5, tzinfo=UTC)
    assert ENGLISH.day(day) == "30 November 2026"
    assert RUSSIAN.day(day) == "30 ноября 2026\u202fг."
    assert PageWords("en").moment(day) == "30 November 2026, 09:05 UTC"


def test_figures_of_the_page() -> None:
    english, russian = PageWords("en"), PageWords("ru")
    assert (english.share(0.6604), russian.share(0.6604), english.share(None)) == ("66.0", "66,0", "–")
    assert (english.points(-0.1234), russian.points(0.1), english.points(-0.0004)) == ("−12.3", "+10,0", "0.0")
    assert (english.probability(0.0004), russian.probability(0.0123)) == ("< 0.001", "0,012")
    assert [russian.ms(time) for time in (4.25, 250, 1500, 180_000)] == ["4,3 мс", "250 мс", "1,5 с", "3,0 мин"]
    assert [english.requests(unit) for unit in ("pair", "batch:1", "batch:50")] == [
        "one request a pair of turns",
        "one request every 1 turn",
        "one request every 50 turns",
    ]


def test_a_word_without_a_translation_stands_as_it_is() -> None:
    assert RUSSIAN.word("en_GB") == "en_GB"
    assert RUSSIAN.word("") == ""


def test_sentences_of_a_page_are_markup_and_their_values_are_not() -> None:
    words = PageWords("ru")
    assert words.t("took {time}", time="<b>") == "занял &lt;b&gt;"
    assert words.word("<b>") == "<b>"
    assert not hasattr(words.word("<b>"), "__html__")


def test_a_sentence_of_the_code_is_english_until_a_page_says_it() -> None:
    sentence = said_n("{n} question", "{n} questions", 1234)
    assert sentence == "1,234 questions"
    assert RUSSIAN.word(sentence) == "1\u00a0234 вопроса"
    inside = said("took {time}", time=(said("{time} s", time=1.5), "<i>"))
    assert inside == "took 1.5 s, <i>"
    assert RUSSIAN.word(inside) == "занял 1,5 с, <i>"
    assert PageWords("ru").word(inside) == "занял 1,5 с, &lt;i&gt;"
    assert orjson.dumps([inside]) == b'["took 1.5 s, <i>"]'


def test_a_share_is_written_in_per_cent() -> None:
    sentence = Sentence("{share:.1%}", values={"share": 0.9551})
    assert (sentence, RUSSIAN.word(sentence)) == ("95.5%", "95,5\u00a0%")


@pytest.mark.parametrize(
    ("share", "shown"), [(0.125, "13"), (0.375, "38"), (0.625, "63"), (0.875, "88"), (0.005, "1"), (0.1249, "12")]
)
def test_a_half_is_rounded_up(share: float, shown: str) -> None:
    assert Words("en").number(100 * share) == shown
    assert half_up(100 * share, ".0f") == shown
    assert said("{share:.0%}", share=share) == f"{shown}%"
    assert half_up(-100 * 0.125, ".0f") == "-13"
    assert half_up(28.499999999999996, ".0f") == "29"
