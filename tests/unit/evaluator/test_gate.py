"""`memdock-eval gate`: what passes, what is a regression, what cannot be said, and what is refused."""

import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import fsspec
import orjson
import pytest
from click.testing import CliRunner, Result

from memdock.types import ModelUsage
from memdock_evaluator.cli import main
from memdock_evaluator.leaks.rows import Moment, TrialRow
from memdock_evaluator.leaks.summary import summarise as leaks_of
from memdock_evaluator.results.folder import Folder
from memdock_evaluator.results.manifest import Cost, Price
from memdock_evaluator.results.parts import Parts, Unit
from memdock_evaluator.results.plan import DataFile, ModelFacts, PromptFact
from memdock_evaluator.results.records import ANSWER, ROWS, Answered
from memdock_evaluator.results.rows import Outcome, Row
from memdock_evaluator.suites.folder import begin, finish
from support.synthetic_rows import Run, a_manifest, a_run

DIALOGUES = 22


def even(run: Run) -> Run:
    """The run with times that are spread alike over all dialogues."""
    return replace(
        run, timings=tuple(replace(each, ms=50.0 + each.ms * 37 % 101) for each in run.timings if not each.inner)
    )


@pytest.fixture(scope="module")
def run() -> Run:
    return changed(even(a_run(dialogues=DIALOGUES)), lambda row: row if "full-context" not in row.system else None)


def changed(run: Run, change: Callable[[Row], Row | None]) -> Run:
    """The run with other rows; `None` leaves one out, and the manifest counts what is left."""
    rows = tuple(new for row in run.rows if (new := change(row)) is not None)
    if len(rows) == len(run.rows):
        return replace(run, rows=rows)
    return replace(run, rows=rows, manifest=replace(run.manifest, totals={}))


def wrong_if(row: Row, *, so: bool) -> Row:
    return replace(row, correct=False, verdict=0) if so and row.correct else row


def gate(results: Path | str, *words: object, without: tuple[str, ...] = ("cost",)) -> Result:
    options = [word for name in without for word in ("--without", name)]
    return CliRunner().invoke(main, ["gate", str(results), *map(str, words), *options])


def checks(result: Result) -> dict[str, Any]:
    """Name -> check, of what `--json` printed."""
    return {
        f"{each['system']}/{each['language']}/{each['measure']}{each['of'] and '/' + each['of']}": each
        for each in orjson.loads(result.stdout)["checks"]
    }


