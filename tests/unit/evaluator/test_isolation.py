"""The record of a run's containers: what is taken counts over restarts, parts of a run and shards."""

import html
from dataclasses import replace
from pathlib import Path

from memdock_evaluator.isolation.engine import Reading
from memdock_evaluator.isolation.watch import Taken, Watch, united, watching
from memdock_evaluator.report import write_report
from memdock_evaluator.results.manifest import ContainerFacts, Isolation
from support.processes import free_port, run_command
from support.synthetic_rows import a_run

FACTS = ContainerFacts(
    system="rag", container="rag-1", image="rag:1", digest="sha256:1", peak_memory_bytes=0, cpu_s=0.0
)


def test_processor_time_counts_from_the_first_look_and_over_a_restart() -> None:
    taken = Taken(facts=FACTS, restarts_before=0)
    for memory, cpu in ((100, 5.0), (300, 7.0), (200, 0.5), (50, 1.5)):
        taken.add(Reading(memory_bytes=memory, cpu_s=cpu))
    assert taken.facts.peak_memory_bytes == 300
    assert taken.facts.cpu_s == 2.0 + 0.5 + 1.0


def test_records_of_the_same_container_add_up_and_others_stand_beside() -> None:
    first = replace(FACTS, peak_memory_bytes=100, cpu_s=2.0, restarts=1)
    later = replace(FACTS, peak_memory_bytes=80, cpu_s=3.0)
    newer_image = replace(FACTS, digest="sha256:2", peak_memory_bytes=10, cpu_s=1.0)
    found = united(
        [Isolation(engine="one", containers=(first,)), None, Isolation(engine="two", containers=(later, newer_image))]
    )
    assert found is not None
    assert found.engine == "two"
    assert found.containers == (replace(first, cpu_s=5.0), newer_image)
    assert united([None, None]) is None


def test_without_an_engine_what_was_recorded_before_stays() -> None:
    before = Isolation(engine="one", containers=(FACTS,))
    with watching("", ["rag"], print) as watch:
        assert watch.record(before) is before
        assert watch.record(None) is None
    assert isinstance(watch, Watch)


def test_an_engine_that_does_not_answer_is_named_before_anything_is_made(tmp_path: Path) -> None:
    address = f"tcp://127.0.0.1:{free_port()}"
    done = run_command(
        "memdock-eval", "run", "--data", "own", "--language", "en", "--dialogue", "0", "--baseline", "oracle",
        "--out", tmp_path / "run", "--docker", address,
    )  # fmt: skip
    assert done.code == 2
    assert f"--docker {address}: no engine answers there" in done.words
    assert "Traceback" not in done.words
    assert not (tmp_path / "run").exists()


def test_the_report_tells_of_the_containers_in_both_languages(tmp_path: Path) -> None:
    run = a_run(dialogues=1)
    facts = replace(FACTS, peak_memory_bytes=64 << 20, cpu_s=1.5, memory_limit_bytes=512 << 20, networks=("models",))
    isolation = Isolation(engine="Docker 20.10", containers=(facts,))
    write_report(replace(run, manifest=replace(run.manifest, isolation=isolation)).write(tmp_path))
    said = {name: html.unescape((tmp_path / name).read_text()) for name in ("report.html", "report.ru.html")}
    for name, words in (
        ("report.html", ("Containers of the systems, as Docker 20.10 told of them", "no limit", ">512<", ">1.5<")),
        ("report.ru.html", ("Контейнеры систем, по сведениям Docker 20.10", "нет предела", ">512<", ">1,5<")),
    ):
        assert all(word in said[name] for word in (*words, ">64<", "rag-1")), name


def test_the_report_says_where_nothing_was_recorded(tmp_path: Path) -> None:
    write_report(a_run(dialogues=1).write(tmp_path))
    assert "Nothing was recorded of containers" in (tmp_path / "report.html").read_text()
