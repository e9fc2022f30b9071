"""The summary as tables in a terminal."""

from collections.abc import Iterator

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from memdock_evaluator.summary import recall
from memdock_evaluator.summary.axes import in_order, title, values_in_order
from memdock_evaluator.summary.ranking import block_of, display_name, ks_of, languages_of, systems_in_order, tracks_of
from memdock_evaluator.summary.shape import Figures, LanguageSummary, Summary
from memdock_evaluator.terminal import print_table
from memdock_evaluator.words import counted
from memdock_evaluator.words.counting import half_up

_SHOWN_AXES = ("group", "scope_temporality", "temporal_expression")
"""Of RUMBA's axes, those that fit a terminal; a data set without them shows all that have few values."""

_MOST_SLICES = 8
_ROOMY = 10_000
"""Columns in which any table has all that it wants."""


def print_summary(summary: Summary, console: Console) -> None:
    """Print, for each language, the systems, what they retrieve and their slices; then every caveat.

    No times: calls of a run wait for each other and for the models that they share, so that they need the report's
    stages beside them.
    """
    for language in languages_of(summary["systems"]):
        console.print(f"[bold]{_heading(summary, language)}[/]")
        blocks = [_answers(summary, language, track) for track in tracks_of(summary, language) or [""]]
        for table in (*blocks, _retrieval(summary, language), *_slices(summary, language, console)):
            if table.row_count:
                print_table(table, console)
    for caveat in summary["caveats"]:
        console.print(Padding(f"[yellow]![/] {escape(caveat['text'])}", (0, 1)))
    console.print(Padding("Times and tokens, stage by stage, are in the report.", (0, 1)))


def share(value: float | None) -> str:
    """A score of 0 to 1 as per cent without the sign, "–" where there is none."""
    return "–" if value is None else half_up(100 * value, ".1f")


def _answers(summary: Summary, language: str, track: str) -> Table:
    """The systems of a track, which are ranked among themselves, and the baselines as bounds."""
    table = _table(f"answers, {track} track" if track else "answers", "accuracy", "95 %", "F1", "coverage")
    block = None
    for name, found in systems_in_order(summary, language):
        if not summary["systems"][name]["baseline"] and summary["systems"][name]["track"] != track:
            continue
        if block not in (None, block := block_of(summary, name)):
            table.add_section()
        interval = found["judge_accuracy_interval"]
        table.add_row(
            _name(summary, name),
            share(found["judge_accuracy"]),
            f"{share(interval['low'])}–{share(interval['high'])}" if interval else "–",
            share(found["f1"]),
            share(found["coverage"]),
            style="dim" if summary["systems"][name]["baseline"] else "",
        )
    if any(system["baseline"] for system in summary["systems"].values()):
        table.caption = "* a baseline, no memory system"
    return table


def _retrieval(summary: Summary, language: str) -> Table:
    """Of the systems that name their sources."""
    measured = [(name, found) for name, found in systems_in_order(summary, language) if found["n_retrieval"]]
    cutoffs = recall.cutoffs(found for _, found in measured)
    ats = [f"recall\n@{cutoff}" for cutoff in cutoffs]
    table = _table("retrieval", "by", *ats, "MRR", f"nDCG\n@{summary['k'] or 'k'}")
    for name, found in measured:
        sessions = [recall.recall(found, cutoff, "sessions") for cutoff in cutoffs]
        turns = [recall.recall(found, cutoff, "turns") for cutoff in cutoffs]
        table.add_row(_name(summary, name), "session", *map(share, (*sessions, found["mrr"], found["ndcg"])))
        table.add_row("", "turn", *map(share, (*turns, found["mrr_turns"], found["ndcg_turns"])))
    return table


def _name(summary: Summary, system: str) -> str:
    return escape(display_name(system)) + " *" * summary["systems"][system]["baseline"]


def _table(first: str, *figures: str) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, caption_justify="left")
    table.add_column(first, no_wrap=True)
    for name in figures:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _heading(summary: Summary, language: str) -> str:
    found = [figures for _, figures in systems_in_order(summary, language)]
    questions = max(figures["n_questions"] for figures in found)
    dialogues = max(figures["n_dialogues"] for figures in found)
    each_k = " at each k" if len(ks_of(summary, language)) > 1 else ""
    order = f"by accuracy{each_k}" if summary["ranked"][language] else f"by name{each_k}, not ranked"
    rules = f", {' and '.join(summary['offline'])} by offline rules" if summary["offline"] else ""
    size = f"{counted(questions, 'question')}, {counted(dialogues, 'dialogue')}"
    return f"{language}: {size}, systems {order}{rules}; scores in per cent"


def _slices(summary: Summary, language: str, console: Console) -> Iterator[Table]:
    """As many systems as fit side by side in a table, the next in a further one."""
    roomy = console.options.update(max_width=_ROOMY)
    shown: list[tuple[str, LanguageSummary]] = []
    for system in systems_in_order(summary, language):
        if shown and console.measure(_slice_table(summary, [*shown, system]), options=roomy).maximum > console.width:
            yield _slice_table(summary, shown)
            shown = []
        shown.append(system)
    yield _slice_table(summary, shown)


def _slice_table(summary: Summary, systems: list[tuple[str, LanguageSummary]]) -> Table:
    table = _table("accuracy/MRR by slice", "n/n")
    for name, _ in systems:
        table.add_column(_name(summary, name), justify="right", no_wrap=True)
    for axis in _axes([found for _, found in systems]):
        table.add_row(f"[bold]{escape(title(axis))}[/]")
        slices = [found["slices"].get(axis, {}) for _, found in systems]
        for value in values_in_order(axis, set().union(*slices)):
            figures = [values.get(value) for values in slices]
            asked, found = (max(each[n] for each in figures if each) for n in ("n_questions", "n_retrieval"))
            table.add_row(f"  {escape(value)}", f"{asked}/{found}", *map(_slice, figures))
    return table


def _axes(systems: list[LanguageSummary]) -> list[str]:
    axes = {axis: values for found in systems for axis, values in found["slices"].items()}
    shown = [axis for axis in _SHOWN_AXES if axis in axes]
    return shown or [axis for axis in in_order(axes) if len(axes[axis]) <= _MOST_SLICES]


def _slice(found: Figures | None) -> str:
    return f"{share(found['judge_accuracy'])}/{share(found['mrr'])}" if found else "–"
