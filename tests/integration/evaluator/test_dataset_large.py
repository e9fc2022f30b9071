"""Files as large as the real ones are read in constant memory, which a process of its own measures."""

import json
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest

from support.large_rows import DIALOGUES, QUESTIONS, SESSIONS, TURNS, rows, write_rows

ROW_GROUP = 100

READ = """
import json, re, sys, time
from pathlib import Path
from memdock_evaluator.dataset import open_dataset
start = time.monotonic()
dialogues = turns = questions = characters = 0
for dialogue in open_dataset(sys.argv[1]):
    dialogues += 1
    turns += sum(1 for _ in dialogue.turns)
    questions += len(dialogue.questions)
    characters += dialogue.characters
# Not getrusage: its peak is inherited from the process that started this one.
peak_mib = int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) / 1024
print(json.dumps({"dialogues": dialogues, "turns": turns, "questions": questions, "characters": characters,
                  "peak_mib": round(peak_mib), "seconds": round(time.monotonic() - start, 1)}))
"""


pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from Linux's /proc")


def read(path: Path) -> dict[str, float]:
    done = subprocess.run([sys.executable, "-c", READ, str(path)], capture_output=True, text=True, check=True)
    print(path.name, f"{path.stat().st_size:,} bytes", done.stdout)
    counts: dict[str, float] = json.loads(done.stdout)
    return counts


@pytest.mark.parametrize("array", [False, True], ids=["lines", "array"])
def test_a_tenth_of_the_rows(tmp_path: Path, array: bool) -> None:
    path = write_rows(tmp_path / "rows", array=array, dialogues=9, questions=160)

    counts = read(path)

    assert path.stat().st_size > 90_000_000
    assert (counts["dialogues"], counts["questions"]) == (9, 160)
    assert counts["peak_mib"] < 100


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("array", [False, True], ids=["lines", "array"])
def test_all_rows(tmp_path: Path, array: bool) -> None:
    path = write_rows(tmp_path / "rows", array=array)

    counts = read(path)
    path.unlink()

    assert (counts["dialogues"], counts["questions"]) == (DIALOGUES, QUESTIONS)
    assert counts["turns"] == DIALOGUES * SESSIONS * TURNS
    assert counts["characters"] / DIALOGUES > 335_000
    assert counts["peak_mib"] < 1000


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_all_rows_as_parquet(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="the extra memdock-evaluator[parquet] is not installed")
    parquet = pytest.importorskip("pyarrow.parquet", reason="the extra memdock-evaluator[parquet] is not installed")
    path = tmp_path / "rows.parquet"
    all_rows = map(json.loads, rows())
    groups = iter(lambda: list(islice(all_rows, ROW_GROUP)), [])
    first = pyarrow.Table.from_pylist(next(groups))
    with parquet.ParquetWriter(path, first.schema) as writer:
        writer.write_table(first)
        for group in groups:
            writer.write_table(pyarrow.Table.from_pylist(group))

    counts = read(path)

    assert (counts["dialogues"], counts["questions"]) == (DIALOGUES, QUESTIONS)
    assert counts["peak_mib"] < 1000
