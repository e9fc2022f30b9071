"""The summary as a table in a terminal."""

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from memdock_evaluator.forgetting.summary import LISTED, ModeSummary, Summary, in_order
from memdock_evaluator.suites.shares import Share
from memdock_evaluator.summary.terminal import share as per_cent
from memdock_evaluator.terminal import print_table


def print_summary(summary: Summary, console: Console) -> None:
    """A table a system, with a row a language and mode; then how to read them."""
    for name in summary["systems"]:
        rows = [(language, mode, each) for its, language, mode, each in in_order(summary) if its == name]
        if rows:
            console.print(f"[bold]{escape(name)}[/]: what is left after Forget, and what its neighbours lost")
            print_table(_table(rows, summary["k"]), console)
    for line in _notes(summary):
        console.print(Padding(escape(line), (0, 1)))


def _table(rows: list[tuple[str, str, ModeSummary]], k: int) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("forgotten by", no_wrap=True)
    for head in (f"left\n@{k}", "deep", "list", "left\nany", "bound\n95 %", "back", "neighbours", "lost", "taken"):
        table.add_column(head, justify="right", no_wrap=True)
    for language, mode, each in rows:
        table.add_row(f"{language} {mode}", *_figures(each))
    return table


def _figures(each: ModeSummary) -> list[str]:
    near = each["neighbours"]
    listed = each["left_listed"]
    recall = f"{per_cent(near['recall_before'])}→{per_cent(near['recall_after'])}" if near["n"] else "–"
    return [
        _of(each["left_at_k"]),
        _of(each["left_deep"]),
        "–" if listed is None else _of(listed),
        _of(each["residue"]),
        per_cent(each["residue"]["cluster_bound"]),
        str(each["revived"]["events"]),
        recall,
        per_cent(near["lost"]["share"]),
        str(near["taken"]),
    ]


def _of(share: Share) -> str:
    return f"{share['events']}/{share['of']}"


def _notes(summary: Summary) -> list[str]:
    modes = [each for *_, each in in_order(summary)]
    by = sorted({each["by"] for each in modes})
    lines = [
        f"left @{summary['k']}, deep, list: {' or '.join(by)} of the forgotten evidence that are still retrieved or "
        "listed, of those that were before; any: questions with any sign, and the exact 95 % upper bound of the share "
        "of dialogues with one; back: questions that a late retry brought back.",
        "neighbours: recall of questions of whose evidence nothing was to be forgotten, before and after; lost: of "
        "what they had at k, what they have no more; both in per cent. taken: turns of theirs that are gone.",
    ]
    for proof in sorted({each["proof"] for each in modes} - {LISTED}):
        lines.append(f"Without ListMemories no more can be said than: {proof}.")
    if failed := sum(each["n_forget_failed"] for each in modes):
        lines.append(f"Forget itself failed {failed} times; the rows say why.")
    for name, language, mode, each in in_order(summary):
        if (replies := each["replies"]) is not None and replies["right_before"]:
            lines.append(
                f"Answers of {name}, {language} {mode}: {replies['right_before']} right before; after, "
                f"{_of(replies['abstained_after'])} say that there is no such information and "
                f"{_of(replies['right_after'])} are right still."
            )
    lines += [f"{name} declares no Forget by {', '.join(lacking)}." for name, lacking in summary["unsupported"].items()]
    return lines
