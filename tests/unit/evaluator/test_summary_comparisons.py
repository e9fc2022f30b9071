"""What differs from what in a run: the rows give the comparisons, and the same bytes each time."""

import json
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from memdock_evaluator.report.command import report
from memdock_evaluator.results.manifest import Compared, NamedFamily
from memdock_evaluator.results.plan import SystemFacts, Track
from memdock_evaluator.results.rows import Outcome, Row
from memdock_evaluator.statistics.plan import JUDGES_DIFFER, Kind
from memdock_evaluator.statistics.shape import BlockResult
from memdock_evaluator.summary.comparisons import FULL_CONTEXT, MEMORY_SYSTEMS, Comparisons, compare, compare_again
from support.synthetic_rows import a_row, a_run, a_system

RESAMPLES = 200


@pytest.fixture(scope="module")
def found() -> Comparisons:
    return compare(a_run().rows, resamples=RESAMPLES)


def blocks(found: Comparisons, kind: Kind) -> list[BlockResult]:
    return [block for block in found.analysis.blocks if block.kind is kind]


def test_families_are_the_memory_systems_and_full_context_where_none_are_named(found: Comparisons) -> None:
    assert {family.name: family.systems for family in found.families} == {
        FULL_CONTEXT: ("baseline:full-context",),
        MEMORY_SYSTEMS: ("rag-dense", "rag-hybrid"),
    }
    assert {block.name for block in blocks(found, Kind.ANSWERER)} == {
        "baseline:full-context minus what answers with its model: memory systems, en",
        "baseline:full-context minus what answers with its model: memory systems, ru",
    }


def test_every_two_systems_differ_by_what_the_rows_say(found: Comparisons) -> None:
    russian = next(block for block in blocks(found, Kind.SYSTEMS) if block.name.endswith("ru"))
    assert len(russian.differences) == 4 * 3 / 2
    first = russian.differences[0]
    right = {
        name: sum(row.correct is True for row in a_run().rows if (row.system, row.language) == (name, "ru"))
        for name in ("rag-dense", "rag-hybrid")
    }
    assert first.estimate == pytest.approx((right["rag-dense"] - right["rag-hybrid"]) / 102, abs=1e-6)
    assert first.n == 102


def test_rows_in_any_order_give_the_same_bytes(found: Comparisons) -> None:
    again = compare(reversed(a_run().rows), resamples=RESAMPLES)
    assert again.to_json() == found.to_json()
    assert json.loads(found.to_json())["analysis"]["n_dialogues"] == 6


def test_few_dialogues_are_a_caveat_and_many_are_not(found: Comparisons) -> None:
    assert "No rank intervals (fewer than 20 dialogues: resampling them tests nothing)." in found.caveats
    many = compare(a_run(dialogues=24).rows, resamples=2000)
    assert many.caveats == (JUDGES_DIFFER,)
    assert [len(ranking.ranks) for ranking in many.analysis.rankings] == [0, 0, 2, 2]


def a_dialogue(dialogue: str, **changes: object) -> Row:
    return a_row(dialogue_id=dialogue, **changes)


def test_an_error_of_the_system_is_wrong_and_one_of_the_infrastructure_is_missing() -> None:
    rows = [
        a_dialogue("0"),
        a_dialogue("1", outcome=Outcome.SYSTEM_ERROR, answer=None, correct=False, f1=None),
        a_dialogue("2", outcome=Outcome.INFRASTRUCTURE_ERROR, answer=None, correct=None, f1=None),
    ]
    scores = [
        one for one in compare(rows, resamples=1).analysis.scores if (one.unit, one.axis) == ("rag-dense", "overall")
    ]
    assert {one.measure: (one.asked, one.n, one.score) for one in scores} == {
        "accuracy": (3, 2, 0.5),
        "f1": (3, 2, 0.5),
    }


def test_where_the_evidence_lies_is_a_slice_where_the_dialogues_length_is_known() -> None:
    long = [a_dialogue("0", sessions=9), a_dialogue("1", sessions=9, evidence_sessions=("s5",))]
    values = {one.value for one in compare(long, resamples=1).analysis.scores if one.axis == "position"}
    assert values == {"edge", "middle"}
    unknown = compare([a_dialogue("0"), a_dialogue("1")], resamples=1)
    assert not any(one.axis == "position" for one in unknown.analysis.scores)


def test_families_are_named_on_the_command_line(tmp_path: Path) -> None:
    folder = str(a_run().write(tmp_path))
    done = CliRunner().invoke(report, [folder, "--family", "dense=rag-dense", "--family", "hybrid = rag-hybrid"])
    assert done.exit_code == 0, done.output
    written = json.loads((tmp_path / "statistics.json").read_bytes())
    assert [family["name"] for family in written["families"]] == ["dense", "hybrid"]
    assert any(block["name"].startswith("dense minus hybrid") for block in written["analysis"]["blocks"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--family", "rag=rag-x"], "there is no system 'rag-x': the run has baseline:full-context"),
        (["--atemporal", "mem0g"], "there is no system 'mem0g'"),
        (["--family", "rag-dense"], "write NAME=SYSTEM,SYSTEM"),
        (["--family", "a=rag-dense", "--family", "a=rag-hybrid"], "is given twice"),
        (["--family", "rag-dense=rag-hybrid,rag-dense"], "none that a system has"),
    ],
)
def test_families_that_cannot_be_are_refused_with_a_word(tmp_path: Path, words: list[str], message: str) -> None:
    folder = str(a_run(dialogues=2).write(tmp_path))
    done = CliRunner().invoke(report, [folder, *words])
    assert done.exit_code != 0
    assert message in " ".join(done.output.split())
    assert not {"summary.json", "statistics.json"} & {path.name for path in tmp_path.iterdir()}


