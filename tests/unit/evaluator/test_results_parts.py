"""Parts and folders: whole or absent, never overwritten, damage noticed, on a disk and elsewhere."""

from pathlib import Path

import fsspec
import pytest

from memdock_evaluator.results.folder import Folder, FolderError
from memdock_evaluator.results.parts import PartError, Parts, Unit
from memdock_evaluator.results.records import ANSWER, Answered

UNIT = Unit(system="baseline:oracle", language="ru", dialogue_id="conv/1")


def answered(question_id: str, text: str = "yes") -> Answered:
    return Answered(question_id=question_id, repeat=0, answer=text)


@pytest.fixture(params=["disk", "memory"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Folder:
    return Folder(str(tmp_path / "run") if request.param == "disk" else f"memory://{tmp_path.name}/run")


def test_each_attempt_is_a_part_of_its_own(folder: Folder) -> None:
    parts = Parts(folder, UNIT)
    assert parts.read(ANSWER) == []
    assert parts.newest(ANSWER) == []
    parts.write(ANSWER, [answered("q0"), answered("q1")])
    first = folder.read(f"{UNIT.folder}/answer-001.jsonl")
    parts.write(ANSWER, [answered("q1", "no")])
    assert folder.names(UNIT.folder) == ["answer-001.jsonl", "answer-002.jsonl"]
    assert folder.read(f"{UNIT.folder}/answer-001.jsonl") == first
    assert [(record.question_id, record.answer) for record in parts.read(ANSWER)] == [
        ("q0", "yes"),
        ("q1", "yes"),
        ("q1", "no"),
    ]
    assert [record.answer for record in parts.newest(ANSWER)] == ["no"]


def test_nothing_to_keep_makes_no_part(folder: Folder) -> None:
    Parts(folder, UNIT).write(ANSWER, [])
    assert folder.names(UNIT.folder) == []


def test_an_attempt_never_takes_the_name_of_a_later_one(folder: Folder) -> None:
    parts = Parts(folder, UNIT)
    for name in ("q0", "q1"):
        parts.write(ANSWER, [answered(name)])
    files, root = fsspec.core.url_to_fs(folder.address)
    files.rm_file(f"{root}/{UNIT.folder}/answer-001.jsonl")
    folder = Folder(folder.address)
    Parts(folder, UNIT).write(ANSWER, [answered("q2")])
    assert folder.names(UNIT.folder) == ["answer-002.jsonl", "answer-003.jsonl"]


def test_attempts_are_counted_past_a_thousand_and_other_files_are_none(folder: Folder) -> None:
    parts = Parts(folder, UNIT)
    parts.write(ANSWER, [answered("q0", "first")])
    part = folder.read(f"{UNIT.folder}/answer-001.jsonl")
    assert part is not None
    folder.write(f"{UNIT.folder}/answer-999.jsonl", part.replace(b"answer-001", b"answer-999"))
    folder.write(f"{UNIT.folder}/answer-copy.jsonl", b"notes of mine")
    for number in (1000, 1001):
        parts.write(ANSWER, [answered("q0", f"of attempt {number}")])
    assert [record.answer for record in parts.newest(ANSWER)] == ["of attempt 1001"]
    assert len(parts.read(ANSWER)) == 4


@pytest.mark.parametrize("damage", [lambda part: part[:-9], lambda part: part.replace(b"yes", b"no!"), lambda _: b""])
def test_a_damaged_part_is_named(folder: Folder, damage: object) -> None:
    assert callable(damage)
    parts = Parts(folder, UNIT)
    parts.write(ANSWER, [answered("q0")])
    name = f"{UNIT.folder}/answer-001.jsonl"
    folder.write(name, damage(folder.read(name)))
    with pytest.raises(PartError, match=r"answer-001\.jsonl is damaged: delete it"):
        parts.read(ANSWER)


def test_a_file_that_is_not_finished_is_not_there(folder: Folder) -> None:
    def write_half() -> None:
        with folder.writing("x.json") as file:
            file.write(b"half of the n")
            raise RuntimeError("stop")

    folder.write("x.json", b"old")
    with pytest.raises(RuntimeError, match="stop"):
        write_half()
    assert folder.read("x.json") == b"old"
    assert folder.names("") == ["x.json"]


def test_a_kill_leaves_only_an_unfinished_file_that_no_one_reads(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path))
    (tmp_path / "answer-001.jsonl.unfinished").write_bytes(b"half")
    assert folder.names("") == []


def test_an_address_of_no_known_kind() -> None:
    with pytest.raises(FolderError, match="nowhere://x"):
        Folder("nowhere://x")
