"""Any value in any field of any format: read, mended or refused in a sentence of bearable length, and never a trace."""

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import orjson
import pytest

from memdock_evaluator.dataset import DatasetError, Dialogue, open_dataset
from memdock_evaluator.dataset.check import check_dataset
from memdock_evaluator.dataset.export import SHAPES, export_dataset
from support.data_files import DIALOGUE, GIGAMEMORY, LOCOMO, LONGMEMEVAL, OWN, ROW, changed, kinds, read, write

FORMATS = {
    "rows": ROW,
    "dialogues": DIALOGUE,
    "locomo": LOCOMO,
    "longmemeval": LONGMEMEVAL,
    "gigamemory": GIGAMEMORY,
    "own": OWN,
}
LONG_NUMBER = "9" * 5000
"""More digits than Python makes a number of."""

VALUES: list[Any] = [
    None,
    True,
    -1,
    1e300,
    "",
    LONG_NUMBER,
    f"D{LONG_NUMBER}:1",
    "\0",
    [],
    [[]],
    {"a": [1]},
    "0001-01-01T00:00:00",
]
KEYS = ["", f"session_{LONG_NUMBER}", "session_0"]


def altered(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The record with each of its values, and each of its keys, replaced by each of the strange ones."""
    for path in places(record):
        yield from (changed(record, *path, value) for value in VALUES)
        if isinstance(path[-1], str):
            for key in KEYS:
                copy = deepcopy(record)
                part: Any = copy
                for step in path[:-1]:
                    part = part[step]
                part[key] = part.pop(path[-1])
                yield copy


def places(part: Any, *above: Any) -> Iterator[tuple[Any, ...]]:
    steps = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
    for step, value in steps:
        yield (*above, step)
        yield from places(value, *above, step)


@pytest.mark.parametrize("name", FORMATS)
def test_every_field_may_hold_anything(tmp_path: Path, name: str) -> None:
    said = []
    for record in altered(FORMATS[name]):
        path = write(tmp_path, [FORMATS[name], record])
        said.append(refusal(path))
        if not said[-1] and (dialogues := list(exportable(path))):
            for shape in SHAPES if name in ("rows", "dialogues") else ("own",):
                export_dataset(dialogues, shape, tmp_path / "out")
                assert list(open_dataset(tmp_path / "out"))

    assert 0 < sum(map(bool, said)) < len(said), "some are refused, others mended"
    assert max(map(len, said)) < 2000


def exportable(path: Path) -> Iterator[Dialogue]:
    """The dialogues that every shape can hold: something was said, and the category of each question can be read."""
    for dialogue in open_dataset(path, language="ru"):
        if dialogue.sessions and not any("category" in question.axes for question in dialogue.questions):
            yield dialogue


def refusal(path: Path) -> str:
    """What is said against the file; "" where it can be read."""
    try:
        check_dataset(path, zone="Asia/Kolkata")
    except DatasetError as error:
        return str(error)
    return ""


def test_an_id_that_is_nearly_a_number_is_exported_as_it_stands(tmp_path: Path) -> None:
    for number in ("7", "007", LONG_NUMBER, "٣"):
        export_dataset(read(tmp_path, changed(ROW, "conversation_idx", number)), "rows", tmp_path / "out")

        assert [dialogue.dialogue_id for dialogue in open_dataset(tmp_path / "out")] == [number]


@pytest.mark.parametrize(
    ("time", "zone"), [("0001-01-01T00:00:00", "Europe/Moscow"), ("9999-12-31T23:59:59", "America/New_York")]
)
def test_a_time_outside_the_calendar_is_refused(tmp_path: Path, time: str, zone: str) -> None:
    with pytest.raises(DatasetError, match=r"field question_date: .* is no time of this format: date value out of"):
        read(tmp_path, changed(ROW, "question_date", time), zone=zone)


@pytest.mark.parametrize("record", [DIALOGUE, LOCOMO], ids=["dialogues", "locomo"])
@pytest.mark.parametrize("number", ["0", "01", LONG_NUMBER])
def test_a_session_whose_number_does_not_count_from_1_is_refused(
    tmp_path: Path, record: dict[str, Any], number: str
) -> None:
    said = record["conversation"]["session_1"]

    with pytest.raises(DatasetError, match=r"field conversation\.session_\d+( \.\.\.)?: sessions are numbered 1, 2, 3"):
        read(tmp_path, changed(record, "conversation", f"session_{number}", said))


def test_evidence_with_an_endless_number_is_no_id_of_a_turn(tmp_path: Path) -> None:
    [dialogue] = read(tmp_path, changed(LOCOMO, "qa", 0, "evidence", [f"D1:{LONG_NUMBER}"]))

    assert kinds(dialogue) == ["date-without-session", "evidence-unreadable"]


def test_a_lost_character_is_a_finding(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_bytes(orjson.dumps(ROW).replace("Вчера".encode(), rb"\ud83d"))

    [lost] = [each for each in check_dataset(path).findings if each.kind == "character-lost"]
    assert (lost.count, lost.first) == (1, "dialogue 0, turn s2-t0")


def test_a_conversation_that_is_a_string_of_json_is_read_alike(tmp_path: Path) -> None:
    written = orjson.dumps(ROW["conversation"]).decode()

    assert read(tmp_path, changed(ROW, "conversation", written)) == read(tmp_path, ROW)
    with pytest.raises(DatasetError, match="field conversation: Value error, cannot be read on"):
        read(tmp_path, changed(ROW, "conversation", written[:-1]))
