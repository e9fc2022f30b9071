"""Tables on a terminal that is too narrow for them."""

import io

from rich.console import Console
from rich.table import Table

from memdock_evaluator.summary import print_summary, summarise
from memdock_evaluator.terminal import print_table
from support.synthetic_rows import Run, a_manifest, a_row, a_system


def test_no_cell_is_broken_or_cut_where_the_table_is_wider_than_the_terminal() -> None:
    said = io.StringIO()
    table = Table("system", "judged", "corrected")
    table.add_row("rag-hybrid@10", "61.8%", "60.0%")
    print_table(table, Console(file=said, width=20))
    [row] = [line for line in said.getvalue().splitlines() if "rag" in line]
    assert [cell.strip() for cell in row.strip("│ ").split("│")] == ["rag-hybrid@10", "61.8%", "60.0%"]


def test_a_summary_tells_the_k_of_every_contestant_at_any_width() -> None:
    names = ("rag-hybrid@1", "rag-hybrid@10")
    rows = tuple(a_row(system=name, axes={"group": "Temporal"}) for name in names)
    run = Run(rows=rows, timings=(), manifest=a_manifest(systems=tuple(map(a_system, names))))
    said = io.StringIO()
    print_summary(summarise(run.rows, run.timings, run.manifest), Console(file=said, width=70))
    found = [line.split() for line in said.getvalue().splitlines()]
    for name in names:
        assert [line for line in found if line[:1] == [name]], said.getvalue()
    assert [line[-2:] for line in found if line[:1] == ["accuracy/MRR"]] == [list(names)]