def test_the_manifest_says_what_is_compared_and_the_command_line_goes_before_it(tmp_path: Path) -> None:
    families = (NamedFamily(name="dense", systems=("rag-dense",)), NamedFamily(name="hybrid", systems=("rag-hybrid",)))
    run = a_run()
    silent = replace(run.manifest.plan.systems[1], features={"SOURCES": "NATIVE", "EVENT_TIME": "UNSUPPORTED"})
    systems = (run.manifest.plan.systems[0], silent, *run.manifest.plan.systems[2:])
    manifest = replace(
        run.manifest,
        plan=replace(run.manifest.plan, systems=systems),
        compared=Compared(families=families, case_studies=("rag-dense",)),
    )
    folder = str(replace(run, manifest=manifest).write(tmp_path))

    def told(*words: str) -> Any:
        done = CliRunner().invoke(report, [folder, *words])
        assert done.exit_code == 0, done.output
        return json.loads((tmp_path / "statistics.json").read_bytes())

    recorded = told()
    assert [family["name"] for family in recorded["families"]] == ["dense", "hybrid"]
    assert recorded["case_studies"] == ["rag-dense"]
    assert recorded["atemporal"] == ["rag-hybrid"], "it declares that its memories carry no times"
    times = {(one["unit"], one["axis"]) for one in recorded["analysis"]["scores"] if one["axis"] == "temporality"}
    assert ("rag-dense", "temporality") in times
    assert ("rag-hybrid", "temporality") not in times
    names = {block["name"] for block in recorded["analysis"]["blocks"]}
    assert "single minus multi: scope, rag-dense" in names, "Appendix G's"
    assert {"baseline:full-context minus what answers with its model: hybrid, en"} <= names
    assert [family["name"] for family in told("--family", "all=rag-dense,rag-hybrid")["families"]] == ["all"]


def test_a_lone_memory_system_is_the_case_study() -> None:
    rows = [row for row in a_run().rows if row.system != "rag-hybrid"]
    assert compare(rows, resamples=1).case_studies == ("rag-dense",)


def test_the_command_line_alone_does_not_load_numpy() -> None:
    code = (
        "import sys, memdock_evaluator.report.command, memdock_evaluator.run.command; sys.exit('numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def named(pairs: Iterable[tuple[str, int]], track: Track | None = None) -> list[SystemFacts]:
    return [a_system(system, k=k, name=f"{system}@{k}", track=track) for system, k in pairs]


def of_each(systems: Iterable[str]) -> list[Row]:
    return [
        a_row(system=system, dialogue_id=str(d), question_id=f"q{q}", correct=(d + q + place) % 3 > 0)
        for place, system in enumerate(systems)
        for d in range(4)
        for q in range(3)
    ]


def pairs_of(found: Comparisons) -> set[tuple[str, str]]:
    (block,) = (block for block in found.analysis.blocks if block.kind is Kind.SYSTEMS)
    return {(one.contrast.first.terms[0].unit, one.contrast.second.terms[0].unit) for one in block.differences}


def test_no_family_counts_a_system_of_several_k_twice() -> None:
    systems = named([("a", 5), ("b", 5), ("a", 10), ("b", 10)])
    rows = of_each([*(each.name for each in systems), "baseline:full-context"])
    found = compare(rows, contestants=systems, resamples=50)
    assert [(family.name, family.systems) for family in found.families] == [
        ("full context", ("baseline:full-context",)),
        ("memory systems, k = 5", ("a@5", "b@5")),
        ("memory systems, k = 10", ("a@10", "b@10")),
    ]
    full = "baseline:full-context"
    assert pairs_of(found) == {
        *(("a@5", "b@5"), ("a@10", "b@10"), ("a@10", "a@5"), ("b@10", "b@5")),
        *((each.name, full) for each in systems),
    }
    assert compare_again(rows, json.loads(found.to_json()), systems).families == found.families


def test_systems_of_two_tracks_are_not_compared() -> None:
    systems = [
        *(a_system("a", track=Track.CONTROLLED), a_system("b", track=Track.CONTROLLED)),
        *(a_system("c", k=30, name="c", track=Track.VENDOR), a_system("d", track=Track.VENDOR)),
    ]
    found = compare(of_each(each.name for each in systems), contestants=systems, resamples=50)
    assert [(family.name, family.systems) for family in found.families] == [
        ("memory systems, controlled", ("a", "b")),
        ("memory systems, vendor", ("c", "d")),
    ]
    assert pairs_of(found) == {("a", "b"), ("c", "d")}
