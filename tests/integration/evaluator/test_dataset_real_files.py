"""The files of LoCoMo and GigaMemory, where they lie beside the repository, read to their ends."""

from pathlib import Path

import pytest

from memdock_evaluator.dataset import open_dataset
from memdock_evaluator.dataset.check import check_dataset
from memdock_evaluator.dataset.export import export_dataset

REAL = Path(__file__).parents[3].parent / "shared" / "data"


def real(name: str) -> Path:
    path = REAL / name
    if not path.exists():
        pytest.skip(f"{name} cannot be shipped with the project, and is not beside it")
    return path


def test_gigamemory_sample() -> None:
    report = check_dataset(real("gigamemory_sample.jsonl"))

    assert (report.dialogues, report.sessions, report.turns, report.questions) == (2, 69, 930, 2)
    assert report.languages == {"ru": 2}
    assert report.characters_each.least > 350_000
    assert report.evidence_sessions == 4
    assert report.oddities == ()


def test_locomo_part() -> None:
    report = check_dataset(real("locomo_part.json"))

    assert (report.dialogues, report.sessions, report.turns, report.questions) == (6, 156, 3435, 1157)
    assert report.slices["category"]["adversarial"] == 272
    assert {oddity.kind: oddity.count for oddity in report.oddities} == {
        "date-without-session": 16,
        "answer-number": 6,
        "evidence-mended": 2,
        "adversarial-with-answer": 2,
        "evidence-unknown-turn": 1,
        "evidence-unreadable": 1,
    }
    assert {finding.kind: finding.count for finding in report.findings} == {
        "question-undated": 1157,
        "abstention-evidence": 270,
        "session-odd": 79,
        "evidence-unstated": 2,
    }


@pytest.mark.parametrize("name", ["gigamemory_sample.jsonl", "locomo_part.json"])
def test_a_real_file_goes_through_own_unchanged(tmp_path: Path, name: str) -> None:
    path, output = real(name), tmp_path / "own.jsonl"

    export_dataset(open_dataset(path), "own", output)

    for before, after in zip(open_dataset(path), open_dataset(output), strict=True):
        assert list(after.turns) == list(before.turns)
        assert [(q.text, q.references, q.evidence_turns, q.abstention) for q in after.questions] == [
            (q.text, q.references, q.evidence_turns, q.abstention) for q in before.questions
        ]
        assert after.oddities == ()
