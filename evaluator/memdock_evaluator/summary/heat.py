"""Accuracy by method and semantic type, a map a family of systems and language: the paper's Figures 15 and 16."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from memdock_evaluator.baselines import PREFIX
from memdock_evaluator.dataset import taxonomy
from memdock_evaluator.statistics.plan import Family
from memdock_evaluator.summary.axes import values_in_order
from memdock_evaluator.summary.caveats import FEW_QUESTIONS
from memdock_evaluator.summary.ranking import languages_of, systems_in_order
from memdock_evaluator.summary.shape import Figures, LanguageSummary, Summary
from memdock_evaluator.words.sentence import said

AXIS = "semantic"
OTHERS = {False: said("other memory systems"), True: said("other baselines")}
"""The systems of no family, by whether they are baselines."""

GROUPS = {
    taxonomy.EXTRACTION: said("Extraction"),
    taxonomy.GENERAL: said("General reasoning"),
    taxonomy.TEMPORAL: said("Temporal reasoning"),
}
"""The groups as headings; the one type of the fourth has its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatColumn:
    """A semantic type; `group` is one of `taxonomy.GROUPS`, or "" for a type that is not of RUMBA's."""

    value: str
    group: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatCell:
    """A method's accuracy on a type, a share of 1; `None`: no question of it has a score."""

    share: float | None
    n: int

    @property
    def few(self) -> bool:
        """Whether there are too few questions to read anything from."""
        return self.n < FEW_QUESTIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatRow:
    """A method: its cells in the order of the columns, and its accuracy over all questions."""

    system: str
    cells: tuple[HeatCell, ...]
    overall: HeatCell


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap:
    """A family in a language, methods in the order of the tables."""

    family: str
    language: str
    columns: tuple[HeatColumn, ...]
    rows: tuple[HeatRow, ...]

    @property
    def spans(self) -> list[tuple[str, int]]:
        """The headings of groups from left to right, and how many columns each has."""
        return [
            (GROUPS.get(group, ""), len(list(columns)))
            for group, columns in groupby(self.columns, key=lambda column: column.group)
        ]

    @property
    def firsts(self) -> list[str]:
        """The first type of each group but the first, where a gap stands before it."""
        groups = [column.group for column in self.columns]
        return [
            column.value for place, column in enumerate(self.columns) if place and groups[place - 1] != column.group
        ]

    @property
    def sizes(self) -> list[int]:
        """Questions of each type: those of the method that was asked the most."""
        return [max(cells) for cells in zip(*([cell.n for cell in row.cells] for row in self.rows), strict=True)]


def heat_maps(summary: Summary, families: Sequence[Family]) -> list[HeatMap]:
    """Family by family, a map a language: those of memory systems and the memory systems of no family, then baselines.

    None where the data has no such types.
    """
    return list(_maps(summary, families))


def _maps(summary: Summary, families: Sequence[Family]) -> Iterator[HeatMap]:
    named = {system for family in families for system in family.systems}
    rest = [name for name in summary["systems"] if name not in named]
    groups: dict[bool, list[tuple[str, Sequence[str]]]] = {False: [], True: []}
    for family in families:
        groups[all(map(_is_baseline, family.systems))].append((family.name, family.systems))
    for baselines, others in OTHERS.items():
        groups[baselines].append((others, [name for name in rest if _is_baseline(name) == baselines]))
    for title, systems in (*groups[False], *groups[True]):
        for language in languages_of(summary["systems"]):
            found = {name: its for name, its in systems_in_order(summary, language) if name in systems}
            if any(AXIS in its["slices"] for its in found.values()):
                yield _map(title, language, found)


def _is_baseline(system: str) -> bool:
    return system.startswith(PREFIX)


def _map(family: str, language: str, found: Mapping[str, LanguageSummary]) -> HeatMap:
    slices = {name: its["slices"].get(AXIS, {}) for name, its in found.items()}
    values = values_in_order(AXIS, {value for its in slices.values() for value in its})
    return HeatMap(
        family=family,
        language=language,
        columns=tuple(HeatColumn(value=value, group=taxonomy.GROUP_OF.get(value, "")) for value in values),
        rows=tuple(
            HeatRow(
                system=name,
                cells=tuple(_cell(slices[name].get(value)) for value in values),
                overall=_cell(its),
            )
            for name, its in found.items()
        ),
    )


def _cell(figures: Figures | None) -> HeatCell:
    if figures is None:
        return HeatCell(share=None, n=0)
    return HeatCell(share=figures["judge_accuracy"], n=figures["n_questions"])
