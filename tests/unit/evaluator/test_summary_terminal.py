"""The summary in a terminal: what a reader of the demo sees, in eighty columns."""

import io
import re
from dataclasses import replace

from rich.console import Console

from memdock_evaluator.summary import print_summary, summarise
from memdock_evaluator.summary.caveats import FEW_QUESTIONS
from support.paper_rows import SYSTEMS, a_paper_run
from support.synthetic_rows import BASELINES, Run, a_manifest, a_row, a_run, a_system

ENOUGH = [a_row(question_id=f"q{number}") for number in range(FEW_QUESTIONS)]


def printed(run: Run, width: int = 140) -> str:
    said = io.StringIO()
    print_summary(summarise(run.rows, run.timings, run.manifest), Console(file=said, width=width))
    return said.getvalue()


def test_the_terminal_shows_systems_slices_and_caveats() -> None:
    run = a_run(offline=True)
    text = printed(run)
    dense = next(line.split() for line in text.splitlines() if "rag-dense " in line and "61.8" in line)
    assert dense == ["rag-dense", "66.0", "61.8–70.2", "66.3", "98.0"]
    assert "answerer and judge by offline rules" in text
    assert "full-context *" in text
    assert "Temporal expression\n" in re.sub(" +\n", "\n", text)
    assert "no measure of answer quality" in " ".join(text.split())


def test_the_terminal_shows_free_tags_and_does_not_read_them_as_markup() -> None:
    rows = [replace(row, system="a[b]", axes={"user_tier": "[red]gold"}) for row in ENOUGH]
    text = printed(Run(rows=tuple(rows), timings=(), manifest=a_manifest(systems=(a_system("a[b]"),))))
    assert "User tier" in text
    assert "[red]gold" in text
    assert "a[b]" in text


def test_the_terminal_fits_eighty_columns() -> None:
    run = a_run()
    lines = printed(run, width=80).splitlines()
    assert max(map(len, lines)) <= 80
    assert not any("…" in line for line in lines)


def test_every_system_has_its_whole_name_and_its_slices_however_narrow_the_terminal() -> None:
    run = a_paper_run(dialogues=6, questions=102)
    lines = printed(run, width=80).splitlines()
    assert max(map(len, lines)) <= 80
    assert not any("…" in line for line in lines)
    heads = [line.replace(" *", "").split()[3:] for line in lines if line.startswith(" accuracy/MRR by slice")]
    shown = [name for head in heads[: len(heads) // 2] for name in head if name != "n/n"]
    assert len(heads) > 4
    assert sorted(shown) == sorted(name.removeprefix("baseline:") for name in SYSTEMS)
    rows = [line.split() for line in lines if line.startswith("   multi+temporal")]
    assert sum(len(row) - 2 for row in rows) == 2 * len(SYSTEMS)


def test_the_order_is_said_to_be_by_accuracy_at_each_k_where_there_are_several() -> None:
    run = a_paper_run(dialogues=6, questions=102)
    assert "systems by accuracy at each k;" in " ".join(printed(run).split())
    assert "systems by accuracy;" in printed(a_run())


def test_recall_stands_at_several_numbers_of_memories_by_session_and_by_turn() -> None:
    lines = printed(a_run()).splitlines()
    [heads] = {line for line in lines if line.split()[:2] == ["retrieval", "by"]}
    assert heads.split() == ["retrieval", "by", "@1", "@3", "@5", "@10", "MRR", "@10"]
    place = lines.index(heads)
    assert lines[place + 4].split() == ["rag-dense", "session", *["66.3"] * 6]
    assert lines[place + 5].split() == ["turn", *["66.3"] * 6]


def test_no_time_is_printed_for_the_calls_of_a_run_wait_for_each_other() -> None:
    text = printed(a_run())
    assert "p50" not in text
    assert "Times and tokens, stage by stage, are in the report." in text


def test_without_a_memory_system_there_is_no_table_of_retrieval() -> None:
    run = a_run()
    assert "recall" not in printed(replace(run, rows=tuple(row for row in run.rows if row.system in BASELINES)))


def test_one_question_of_one_dialogue_is_no_plural() -> None:
    run = a_run()
    assert "en: 1 question, 1 dialogue, systems" in printed(replace(run, rows=run.rows[:1]))
