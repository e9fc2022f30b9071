"""`memdock-eval compare`: paired by question, errors by dialogue, and never over different data."""

from pathlib import Path

import numpy as np
import pytest
import statsmodels.api as sm
from click.testing import CliRunner, Result

from memdock_evaluator.cli import main
from memdock_evaluator.results.folder import Folder
from memdock_evaluator.review.compare import CompareError, compare
from support.evaluation import rows, write_data


def invoke(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def run_on(data: Path | str, out: Path, *words: object) -> Path:
    done = invoke("run", "--data", data, "--out", out, *words)
    assert done.exit_code == 0, done.output
    return out


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("runs")
    first = run_on("own", folder / "first", "--baseline", "closed-book", "--baseline", "oracle", "--language", "en")
    sample = ("--sample-questions", 60, "--seed", 4)
    return first, run_on("own", folder / "second", "--baseline", "oracle", "--language", "en", *sample)


def test_two_systems_are_compared_on_common_questions_as_statsmodels_does(two: tuple[Path, Path]) -> None:
    found = compare(Folder(str(two[0])), Folder(str(two[1])), ("baseline:closed-book", "baseline:oracle"))
    accuracy = next(each for each in found.differences if each.measure == "accuracy")
    right = [
        {(row.dialogue_id, row.question_id): float(row.correct or 0) for row in rows(out) if row.system == system}
        for out, system in zip(two, ("baseline:closed-book", "baseline:oracle"), strict=True)
    ]
    common = sorted(right[0].keys() & right[1].keys())
    apart = np.array([right[1][each] - right[0][each] for each in common])
    groups = np.unique([each[0] for each in common], return_inverse=True)[1]
    fit = sm.OLS(apart, np.ones_like(apart)).fit(cov_type="cluster", cov_kwds={"groups": groups}, use_t=True)
    assert (accuracy.questions, accuracy.dialogues) == (60, 6)
    assert accuracy.difference == pytest.approx(fit.params[0])
    assert [accuracy.low, accuracy.high] == pytest.approx(fit.conf_int()[0].tolist())
    assert accuracy.p == pytest.approx(fit.pvalues[0])


def test_the_command_says_what_differs_in_the_plans(two: tuple[Path, Path]) -> None:
    said = invoke("compare", *two)
    assert said.exit_code == 0, said.output
    assert "seed: first 0, second 4" in said.output
    assert "systems.baseline:closed-book: first" in said.output
    assert "en: baseline:oracle" in said.output
    assert "accuracy" in said.output
    assert "the plans are the same" in invoke("compare", two[0], two[0]).output


def test_what_cannot_be_compared_is_told(two: tuple[Path, Path], tmp_path: Path) -> None:
    other = run_on(write_data(tmp_path / "d.jsonl"), tmp_path / "other", "--baseline", "oracle")
    refused = invoke("compare", two[0], other)
    assert refused.exit_code == 1
    assert "the runs are over different data: own:rumba_rows_en.jsonl of" in refused.output
    alone = run_on("own", tmp_path / "alone", "--baseline", "refusal", "--language", "en")
    with pytest.raises(CompareError, match="no system in common: the first has baseline:closed-book, baseline:oracle"):
        compare(Folder(str(two[0])), Folder(str(alone)))
    with pytest.raises(CompareError, match="the second run has no system x: it has baseline:refusal"):
        compare(Folder(str(two[0])), Folder(str(alone)), ("baseline:oracle", "x"))
