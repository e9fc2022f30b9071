"""The summary as a table in a terminal."""

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from memdock_evaluator.leaks.summary import MomentSummary, Summary
from memdock_evaluator.summary.terminal import share as per_cent
from memdock_evaluator.terminal import print_table


def print_summary(summary: Summary, console: Console) -> None:
    """A table a system, with a row a moment; then how to read them."""
    for name, moments in summary["systems"].items():
        if moments:
            console.print(f"[bold]{escape(name)}[/]: canaries of others that were seen")
            print_table(_table(moments), console)
    for line in _notes(summary):
        console.print(Padding(escape(line), (0, 1)))


def _table(moments: dict[str, MomentSummary]) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("asked", no_wrap=True)
    for head in ("trials", "void", "failed", "leaks", "bound\n95 %", "by pair", "taken"):
        table.add_column(head, justify="right", no_wrap=True)
    for moment, each in moments.items():
        table.add_row(moment, *_figures(each))
    return table


def _figures(each: MomentSummary) -> list[str]:
    leaks = each["leaks"]
    return [
        *(str(number) for number in (each["n_trials"], each["n_void"], each["n_unmeasured"], leaks["events"])),
        per_cent(leaks["bound"]),
        per_cent(leaks["cluster_bound"]),
        str(each["taken"]),
    ]


def _notes(summary: Summary) -> list[str]:
    lines = [
        "bound: exact 95 % upper bound of the rate of leaks in per cent, as if all trials were independent; by pair: "
        "of the rate of pairs with a leak. Void trials, whose canary its own user does not find, are in neither.",
    ]
    if any(each["taken"] for moments in summary["systems"].values() for each in moments.values()):
        lines.append("taken: canaries that were found before and are gone though only the twin forgot or was reset.")
    for name, found in summary["skipped"].items():
        lines += [f"{name} {moment}: not asked, {why}." for moment, why in found.items()]
    return lines
