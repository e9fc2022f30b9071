from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from memdock_evaluator.dataset import Dialogue, DialogueTurn, Question, Session, published, taxonomy
from memdock_evaluator.dataset.check import Report, check_dataset, report_on
from support.data_files import ROW, changed, write

START = datetime(2024, 3, 5, 12, tzinfo=UTC)


def found(report: Report) -> dict[str, int]:
    return {finding.kind: finding.count for finding in report.findings}


def session(index: int, *texts: str, time: datetime | None = START) -> Session:
    turns = tuple(
        DialogueTurn(turn_id=f"s{index}-t{place}", role=("user", "assistant")[place % 2], text=text)
        for place, text in enumerate(texts)
    )
    return Session(session_id=f"s{index}", index=index, turns=turns, time=time)


def question(name: str = "q", **given: object) -> Question:
    plain: dict[str, object] = {
        "question_id": name,
        "text": "?",
        "references": ("!",),
        "date": START,
        "evidence_sessions": ("s1",),
        "evidence_turns": ("s1-t0",),
    }
    return Question(**(plain | given))  # type: ignore[arg-type]


def report(*sessions: Session, questions: tuple[Question, ...] = ()) -> Report:
    one = Dialogue(dialogue_id="d", language="en", sessions=sessions, questions=questions)
    return report_on([one], "here")


def test_sizes_of_a_file(tmp_path: Path) -> None:
    rows = [ROW, ROW | {"id": "0|q1"}, ROW | {"conversation_idx": 1, "id": "1|q0", "evidence": [1, 2]}]

    report = check_dataset(write(tmp_path, rows))

    assert (report.dialogues, report.sessions, report.turns, report.questions) == (2, 4, 8, 3)
    assert report.characters == 2 * len("Мою собаку зовут Рекс!Красивое имя.Вчера гуляли до ночиКрасивое имя.")
    assert (report.questions_each.least, report.questions_each.mean, report.questions_each.most) == (1, 1.5, 2)
    assert report.evidence_sessions == 4
    assert report.languages == {"ru": 2}
    assert report.slices["semantic"] == {"StaticUser": 3}
    assert report.comparisons == ()


def test_oddities_are_counted_by_kind_with_the_first_place(tmp_path: Path) -> None:
    bad = changed(ROW, "category", "x")

    report = check_dataset(write(tmp_path, [bad, bad | {"id": "0|q1", "evidence": [7]}]))

    assert [(oddity.kind, oddity.count, oddity.first) for oddity in report.oddities] == [
        ("category-unreadable", 2, "dialogue 0, question 0|q0"),
        ("evidence-unknown-session", 1, "dialogue 0, question 0|q1"),
    ]


def test_a_clean_dialogue_has_no_findings() -> None:
    assert found(report(session(1, "a", "b"), questions=(question(),))) == {}


def test_findings_of_questions() -> None:
    later = START + timedelta(days=9)
    questions = (
        question("early"),
        question("undated", date=None),
        question("abstains", date=later, abstention=True),
        question("deleted", date=later, axes={"semantic": "DeleteInfo"}),
        question("no evidence", date=later, evidence_sessions=(), evidence_turns=()),
        question("no turns", date=later, evidence_turns=()),
        question("scope", date=later, axes={"scope": "multi"}),
    )

    assert found(report(session(1, "a", "b"), session(2, "c", "d", time=later), questions=questions)) == {
        "dated-before-last-session": 1,
        "question-undated": 1,
        "abstention-evidence": 1,
        "deletion-evidence": 1,
        "evidence-unstated": 1,
        "evidence-without-turns": 1,
        "scope-differs": 1,
    }


def test_findings_of_sessions_and_turns() -> None:
    twice = session(1, "a", "b")
    twice = Session(session_id="s1", index=1, turns=(*twice.turns, twice.turns[1]), time=START)

    assert found(report(twice, session(2, "ы" * 32_769, "b", time=None))) == {
        "dialogue-unasked": 1,
        "session-odd": 1,
        "speaker-twice": 1,
        "session-undated": 1,
        "turn-too-long": 1,
    }


def whole() -> Iterator[Dialogue]:
    """Questions in the numbers of the published set, its slices filled one after another."""
    kinds = [kind for group, size in published.SLICES["group"].items() for kind in [taxonomy.GROUPS[group][0]] * size]
    places = [
        tuple(pair.split("+")) for pair, size in published.SLICES["scope_temporality"].items() for _ in range(size)
    ]
    expressions = [
        expression for expression, size in published.SLICES["temporal_expression"].items() for _ in range(size)
    ]
    questions = []
    for number, (kind, (scope, temporality)) in enumerate(zip(kinds, places, strict=True)):
        expression = expressions.pop() if temporality == "temporal" else ""
        category = taxonomy.Category(semantic=kind, scope=scope, temporality=temporality)
        evidence = ("s1", "s2") if number < published.EVIDENCE_SESSIONS - published.QUESTIONS else ("s1",)
        axes = taxonomy.axes(category, expression=expression)
        questions.append(question(f"q{number}", axes=axes, evidence_sessions=evidence))
    for number in range(published.DIALOGUES):
        yield Dialogue(
            dialogue_id=str(number),
            language="ru",
            sessions=(session(1, "a", "b"), session(2, "c", "d")),
            questions=tuple(questions[number :: published.DIALOGUES]),
        )


def test_a_file_of_the_published_sizes_agrees_with_all_of_them() -> None:
    report = report_on(whole(), "whole")

    assert len(report.comparisons) == 3 + sum(map(len, published.SLICES.values()))
    assert report.differences == ()


def test_a_file_that_lost_a_dialogue_says_which_sizes_differ() -> None:
    report = report_on(list(whole())[:-1], "partial")

    different = {(each.axis, each.slice): (each.here, each.published) for each in report.differences}
    assert different["dialogues", ""] == (84, 85)
    assert different["questions", ""] == (1543 - 18, 1543)
    assert different["group", "abstention"][1] == 154
    assert len(different) < len(report.comparisons)
