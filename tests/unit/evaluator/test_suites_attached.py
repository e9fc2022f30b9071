"""Results of the suites beside a run: taken into its folder, marked where they differ, refused where nothing fits."""

import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from memdock.types import Description, Feature, Limits, Software, Support
from memdock_evaluator.cli import main
from memdock_evaluator.forgetting.modes import Mode
from memdock_evaluator.forgetting.rows import Look, NeighbourRow, TargetRow
from memdock_evaluator.forgetting.summary import summarise as forgetting_of
from memdock_evaluator.forgetting.traces import Trace
from memdock_evaluator.leaks.rows import Moment, TrialRow
from memdock_evaluator.leaks.summary import summarise as leaks_of
from memdock_evaluator.results.folder import Folder
from memdock_evaluator.results.plan import DataFile
from memdock_evaluator.suites.folder import begin, finish
from support.html import Document
from support.synthetic_rows import a_manifest, a_run

SEEN, GONE = Look(at_k=Trace(turns=("t1", "t2"))), Look()
LEFT = Look(at_k=Trace(turns=("t1",)))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return a_run(dialogues=2).write(tmp_path / "run")


def report(run: Path, *suites: Path) -> Result:
    return CliRunner().invoke(
        main, ["report", str(run), *(word for suite in suites for word in ("--with", str(suite)))]
    )


def a_suite(folder: Path, suite: str, summary: Mapping[str, Any], *, ended: bool = True, **plan: Any) -> Path:
    """The folder of a suite on the run's systems."""
    told = begin(Folder(str(folder)), suite, replace(a_manifest().plan, **plan), {}, ("memdock-eval", suite))
    if ended:
        finish(Folder(str(folder)), told, summary, (), whole=True)
    return folder


def forgetting(folder: Path, systems: Iterable[str] = ("rag-dense",), **plan: Any) -> Path:
    """Of two targets in two dialogues, four turns were retrieved before; one of them is still there after Forget."""
    where: dict[str, Any] = {"language": "en", "mode": Mode.TURN}
    targets = [
        TargetRow(
            system=system,
            dialogue_id=str(n),
            question_id="q0",
            question="Where?",
            evidence_turns=("t1", "t2"),
            before=SEEN,
            after=(LEFT, GONE)[n],
            left=(("turns",), ())[n],
            **where,
        )
        for system in systems
        for n in range(2)
    ]
    near = [
        NeighbourRow(
            system=system,
            dialogue_id=str(n),
            question_id="q1",
            wanted=Trace(turns=("t8", "t9")),
            before_at_k=Trace(turns=("t8", "t9")),
            after_at_k=Trace(turns=("t8", "t9") if n else ("t8",)),
            **where,
        )
        for system in systems
        for n in range(2)
    ]
    told = Description(
        system="x",
        adapter=Software(name="x", version="1"),
        framework=Software(name="", version=""),
        protocol_versions=("v1",),
        features={Feature.SOURCES: Support.NATIVE, Feature.FORGET_TURNS: Support.NATIVE},
        limits=Limits(),
        models=(),
        config_digest="",
    )
    summary = forgetting_of(targets, near, k=10, systems=dict.fromkeys(systems, told), modes=[Mode.TURN])
    return a_suite(folder, "forgetting", summary, **plan)


def leaks(folder: Path, system: str = "rag-dense") -> Path:
    """Twenty trials of two pairs at rest, without a leak; nothing was asked after a restart."""
    rows = [
        TrialRow(system=system, language="en", moment=Moment.REST, pair=n % 2, asker="a", owner="b", fact=f"f{n}")
        for n in range(20)
    ]
    return a_suite(folder, "leaks", leaks_of(rows, [system], {system: {Moment.RESTART: "no --restart-command"}}))


