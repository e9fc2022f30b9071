"""The data set of the project's own words: complete, right in its dates, the same in both shapes and both languages."""

from collections import Counter
from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path

import pytest

from memdock_evaluator.dataset import Dialogue, Question, open_dataset, taxonomy
from memdock_evaluator.dataset.build import build, written_dialogues
from memdock_evaluator.dataset.check import check_dataset
from memdock_evaluator.dataset.shipped import DATA, LANGUAGES, own_dataset_path
from memdock_evaluator.dataset.written import DateFact, WrittenDialogue
from support.weekdays import Mention, mentions, weekdays

WRITTEN = written_dialogues()
WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
TEMPORAL_BY_NATURE = {"DateExtraction", *taxonomy.GROUPS[taxonomy.TEMPORAL]}

each_language = pytest.mark.parametrize("language", LANGUAGES)
each_dialogue = pytest.mark.parametrize("written", WRITTEN, ids=lambda written: f"d{written.dialogue:02}")


def questions(language: str) -> Iterator[Question]:
    return (question for dialogue in open_dataset(own_dataset_path(language)) for question in dialogue.questions)


def test_committed_files_are_fresh(tmp_path: Path) -> None:
    stale = [path.name for path in build(tmp_path) if path.read_bytes() != (DATA / path.name).read_bytes()]

    assert stale == [], "run python -m memdock_evaluator.dataset.build"


@each_language
def test_both_shapes_are_the_same_dialogues(language: str) -> None:
    rows = list(open_dataset(own_dataset_path(language)))
    dialogues = list(open_dataset(own_dataset_path(language, "dialogues")))

    assert rows == dialogues == [written.read_in(language) for written in WRITTEN]


@each_language
def test_sizes_and_slices_are_as_promised(language: str) -> None:
    report = check_dataset(own_dataset_path(language))

    assert report.dialogues >= 6
    assert report.sessions_each.least >= 12
    assert report.characters_each.most <= 20_000
    assert report.questions_each.least >= 17
    assert set(report.slices["semantic"]) == set(taxonomy.TYPES)
    assert set(report.slices["scope_temporality"]) == {
        f"{scope}+{time}" for scope in taxonomy.SCOPES for time in taxonomy.TEMPORALITIES
    }
    assert set(report.slices["temporal_expression"]) == set(taxonomy.EXPRESSIONS)
    assert report.oddities == ()
    assert {finding.kind for finding in report.findings} <= {
        "abstention-evidence",
        "deletion-evidence",
        "dated-before-last-session",
    }


def test_both_languages_are_aligned() -> None:
    for russian, english in zip(*(open_dataset(own_dataset_path(language)) for language in LANGUAGES), strict=True):
        assert _skeleton(russian) == _skeleton(english)


@pytest.mark.parametrize(("language", "shape"), [("de", "rows"), ("ru", "parquet")])
def test_no_other_language_or_shape(language: str, shape: str) -> None:
    with pytest.raises(ValueError, match="the bundled data"):
        own_dataset_path(language, shape)


def _skeleton(dialogue: Dialogue) -> list[object]:
    sessions = [
        (session.session_id, session.time, [(turn.turn_id, turn.role) for turn in session.turns])
        for session in dialogue.sessions
    ]
    asked = [
        (question.question_id, question.date, question.axes, question.evidence_turns) for question in dialogue.questions
    ]
    return [dialogue.dialogue_id, dialogue.user_id, sessions, asked]


@each_dialogue
def test_a_dialogue_has_every_type_and_axis(written: WrittenDialogue) -> None:
    assert {question.category for question in written.questions} == set(taxonomy.TYPES)
    assert Counter(question.scope for question in written.questions)["multi"] >= 5
    temporal = [question for question in written.questions if question.temporality == "temporal"]
    assert len(temporal) >= 6
    assert {question.temporal_expression for question in temporal} == set(taxonomy.EXPRESSIONS)
    for question in written.questions:
        assert question.temporality == "temporal" or not question.temporal_expression
        assert question.temporality == "temporal" or question.category not in TEMPORAL_BY_NATURE, question.id


@each_dialogue
def test_subtypes_are_those_of_the_table(written: WrittenDialogue) -> None:
    for question in written.questions:
        assert question.subcategory in ("", *taxonomy.SUBTYPES.get(question.category, ())), question.id
        assert question.subsubcategory in ("", *taxonomy.DATE_SUBTYPES), question.id


