"""A `Report` for people."""

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table

from memdock_evaluator.dataset.check import Report
from memdock_evaluator.dataset.findings import Finding
from memdock_evaluator.terminal import print_table
from memdock_evaluator.words import counted


def print_report(report: Report, console: Console) -> None:
    """Print sizes and slices as tables, and oddities, findings and differences one line each."""
    languages = ", ".join(f"{count} in {language}" for language, count in sorted(report.languages.items()))
    head = f"{report.path}: {counted(report.dialogues, 'dialogue')} ({languages})"
    console.print(head, highlight=False, markup=False, soft_wrap=True)
    print_table(_sizes(report), console)
    print_table(_slices(report), console)
    for line in _lines(report):
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def _sizes(report: Report) -> Table:
    table = Table("", "in all", "least", "mean", "most", title="Sizes, and a dialogue's", title_justify="left")
    for name in ("sessions", "turns", "questions", "characters"):
        each = getattr(report, f"{name}_each")
        table.add_row(name, f"{getattr(report, name):,}", f"{each.least:,}", f"{each.mean:,.1f}", f"{each.most:,}")
    table.add_row("evidence sessions, over questions", f"{report.evidence_sessions:,}")
    return _right(table)


def _slices(report: Report) -> Table:
    table = Table("axis", "slice", "questions", title="Questions by slice", title_justify="left")
    published = {(each.axis, each.slice): each for each in report.comparisons}
    if published:
        table.add_column("published")
    for axis, slices in report.slices.items():
        for place, (value, count) in enumerate(slices.items()):
            row = [axis if not place else "", value, f"{count:,}"]
            if compared := published.get((axis, value)):
                row.append(f"{compared.published:,}" + ("" if count == compared.published else "  differs"))
            table.add_row(*row, end_section=place == len(slices) - 1)
    return _right(table, first=2)


def _lines(report: Report) -> Iterator[str]:
    yield from _section("Findings", report.findings)
    yield from _section("Oddities, mended or left out", report.oddities)
    if not report.comparisons:
        return
    yield f"Published sizes (Tables 3 and 24): {len(report.comparisons)} compared, {len(report.differences)} differ"
    for each in report.differences:
        name = f"{each.axis} {each.slice}".strip()
        yield f"  {name}: {each.here:,} here, {each.published:,} published"


def _section(title: str, findings: tuple[Finding, ...]) -> Iterator[str]:
    yield f"{title}: {sum(each.count for each in findings):,}"
    for each in findings:
        yield f"  {each.count:>6,}  {each.kind}: {each.sentence} (first: {each.first})"


def _right(table: Table, first: int = 1) -> Table:
    for column in table.columns[first:]:
        column.justify = "right"
    return table