def table(run: Path, name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((run / "tables" / f"{name}.json").read_bytes())["rows"]
    return rows


def page(run: Path) -> Document:
    return Document((run / "report.html").read_text(encoding="utf-8"))


def test_residual_recall_and_collateral_loss_stand_in_tables_and_page(run: Path, tmp_path: Path) -> None:
    result = report(run, forgetting(tmp_path / "forgetting"))
    assert result.exit_code == 0, result.output
    (row,) = table(run, "forgetting")
    assert (row["system"], row["forgotten by"], row["questions"]) == ("rag-dense", "turn", 2)
    assert (row["left at k"], row["residual recall at k"]) == (1, 25.0)
    assert (row["dialogues with a sign"], row["of dialogues"]) == (1, 2)
    assert (row["recall before"], row["recall after"], row["lost"]) == (100.0, 75.0, 25.0)
    assert row["differs in"] == ""
    assert "100.0 → 75.0" in page(run).text
    assert "#forgetting" in {link["href"] for link in page(run).of("a")}


def test_leaks_stand_with_their_exact_bound(run: Path, tmp_path: Path) -> None:
    assert report(run, leaks(tmp_path / "leaks")).exit_code == 0
    (row,) = table(run, "leaks")
    assert (row["leaks"], row["of"]) == (0, 20)
    # Nothing in n independent trials: 1 - 0.05 ** (1 / n).
    assert row["95% bound of trials"] == pytest.approx(100 * (1 - 0.05 ** (1 / 20)), abs=0.01)
    assert row["95% bound of pairs"] == pytest.approx(100 * (1 - 0.05 ** (1 / 2)), abs=0.01)
    assert "not asked: no --restart-command" in page(run).text


def test_each_system_has_one_line_of_all_that_was_measured(run: Path, tmp_path: Path) -> None:
    result = report(run, forgetting(tmp_path / "forgetting"), leaks(tmp_path / "leaks"))
    rows = {row["system"]: row for row in table(run, "systems")}
    found, other = rows["rag-dense"], rows["rag-hybrid"]
    assert (found["leaks"], found["of trials"]) == (0, 20)
    (told,) = table(run, "forgetting")
    assert (found["left after Forget"], found["of forgotten"]) == (told["questions with a sign"], 2)
    assert (other["leaks"], other["left after Forget"]) == (None, None), "no suite asked it"
    lines = [line.split() for line in result.output.splitlines()]
    (printed,) = [line for line in lines if line[:1] == ["rag-dense"] and "20" in line]
    assert printed[-7:-3] == ["0", "20", str(found["left after Forget"]), "2"]
    assert "#glance" in {link["href"] for link in page(run).of("a")}


def test_a_later_report_has_them_without_being_told(run: Path, tmp_path: Path) -> None:
    report(run, forgetting(tmp_path / "forgetting"), leaks(tmp_path / "leaks"))
    before = (run / "report.html").read_bytes()
    assert report(run).exit_code == 0
    assert (run / "report.html").read_bytes() == before


def test_another_configuration_and_other_data_are_marked(run: Path, tmp_path: Path) -> None:
    systems = tuple(replace(system, config_digest="another", k=5) for system in a_manifest().plan.systems)
    data = replace(a_manifest().plan.data, files=(DataFile(path="other", sha256="cd" * 32),))
    assert report(run, forgetting(tmp_path / "other", systems=("rag-dense",), data=data)).exit_code == 0
    assert table(run, "forgetting")[0]["differs in"] == "data"
    suite = tmp_path / "changed"
    plan = replace(a_manifest().plan, systems=systems)
    begun = begin(Folder(str(suite)), "forgetting", plan, {}, ())
    finish(Folder(str(suite)), begun, json.loads((tmp_path / "other/summary.json").read_bytes()), (), whole=True)
    assert report(run, suite).exit_code == 0
    assert "configuration, k" in {row["differs in"] for row in table(run, "forgetting")}
    assert "not as in this run" in page(run).text


def test_of_a_system_in_two_suites_the_newest_counts(run: Path, tmp_path: Path) -> None:
    one, two = forgetting(tmp_path / "one"), forgetting(tmp_path / "two")
    for suite, day, k in ((one, "01", 10), (two, "02", 5)):
        manifest = json.loads((suite / "manifest.json").read_bytes())
        manifest["plan"]["systems"] = [{**system, "k": k} for system in manifest["plan"]["systems"]]
        manifest["finished"] = f"2024-10-{day}T10:00:00Z"
        (suite / "manifest.json").write_text(json.dumps(manifest))
    assert report(run, two, one).exit_code == 0
    assert [row["differs in"] for row in table(run, "forgetting")] == ["k"]


def test_what_is_no_suite_of_this_runs_systems_is_refused_and_nothing_is_kept(run: Path, tmp_path: Path) -> None:
    others = tuple(replace(system, name=f"other-{system.name}") for system in a_manifest().plan.systems)
    of_others = tmp_path / "others"
    begun = begin(Folder(str(of_others)), "leaks", replace(a_manifest().plan, systems=others), {}, ())
    finish(
        Folder(str(of_others)),
        begun,
        json.loads((leaks(tmp_path / "mine") / "summary.json").read_bytes()),
        (),
        whole=True,
    )
    unfinished = a_suite(tmp_path / "unfinished", "leaks", {}, ended=False)
    broken = leaks(tmp_path / "broken")
    (broken / "summary.json").write_text('{"systems": {}}')
    of_a_run = tmp_path / "of_a_run"
    shutil.copytree(run, of_a_run)
    (of_a_run / "summary.json").write_text("{}")
    refused = [
        (tmp_path / "none", "manifest.json is not there: name the folder of a suite that has ended"),
        (of_others, "is of other systems (other-rag-dense"),
        (unfinished, "summary.json is not there"),
        (broken, "is no result of a suite of this version: skipped: Field required"),
        (of_a_run, "is no result of a suite: it names no suite, so give a folder of `memdock-eval forgetting`"),
    ]
    for suite, said in refused:
        result = report(run, suite)
        assert (result.exit_code, said in result.output) == (1, True), result.output
    assert not (run / "suites").exists()


def test_a_file_among_them_that_is_something_else_is_named(run: Path) -> None:
    (run / "suites").mkdir()
    (run / "suites" / "x.json").write_text(json.dumps(asdict(a_manifest()), default=str))
    result = report(run)
    assert result.exit_code == 1
    assert "suites/x.json is no result of a suite: delete it" in result.output
