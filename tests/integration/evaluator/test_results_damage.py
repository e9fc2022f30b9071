"""A full or read-only disk, files that are damaged, of another version, or of something else: each is said by name."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner, Result

from memdock_evaluator.cli import main
from memdock_evaluator.results.folder import Folder, FolderError
from support.evaluation import write_data
from support.processes import run_command

DISK_BYTES = 16 << 20
COMMANDS = (("report",), ("verify",), ("show", "0/q0"), ("compare",))


def invoke(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def words_of(command: tuple[str, ...], run: Path) -> tuple[object, ...]:
    name, *more = command
    return (name, run, run) if name == "compare" else (name, run, *more)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_data(tmp_path / "d.jsonl")


@pytest.fixture
def run(data: Path, tmp_path: Path) -> Path:
    out = tmp_path / "run"
    assert again(data, out).exit_code == 0
    return out


def again(data: Path, out: Path) -> Result:
    return invoke("run", "--data", data, "--out", out, "--baseline", "oracle", "--no-trial")


def refused(words: tuple[object, ...], *sentences: str, code: int = 1) -> None:
    """One sentence, and no trace."""
    said = invoke(*words)
    assert said.exit_code == code, (words, said.output)
    for sentence in sentences:
        assert sentence in " ".join(said.output.split()), words
    assert "Traceback" not in said.output
    assert isinstance(said.exception, SystemExit)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """In memory; for root, where that may mount."""
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(place)],
        capture_output=True,
        check=False,
        text=True,
    )
    if mounted.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_a_disk_that_is_full_is_said_and_once_it_has_space_the_same_command_completes(
    small_disk: Path, tmp_path: Path
) -> None:
    data = write_data(tmp_path / "d.jsonl", dialogues=[str(number) for number in range(6)])
    flags = ("--data", data, "--baseline", "oracle", "--no-trial")
    assert run_command("memdock-eval", "run", *flags, "--out", tmp_path / "ample").code == 0
    filler, out = small_disk / "filler", small_disk / "run"
    filler.write_bytes(b"0" * (DISK_BYTES - 7 * 4096))
    full = run_command("memdock-eval", "run", *flags, "--out", out)
    assert full.code == 1, full.words
    assert "cannot be written (No space left on device): free some space, then the same command goes on" in full.words
    assert f"Error: {out}/" in full.words
    assert "Traceback" not in full.words
    assert not list(out.rglob("*.unfinished"))
    parts = {path: path.read_bytes() for path in out.rglob("parts/**/*.jsonl")}
    assert parts, "what was written before stays"
    assert not (out / "outcomes.jsonl").exists()
    filler.unlink()
    outcome = run_command("memdock-eval", "run", *flags, "--out", out)
    assert outcome.code == 0, outcome.words
    assert {path: path.read_bytes() for path in parts} == parts
    assert (out / "outcomes.jsonl").read_bytes() == (tmp_path / "ample/outcomes.jsonl").read_bytes()
    assert run_command("memdock-eval", "verify", out).code == 0


def test_a_folder_that_may_not_be_written_is_said(small_disk: Path, data: Path, tmp_path: Path) -> None:
    out = small_disk / "run"
    assert again(data, out).exit_code == 0
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    begun = ("run", "--data", data, "--baseline", "oracle", "--out")
    refused((*begun, out), f"{out} cannot be written to (Read-only file system)")
    refused((*begun, small_disk / "new"), "cannot be written to (Read-only file system)")
    refused(("report", out), f"{out}/", "(Read-only file system): make it writable, or give another folder")
    refused(("merge", small_disk / "merged", out), f"{small_disk}/merged cannot be written to (Read-only file system)")
    for command in COMMANDS[1:]:
        assert invoke(*words_of(command, out)).exit_code == 0, command
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_of_somebody_else_is_said(data: Path, tmp_path: Path) -> None:
    tmp_path.joinpath("theirs").mkdir(mode=0o500)
    refused(("run", "--data", data, "--baseline", "oracle", "--out", tmp_path / "theirs/run"), "(Permission denied)")


def test_rows_that_were_cut_are_said_and_made_again(run: Path, data: Path) -> None:
    path = run / "outcomes.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-40])
    again_words = "the file is damaged, and the command that made the run makes it again from the parts"
    for command in COMMANDS:
        refused(words_of(command, run), f"{path}, line 8: the line: Invalid JSON", again_words)
    path.write_bytes(b"".join(whole.splitlines(keepends=True)[:-1]))
    for command in COMMANDS:
        refused(words_of(command, run), f"{path} has 7 rows, and manifest.json counts 8", again_words)
    assert again(data, run).exit_code == 0
    assert path.read_bytes() == whole


def test_a_manifest_that_is_damaged_is_said(run: Path, data: Path) -> None:
    path = run / "manifest.json"
    path.write_bytes(path.read_bytes()[:-40])
    sentence = f"{path} is damaged (unexpected end of data"
    for command in COMMANDS:
        refused(words_of(command, run), sentence, "put a copy of it back, or begin anew in another folder")
    refused(("run", "--data", data, "--baseline", "oracle", "--out", run), sentence, code=2)
    refused(("reanswer", run, "--out", run.with_name("new")), sentence, code=2)
    refused(("merge", run.with_name("merged"), run), sentence)
    path.unlink()
    for command in COMMANDS:
        refused(words_of(command, run), f"{path} is not there")


def test_a_summary_that_is_damaged_is_said_and_made_again(run: Path) -> None:
    for name in ("summary.json", "statistics.json"):
        path = run / name
        whole = path.read_bytes()
        path.write_bytes(whole[:-40])
        refused(("verify", run), name, "memdock-eval report makes it again from the rows")
        assert invoke("report", run).exit_code == 0
        assert path.read_bytes() == whole
    assert invoke("verify", run).exit_code == 0


def test_a_part_that_is_torn_is_said_by_all_that_read_parts(run: Path, data: Path, tmp_path: Path) -> None:
    part = next(run.rglob("answer-001.jsonl"))
    part.write_bytes(part.read_bytes()[:-40])
    sentence = f"{part} is damaged: delete it, and the run does that part again"
    refused(("verify", run), sentence)
    refused(("reanswer", run, "--out", tmp_path / "again"), sentence)
    shard = tmp_path / "shard"
    assert invoke("run", "--data", data, "--out", shard, "--baseline", "oracle", "--shard", "1/1").exit_code == 0
    part = next(shard.rglob("answer-001.jsonl"))
    part.write_bytes(part.read_bytes()[:-40])
    refused(("merge", tmp_path / "merged", shard), f"{part} is damaged: delete it")


def changed(path: Path, **fields: Any) -> None:
    path.write_bytes(orjson.dumps(orjson.loads(path.read_bytes()) | fields))


def test_the_files_of_an_older_version_are_read(run: Path, data: Path) -> None:
    """Fields that were added since with a default are not in them; the last rows of that age had none of these."""
    manifest = orjson.loads((run / "manifest.json").read_bytes())
    for name in ("again", "compared", "merged", "cost"):
        manifest.pop(name)
    manifest["plan"].pop("judges")
    manifest["plan"]["data"].pop("shard")
    (run / "manifest.json").write_bytes(orjson.dumps(manifest))
    for path in (run / "outcomes.jsonl", *run.rglob("rows-*.jsonl")):
        lines = [orjson.loads(line) for line in path.read_bytes().splitlines()]
        for line in lines:
            for name in ("ingest", "judging", "unstored_evidence", "recall_text"):
                line.pop(name, None)
        path.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    for command in (COMMANDS[0], *COMMANDS[2:]):
        assert invoke(*words_of(command, run)).exit_code == 0, command


@pytest.mark.parametrize(("version", "age"), [(0, "an older"), (2, "a newer")])
def test_a_folder_of_a_version_that_is_not_read_is_refused_with_a_word(
    run: Path, data: Path, version: int, age: str
) -> None:
    changed(run / "manifest.json", schema_version=version)
    sentence = (
        f"{run}/manifest.json has schema_version {version}, and this version reads 1: it was made by {age} version "
        "(memdock-eval 0.1.0); use that one for this folder"
    )
    for command in COMMANDS:
        refused(words_of(command, run), sentence)
    refused(("run", "--data", data, "--baseline", "oracle", "--out", run), sentence, code=2)
    refused(("reanswer", run, "--out", run.with_name("new")), sentence, code=2)
    refused(("merge", run.with_name("merged"), run), sentence)


def test_a_field_of_a_newer_version_is_named(run: Path, data: Path) -> None:
    changed(run / "manifest.json", colour="red")
    refused(
        ("report", run),
        "colour: this version does not know that field; the run was made by another version (memdock-eval",
    )
    manifest = orjson.loads((run / "manifest.json").read_bytes())
    del manifest["colour"]
    manifest["plan"]["evaluator_version"] = "9.9.9"
    (run / "manifest.json").write_bytes(orjson.dumps(manifest))
    begun = ("run", "--data", data, "--baseline", "oracle", "--out", run)
    refused(begun, 'evaluator_version: then "9.9.9", now "0.1.0"', code=2)
    assert invoke("report", run).exit_code == 0, "figures are made of the rows"
    row, *others = (run / "outcomes.jsonl").read_bytes().splitlines()
    (run / "outcomes.jsonl").write_bytes(b"\n".join([orjson.dumps(orjson.loads(row) | {"colour": "red"}), *others]))
    refused(
        ("report", run),
        "outcomes.jsonl, line 1: colour: this version does not know that field",
        "another version of memdock-eval wrote it: use the one that manifest.json names",
    )


def test_a_part_of_another_version_is_not_called_damaged(run: Path) -> None:
    import hashlib

    part = next(run.rglob("rows-001.jsonl"))
    head, _, body = part.read_bytes().partition(b"\n")
    rows = [orjson.loads(line) | {"colour": "red"} for line in body.splitlines()]
    body = b"".join(orjson.dumps(row) + b"\n" for row in rows)
    head = orjson.dumps(orjson.loads(head) | {"sha256": hashlib.sha256(body).hexdigest()})
    part.write_bytes(head + b"\n" + body)
    refused(
        ("verify", run), f"{part}: colour: this version does not know that field; the part is whole, so another version"
    )


def test_a_suites_folder_is_told_apart_from_a_runs(run: Path) -> None:
    changed(run / "manifest.json", suite="leaks")
    for command in COMMANDS:
        refused(words_of(command, run), "is of the suite leaks and no run: see summary.json beside it")


def test_what_cannot_be_deleted_or_listed_is_said(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path))
    folder.delete("nothing")
    (tmp_path / "parts").mkdir()
    with pytest.raises(FolderError, match=r"parts cannot be deleted \("):
        folder.delete("parts")
    with pytest.raises(FolderError, match=r"parts cannot be read \(Is a directory\)"):
        folder.read("parts")