@each_dialogue
def test_sessions_ascend_and_speakers_alternate(written: WrittenDialogue) -> None:
    assert [sitting.session for sitting in written.sessions] == list(range(1, len(written.sessions) + 1))
    days = [datetime.fromisoformat(sitting.time).date() for sitting in written.sessions]
    assert days == sorted(set(days))
    for sitting in written.sessions:
        roles = [turn.role for turn in sitting.turns]
        assert roles == ["user", "assistant"] * (len(roles) // 2)


@each_dialogue
def test_evidence_exists_and_scope_is_the_number_of_its_sessions(written: WrittenDialogue) -> None:
    turns = {sitting.session: len(sitting.turns) for sitting in written.sessions}
    for question in written.questions:
        assert all(0 <= place.turn < turns[place.session] for place in question.evidence), question.id
        several = len({place.session for place in question.evidence}) > 1
        assert question.scope == ("multi" if several else "single"), question.id


@each_dialogue
def test_date_facts_hold(written: WrittenDialogue) -> None:
    for question in written.questions:
        for fact in question.checks:
            assert _holds(fact), (question.id, fact)


def test_there_are_date_facts_to_check() -> None:
    facts = [fact for written in WRITTEN for question in written.questions for fact in question.checks]

    assert sum(fact.weekday is not None for fact in facts) >= 3
    assert sum(fact.days is not None for fact in facts) >= 6


def _holds(fact: DateFact) -> bool:
    """Whether a fact is so, and is one: a weekday, or a span in exactly one unit."""
    if fact.date and fact.weekday:
        return fact.date.weekday() == WEEKDAYS.index(fact.weekday)
    if not (fact.start and fact.end):
        return False
    months = 12 * (fact.end.year - fact.start.year) + fact.end.month - fact.start.month
    months -= fact.end.day < fact.start.day
    spans = [(fact.days, (fact.end - fact.start).days), (fact.months, months), (fact.years, months // 12)]
    stated = [(said, counted) for said, counted in spans if said is not None]
    return len(stated) == 1 and stated[0][0] == stated[0][1]


@pytest.mark.parametrize(
    ("fact", "holds"),
    [
        ({"date": "2024-03-05", "weekday": "tuesday"}, True),
        ({"date": "2024-03-05", "weekday": "monday"}, False),
        ({"date": "2024-03-05"}, False),
        ({"from": "2024-02-28", "to": "2024-03-05", "days": 6}, True),
        ({"from": "2024-02-28", "to": "2024-03-05", "days": 5}, False),
        ({"from": "2024-01-31", "to": "2024-02-29", "months": 1}, False),
        ({"from": "2024-01-29", "to": "2024-02-29", "months": 1}, True),
        ({"from": "2019-03-05", "to": "2024-03-04", "years": 5}, False),
        ({"from": "2019-03-05", "to": "2024-03-05", "years": 5}, True),
        ({"from": "2019-03-05", "to": "2024-03-05"}, False),
    ],
)
def test_a_date_fact_is_recomputed(fact: dict[str, object], holds: bool) -> None:
    assert _holds(DateFact.model_validate(fact)) is holds


@each_language
@each_dialogue
def test_weekdays_beside_dates_are_right(written: WrittenDialogue, language: str) -> None:
    for mention, near in _mentions(written, language):
        assert mention.holds(near), mention.words


@each_language
def test_there_are_weekdays_beside_dates(language: str) -> None:
    assert sum(1 for written in WRITTEN for _ in _mentions(written, language)) >= 1


@each_language
@each_dialogue
def test_a_weekday_in_an_answer_is_a_checked_one(written: WrittenDialogue, language: str) -> None:
    for question in written.questions:
        checked = {WEEKDAYS.index(fact.weekday) for fact in question.checks if fact.weekday}
        assert set(weekdays(getattr(question, language).answer, language)) <= checked, question.id


@each_language
def test_there_are_weekdays_in_answers(language: str) -> None:
    answers = [getattr(question, language).answer for written in WRITTEN for question in written.questions]

    assert sum(bool(list(weekdays(answer, language))) for answer in answers) >= 3


def _mentions(written: WrittenDialogue, language: str) -> Iterator[tuple[Mention, date]]:
    for sitting in written.sessions:
        for turn in sitting.turns:
            for mention in mentions(getattr(turn, language), language):
                yield mention, datetime.fromisoformat(sitting.time).date()
    for question in written.questions:
        asked = getattr(question, language)
        for mention in mentions(f"{asked.question} | {asked.answer}", language):
            yield mention, datetime.fromisoformat(question.question_date).date()


@pytest.mark.parametrize(
    ("language", "text", "weekday", "day", "month", "year"),
    [
        ("ru", "Приём во вторник, 5 марта, в десять", 1, 5, 3, 0),
        ("ru", "5 марта 2024 года (вторник)", 1, 5, 3, 2024),
        ("ru", "в среду 6-го марта", 2, 6, 3, 0),
        ("ru", "10 марта — это воскресенье", 6, 10, 3, 0),
        ("en", "on Tuesday, March 5th, at ten", 1, 5, 3, 0),
        ("en", "March 5, 2024 (Tuesday)", 1, 5, 3, 2024),
        ("en", "Wednesday the 6th of March", 2, 6, 3, 0),
        ("en", "10 March was a Sunday", 6, 10, 3, 0),
    ],
)
def test_the_scan_sees_a_weekday(language: str, text: str, weekday: int, day: int, month: int, year: int) -> None:
    [found] = mentions(text, language)

    assert (found.weekday, found.day, found.month, found.year) == (weekday, day, month, year)
    assert found.holds(date(2024, 4, 1))
    assert found.holds(date(2023, 4, 1)) == bool(year)


@pytest.mark.parametrize("text", ["5 марта", "во вторник", "5 марта. Во вторник", "March 5", "see you Tuesday"])
def test_the_scan_sees_nothing_else(text: str) -> None:
    assert [*mentions(text, "ru"), *mentions(text, "en")] == []


@each_language
def test_questions_are_dated_and_a_few_come_early(language: str) -> None:
    early = check_dataset(own_dataset_path(language)).findings

    assert all(question.date for question in questions(language))
    assert 1 <= next(finding.count for finding in early if finding.kind == "dated-before-last-session") <= 12
