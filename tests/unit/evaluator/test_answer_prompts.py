"""Prompt files: complete, checked as they are opened, filled in once; dates in words; refusals recognised."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from memdock_evaluator.answer.abstention import abstains
from memdock_evaluator.answer.answerer import Asked, context
from memdock_evaluator.answer.chat_answerer import ANSWER_FIELDS
from memdock_evaluator.answer.chat_judge import JUDGE_FIELDS
from memdock_evaluator.answer.dates import written
from memdock_evaluator.answer.prompts import (
    Prompt,
    PromptError,
    TextFile,
    bundled,
    bundled_for_all,
    check_pollux,
    opened,
    refusal_words,
    rubric,
)
from memdock_evaluator.results.rows import RetrievedMemory

WEDNESDAY = datetime(2024, 10, 2, 10, 0, tzinfo=UTC)


def file(text: str) -> TextFile:
    return TextFile(name="mine.txt", text=text, sha256="")


@pytest.mark.parametrize("language", ["ru", "en"])
def test_the_bundled_prompts_and_rubrics_are_complete(language: str) -> None:
    assert bundled("answer", language, "txt").name == f"answer.{language}.txt"
    Prompt(file=bundled("answer", language, "txt"), fields=ANSWER_FIELDS)
    Prompt(file=bundled("judge", language, "txt"), fields=JUDGE_FIELDS)
    assert len(rubric(bundled("rubric", language, "yaml")).scale_lines.splitlines()) == 4


def test_the_pollux_form_has_its_five_sections_in_order() -> None:
    prompt = Prompt(file=bundled_for_all("judge.pollux.txt"), fields=JUDGE_FIELDS)
    filled = prompt.fill(question="Q?", reference="R", answer="A", criterion="C", scale="0: S")
    assert filled == (
        "### Задание для оценки:\nQ?\n\n### Эталонный ответ:\nR\n\n### Ответ для оценки:\nA\n\n"
        "### Критерий оценки:\nC\n\n### Шкала оценивания по критерию:\n0: S"
    )


POLLUX_FORM = bundled_for_all("judge.pollux.txt").text


def swapped(first: str, second: str) -> str:
    """POLLUX's form with two pieces of its text in each other's place."""
    return POLLUX_FORM.replace(first, "<>").replace(second, first).replace("<>", second)


def test_the_bundled_pollux_form_is_the_one_it_was_trained_on() -> None:
    check_pollux(file(POLLUX_FORM))


@pytest.mark.parametrize(
    ("form", "sentence"),
    [
        (
            swapped("### Эталонный ответ:", "### Ответ для оценки:"),
            "where '### Эталонный ответ:' is wanted, there is '### Ответ для оценки:'",
        ),
        (swapped("{reference}", "{answer}"), r"below '### Эталонный ответ:' belongs \{reference\}, and no other"),
        (
            POLLUX_FORM.partition("### Шкала")[0] + "{scale}",
            "'### Шкала оценивания по критерию:' is wanted, .* nothing",
        ),
        (POLLUX_FORM + "\n### Ответ:", "where the form ends, there is '### Ответ:'"),
        (POLLUX_FORM.replace("{question}", "{question} {answer}"), r"below '### Задание для оценки:' belongs"),
    ],
    ids=["headings", "bodies", "missing", "more", "two-in-one"],
)
def test_a_pollux_form_of_another_shape_is_refused(form: str, sentence: str) -> None:
    with pytest.raises(PromptError, match=f"mine.txt: POLLUX's form: .*{sentence}"):
        check_pollux(file(form))


def test_a_language_without_a_file_is_asked_in_english() -> None:
    assert bundled("answer", "de", "txt").name == "answer.en.txt"
    assert refusal_words("de") == refusal_words("en")


def test_a_missing_and_a_misspelt_placeholder_are_named() -> None:
    with pytest.raises(PromptError, match=r"mine.txt: the prompt lacks \{question\}"):
        Prompt(file=file("{date}"), fields=frozenset({"date", "question"}))
    with pytest.raises(PromptError, match=r"\{qestion\} is no placeholder of this prompt; it has \{question\}"):
        Prompt(file=file("{question} {qestion}"), fields=frozenset({"question"}))


def test_braces_in_a_value_and_json_in_a_prompt_stay_as_they_are() -> None:
    prompt = Prompt(file=file('{question} {answer} {"verdict": 2}'), fields=frozenset({"question", "answer"}))
    assert prompt.fill(question="{answer}", answer="{question}") == '{answer} {question} {"verdict": 2}'


def test_a_file_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    with pytest.raises(PromptError, match="cannot be read"):
        opened(tmp_path / "none.txt")
    (tmp_path / "x.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(PromptError, match="not UTF-8"):
        opened(tmp_path / "x.txt")
    with pytest.raises(PromptError, match="labels 0, 1, 2 and 3"):
        rubric(file("criterion: c\nscale: {0: a, 1: b}"))
    with pytest.raises(PromptError, match="criterion"):
        rubric(file("scale: {0: a, 1: b, 2: c, 3: d}"))
    with pytest.raises(PromptError, match="not YAML"):
        rubric(file("a: [1"))
    with pytest.raises(PromptError, match="not YAML"):
        rubric(file("[" * 10_000))
    with pytest.raises(PromptError, match="labels 0, 1, 2 and 3"):
        rubric(file("criterion: c\nscale: {0: a, 1: b, 2: c, '3': d}"))


def test_dates_carry_their_weekday() -> None:
    assert written(WEDNESDAY, "en") == "Wednesday, 2 October 2024, 10:00"
    assert written(WEDNESDAY, "ru") == "среда, 2 октября 2024 г., 10:00"
    assert written(WEDNESDAY - timedelta(hours=10), "en") == "Wednesday, 2 October 2024"
    assert written(None, "ru") == "неизвестный день"


def test_the_weekday_of_every_day_of_a_year_agrees_with_the_calendar() -> None:
    for day in range(366):
        date = datetime(2024, 1, 1, tzinfo=UTC) + timedelta(days=day)
        assert written(date, "en").startswith(date.strftime("%A, ") + f"{date.day} ")


def test_memories_are_shown_with_their_time_in_the_dialogues_zone() -> None:
    memory = RetrievedMemory(rank=1, kind="", text="hi", score=None, time="2024-03-05T20:30:00+00:00")
    undated = RetrievedMemory(rank=2, kind="", text="ho", score=None, time=None)
    asked = Asked(text="q", date=None, language="en", zone=ZoneInfo("Europe/Moscow"), memories=(memory, undated))
    assert context(asked) == "- [Tuesday, 5 March 2024, 23:30] hi\n- ho"


@pytest.mark.parametrize(
    "answer",
    [
        "There is no such information.",
        '"there is no such information"',
        "There is no such information: you asked to delete it.",
        "I don't know.",
        "I don't have that information.",
        "That was never mentioned in our conversations.",
        "No information about the gate code is available.",
    ],
)
def test_an_english_answer_that_abstains(answer: str) -> None:
    assert abstains(answer, refusal_words("en"))


@pytest.mark.parametrize("answer", ["Bublik.", "", "We don't have a cat.", "You asked me to remember it: 5083."])
def test_an_english_answer_that_does_not(answer: str) -> None:
    assert not abstains(answer, refusal_words("en"))


@pytest.mark.parametrize(
    "answer",
    ["Такой информации нет.", "такой информации нет: вы просили её удалить", "Не знаю.", "Об этом не упоминалось."],
)
def test_a_russian_answer_that_abstains(answer: str) -> None:
    assert abstains(answer, refusal_words("ru"))


@pytest.mark.parametrize("answer", ["Бублик.", "В Перми. Раньше я этого не знал.", "Нет, во вторник."])
def test_a_russian_answer_that_does_not(answer: str) -> None:
    assert not abstains(answer, refusal_words("ru"))