@pytest.fixture(scope="module")
def base(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run.write(tmp_path_factory.mktemp("base") / "1.0")


def test_a_run_passes_against_itself(base: Path) -> None:
    passed = gate(base, "--baseline", base)
    assert passed.exit_code == 0, passed.output
    assert "passed: of 16 checks 16 passed, 0 regression, 0 inconclusive" in passed.output
    assert "rag-dense (en): latency, retrieve p95" in passed.output
    assert "baseline:" not in passed.output.replace("baseline: ", ""), "bounds are not held"


def test_a_run_that_is_worse_is_a_regression(run: Run, base: Path, tmp_path: Path) -> None:
    worse = changed(run, lambda row: wrong_if(row, so=row.system == "rag-hybrid" and row.question_id < "q04"))
    out = worse.write(tmp_path / "worse")
    failed = gate(out, "--baseline", base, "--json", "--junit", tmp_path / "gate.xml")
    assert failed.exit_code == 1
    found = checks(failed)
    broken = {name for name, each in found.items() if each["verdict"] == "regression"}
    assert broken == {"rag-hybrid/en/accuracy", "rag-hybrid/ru/accuracy"}
    first = found["rag-hybrid/en/accuracy"]
    assert first["by"] > 0.1
    assert first["by"] == pytest.approx(first["first"] - first["second"])
    root = ET.fromstring((tmp_path / "gate.xml").read_bytes())
    suites = list(root)
    assert [suite.attrib["failures"] for suite in suites] == ["2"]
    failures = [case for case in suites[0] if case.find("failure") is not None]
    assert {case.attrib["classname"] for case in failures} == {"rag-hybrid.en", "rag-hybrid.ru"}
    told = failures[0].find("failure")
    assert told is not None
    assert "worse by +" in told.attrib["message"]


def test_what_may_be_beyond_the_margin_is_inconclusive(run: Run, base: Path, tmp_path: Path) -> None:
    """Few questions of some dialogues are worse, so that the point lies within the margin and its bound does not."""
    some = changed(
        run,
        lambda row: wrong_if(
            row, so=row.system == "rag-dense" and row.dialogue_id in ("1", "2") and row.question_id < "q06"
        ),
    )
    unsure = gate(some.write(tmp_path / "some"), "--baseline", base, "--system", "rag-dense", "--json")
    assert unsure.exit_code == 3, unsure.output
    check = checks(unsure)["rag-dense/en/accuracy"]
    assert check["verdict"] == "inconclusive"
    assert check["by"] < check["margin"] <= check["bound"]
    wide = gate(tmp_path / "some", "--baseline", base, "--system", "rag-dense", "--accuracy-margin", 10)
    assert wide.exit_code == 0, wide.output


def test_few_dialogues_prove_nothing(tmp_path: Path) -> None:
    out = even(a_run(dialogues=6)).write(tmp_path / "few")
    few = gate(out, "--baseline", out)
    assert few.exit_code == 3
    assert "6 dialogues, and fewer than 20 are taken to prove nothing" in few.output
    silent = gate(out, "--baseline", out, "--least-dialogues", 6)
    assert silent.exit_code == 3, "no change in so few questions leaves more than the margins possible"
    assert "what may be is beyond the margin, though what was found is not: ask more questions" in silent.output
    wide = [word for name in ("accuracy", "recall", "coverage") for word in (f"--{name}-margin", 8)]
    assert gate(out, "--baseline", out, "--least-dialogues", 6, *wide).exit_code == 0


def test_a_slice_that_is_missing_or_worse_is_told(run: Run, base: Path, tmp_path: Path) -> None:
    less = changed(run, lambda row: None if row.axes["temporality"] == "temporal" else row).write(tmp_path / "less")
    missing = gate(less, "--baseline", base, "--slice", "temporality", "--json")
    assert missing.exit_code == 3
    found = checks(missing)
    assert found["rag-dense/en/accuracy/temporality temporal"]["verdict"] == "inconclusive"
    assert "of the baseline, such as q02 of dialogue 0" in found["rag-dense/en/accuracy/temporality temporal"]["why"]
    assert found["rag-dense/en/accuracy/temporality atemporal"]["verdict"] == "passed"
    worse = changed(run, lambda row: wrong_if(row, so=row.axes["semantic"] == "Ordering")).write(tmp_path / "worse")
    sliced = gate(worse, "--baseline", base, "--slice", "semantic", "--accuracy-margin", 20, "--json")
    assert sliced.exit_code == 1
    broken = {name.rpartition("/")[2] for name, each in checks(sliced).items() if each["verdict"] == "regression"}
    assert broken == {"semantic Ordering"}
    unknown = gate(base, "--baseline", base, "--slice", "topic")
    assert unknown.exit_code == 2
    assert "--slice topic: the baseline's questions have" in unknown.output


def test_a_system_or_score_that_is_gone_is_told(run: Run, base: Path, tmp_path: Path) -> None:
    alone = changed(run, lambda row: None if row.system == "rag-hybrid" else row).write(tmp_path / "alone")
    gone = gate(alone, "--baseline", base)
    assert gone.exit_code == 3
    assert "rag-hybrid (en): accuracy: inconclusive" in gone.output
    lost = changed(
        run,
        lambda row: (
            replace(row, outcome=Outcome.INFRASTRUCTURE_ERROR, correct=None) if row.question_id == "q05" else row
        ),
    ).write(tmp_path / "lost")
    found = gate(lost, "--baseline", base, "--json")
    assert found.exit_code == 1
    assert checks(found)["rag-dense/en/coverage"]["verdict"] == "regression"


def test_slower_is_a_regression(run: Run, base: Path, tmp_path: Path) -> None:
    slow = replace(run, timings=tuple(replace(each, ms=each.ms * 1.4) for each in run.timings)).write(tmp_path / "slow")
    found = gate(slow, "--baseline", base, "--json")
    assert found.exit_code == 1
    check = checks(found)["rag-dense/en/latency/retrieve p95"]
    assert (check["verdict"], check["relative"]) == ("regression", True)
    assert check["by"] == pytest.approx(0.4)
    assert gate(slow, "--baseline", base, "--latency-margin", 60).exit_code == 0


def with_bill(run: Run, folder: Path, tokens: int) -> Path:
    """Parts of which each dialogue's answers took so many tokens, a few more in every other dialogue."""
    prices = {"a": Price(input=1.0, output=2.0)}
    bill = Cost(date="2026-01-01", currency="USD", prices=prices, lines=(), money=1.0)
    out = replace(run, manifest=replace(run.manifest, cost=bill)).write(folder)
    units: dict[Unit, list[Row]] = {}
    for row in run.rows:
        units.setdefault(Unit.of(row), []).append(row)
    for unit, rows in units.items():
        parts = Parts(Folder(str(out)), unit)
        spent = ModelUsage(
            model="a", purpose="answer", calls=1, input_tokens=tokens + int(unit.dialogue_id) % 2, output_tokens=0
        )
        parts.write(ANSWER, [Answered(question_id="q00", repeat=0, answer="x", usage=(spent,))])
        parts.write(ROWS, rows)
    return out


def test_dearer_is_a_regression_and_a_bill_needs_its_parts(base: Path, tmp_path: Path) -> None:
    run = even(a_run(dialogues=20))
    first, same, dear = (
        with_bill(run, tmp_path / name, tokens) for name, tokens in (("a", 1000), ("b", 1010), ("c", 1200))
    )
    assert gate(same, "--baseline", first, without=()).exit_code == 0
    found = gate(dear, "--baseline", first, "--json", without=())
    assert found.exit_code == 1
    check = checks(found)["rag-dense/en/cost/a dialogue"]
    assert check["by"] == pytest.approx(0.2, abs=0.001)
    assert check["first"] == pytest.approx(1000.5e-6)
    bare = gate(base, "--baseline", base, without=())
    assert bare.exit_code == 3
    assert "a dialogue's bill is made of parts/" in bare.output


def with_leaks(run: Run, folder: Path, pairs: int, leaked: int) -> Path:
    """A run beside which a suite found so many leaks at rest."""
    out = run.write(folder)
    trials = [
        TrialRow(
            system="rag-dense",
            language="en",
            moment=Moment.REST,
            pair=pair,
            asker="a",
            owner="b",
            fact="car",
            leaked_by=("question",) if pair < leaked else (),
            leaked_from=("b",) if pair < leaked else (),
        )
        for pair in range(pairs)
    ]
    suite = Folder(str(folder) + "-leaks")
    told = begin(suite, "leaks", a_manifest().plan, {}, ("memdock-eval", "leaks"))
    finish(suite, told, leaks_of(trials, systems=["rag-dense"], skipped={}), (), whole=True)
    attached = CliRunner().invoke(main, ["report", str(out), "--with", suite.address])
    assert attached.exit_code == 0, attached.output
    return out


def test_a_leak_more_is_a_regression_and_silence_has_its_bound(tmp_path: Path) -> None:
    run = even(a_run(dialogues=20))
    tight, leaking, few = (
        with_leaks(run, tmp_path / name, pairs, leaked)
        for name, pairs, leaked in (("tight", 25, 0), ("leaking", 25, 1), ("few", 5, 0))
    )
    assert gate(tight, "--baseline", tight).exit_code == 0
    found = gate(leaking, "--baseline", tight, "--json")
    assert found.exit_code == 1
    assert checks(found)["rag-dense//leaks/at rest"]["verdict"] == "regression"
    assert gate(leaking, "--baseline", leaking).exit_code == 3, "one of 25 leaves more than the margin possible"
    assert gate(few, "--baseline", tight).exit_code == 3, "none of five leaves 45 % possible"
    none = run.write(tmp_path / "none")
    lacking = gate(none, "--baseline", tight)
    assert lacking.exit_code == 3
    assert "the results have no such suite: take it in with report --with" in lacking.output
    assert gate(tight, "--baseline", none).exit_code == 0, "what the baseline lacks is not held"


PROMPT = PromptFact(file="mine.txt", sha256="aa")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"judge": ModelFacts(kind="openai", model="other")}, 'judge.model: baseline "pollux-judge-7b"'),
        ({"answerer": ModelFacts(kind="openai", model="gpt-4.1-mini", temperature=1.0)}, "answerer.temperature"),
        ({"judge": replace(a_manifest().plan.judge, prompts={"ru": PROMPT})}, "judge.prompts.ru: baseline has none"),
        ({"data": replace(a_manifest().plan.data, files=(DataFile(path="own", sha256="cd"),))}, "data.cd"),
    ],
)
def test_other_data_answerer_or_judge_are_refused(
    run: Run, base: Path, tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    other = replace(run, manifest=replace(run.manifest, plan=replace(run.manifest.plan, **change)))
    refused = gate(other.write(tmp_path / "other"), "--baseline", base)
    assert refused.exit_code == 2
    assert "cannot be held against each other" in refused.output
    assert said in refused.output


def test_where_a_prompts_file_lies_decides_nothing(run: Run, tmp_path: Path) -> None:
    def judged_by(file: str) -> Path:
        judge = replace(run.manifest.plan.judge, prompts={"ru": replace(PROMPT, file=file)})
        manifest = replace(run.manifest, plan=replace(run.manifest.plan, judge=judge))
        return replace(run, manifest=manifest).write(tmp_path / file)

    assert gate(judged_by("a"), "--baseline", judged_by("b")).exit_code == 0


def test_what_cannot_be_read_or_is_not_complete_is_refused(run: Run, base: Path, tmp_path: Path) -> None:
    half = replace(run, manifest=replace(run.manifest, finished=None)).write(tmp_path / "half")
    for words, said in (
        ((half, "--baseline", base), "is not complete: finish the run first"),
        ((base, "--baseline", tmp_path / "nothing"), "manifest.json is not there"),
        ((base, "--baseline", base, "--system", "mem0"), "--system mem0: the baseline"),
        ((base, "--baseline", base, "--accuracy-margin", 0), "--accuracy-margin"),
        ((base,), "Missing option '--baseline'"),
        ((base, "--baseline", base, "--junit", tmp_path / "no" / "x.xml"), "cannot be written"),
    ):
        refused = gate(*words)
        assert refused.exit_code == 2, refused.output
        assert said in refused.output


def test_rows_that_stand_there_twice_are_damage(run: Run, base: Path, tmp_path: Path) -> None:
    """They would count as more questions than were asked."""
    twice = replace(run, rows=run.rows + run.rows[:1]).write(tmp_path / "twice")
    refused = gate(twice, "--baseline", base)
    assert refused.exit_code == 2
    assert "stands there twice: the file is damaged" in refused.output


def test_every_baseline_must_be_passed_wherever_it_is(run: Run, base: Path, tmp_path: Path) -> None:
    better = changed(run, lambda row: replace(row, correct=True) if row.outcome is Outcome.ANSWERED else row)
    kept = better.write(tmp_path / "best")
    files = fsspec.filesystem("memory")
    for name in ("manifest.json", "outcomes.jsonl", "timings.jsonl"):
        files.pipe_file(f"/gate/best/{name}", (kept / name).read_bytes())
    assert gate(base, "--baseline", base).exit_code == 0
    both = gate(base, "--baseline", base, "--baseline", "memory://gate/best")
    assert both.exit_code == 1
    assert f"{base} against memory://gate/best" in both.output
