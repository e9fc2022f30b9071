from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memdock_evaluator.dataset import DatasetError
from memdock_evaluator.dataset.own import schema
from support.data_files import OWN, changed, kinds, read, without


def test_a_line_is_read_whole(tmp_path: Path) -> None:
    [dialogue] = read(tmp_path, OWN)

    assert (dialogue.dialogue_id, dialogue.language, dialogue.oddities) == ("support-1", "de", ())
    assert [turn.turn_id for turn in dialogue.turns] == ["a1", "s1-t1", "s2-t0"]
    assert [turn.time for turn in dialogue.turns] == [
        datetime(2024, 3, 5, 23, 30, tzinfo=UTC),
        datetime(2024, 3, 5, 22, 31, tzinfo=UTC),
        None,
    ]
    [question] = dialogue.questions
    assert question.references == ("Im Mai", "Mai")
    assert question.axes == {"topic": "contract"}
    assert (question.evidence_sessions, question.evidence_turns) == (("s1",), ("a1",))


def test_declared_zone_and_language_hold(tmp_path: Path) -> None:
    [dialogue] = read(tmp_path, OWN, zone="Europe/Berlin", language="fr")

    first = next(dialogue.turns)
    assert dialogue.language == "fr"
    assert first.time is not None
    assert first.time.utcoffset() == timedelta(hours=1)


@pytest.mark.parametrize(
    ("record", "field", "words"),
    [
        (OWN | {"sesions": []}, "sesions", "Extra inputs are not permitted"),
        (without(OWN, "language"), "language", "Field required$|Field required;"),
        (
            changed(OWN, "sessions", 1, "turns", 0, {"role": "user", "mood": "good", "txt": "Hallo"}),
            "sessions[1].turns[0].text",
            r"Field required \(and there is no field 'txt'\)",
        ),
        (changed(OWN, "language", "German"), "language", "pattern"),
        (changed(OWN, "sessions", 0, "turns", 1, "role", "bot"), "sessions[0].turns[1].role", "pattern"),
        (changed(OWN, "sessions", 0, "turns", 0, "turn_id", "ä"), "sessions[0].turns[0].turn_id", "pattern"),
        (changed(OWN, "sessions", 0, "time", "5 March"), "sessions[0].time", "no time of this format"),
        (changed(OWN, "sessions", 1, "turns", []), "sessions[1].turns", "at least 1 item"),
        (changed(OWN, "questions", 0, "answers", []), "questions[0].answers", "at least 1 item"),
        (changed(OWN, "questions", 0, "answers", "Mai"), "questions[0].answers", "tuple"),
        (changed(OWN, "questions", 0, "tags", "topic", 3), "questions[0].tags.topic", "string"),
    ],
)
def test_a_slip_is_refused_with_its_field(tmp_path: Path, record: dict[str, Any], field: str, words: str) -> None:
    with pytest.raises(DatasetError, match=words) as caught:
        read(tmp_path, OWN, record)

    assert (caught.value.record, caught.value.field) == (2, field)


def test_evidence_that_does_not_exist_is_left_out_and_noted(tmp_path: Path) -> None:
    question = OWN["questions"][0] | {"evidence_turns": ["zz", "s2-t0"], "evidence_sessions": [9, 1]}

    [dialogue] = read(tmp_path, changed(OWN, "questions", [question]))

    assert dialogue.questions[0].evidence_turns == ("s2-t0",)
    assert dialogue.questions[0].evidence_sessions == ("s1", "s2")
    assert kinds(dialogue) == ["evidence-unknown-turn", "evidence-unknown-session"]


def test_schema_describes_what_the_reader_takes() -> None:
    described = schema()

    assert described["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert described["required"] == ["dialogue_id", "language", "sessions", "questions"]
    assert described["additionalProperties"] is False
    turn = described["$defs"]["WrittenTurn"]
    assert turn["required"] == ["role", "text"]
    assert set(turn["properties"]) == {"role", "text", "name", "time", "turn_id"}
