"""`statistics.json`: what differs from what in a run, and how surely. Importing this loads numpy."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import orjson

from memdock_evaluator.baselines import PREFIX
from memdock_evaluator.results.rows import Outcome, Row
from memdock_evaluator.statistics.analysis import RESAMPLES, analyse
from memdock_evaluator.statistics.matrix import ScoredRow, ScoreMatrix, matrix_of
from memdock_evaluator.statistics.plan import Block, Contrast, Family, Kind, MatchedAnswerer, Side, Term, paper_plan
from memdock_evaluator.statistics.repeats import METHOD, SOURCE, SystemRepeats, repeats_of
from memdock_evaluator.statistics.shape import Analysis
from memdock_evaluator.statistics.slices import OVERALL, relative_position
from memdock_evaluator.summary.figures import score

STATISTICS = "statistics.json"
MEMORY_SYSTEMS, FULL_CONTEXT = "memory systems", "full context"
"""The families where none are named: all that is no baseline, and the baseline of that name."""

SEED = 0

Families = Mapping[str, Sequence[str]]
"""Name -> systems, in the order in which families are subtracted from each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeats:
    """What ingests, answers and verdicts vary by where they were repeated; `systems` is empty where nothing was."""

    method: str = METHOD
    source: str = SOURCE
    systems: tuple[SystemRepeats, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparisons:
    """All of `statistics.json`. `caveats` are sentences that must stand beside the figures.

    `named`: somebody chose the families.
    """

    families: tuple[Family, ...]
    named: bool
    atemporal: tuple[str, ...]
    caveats: tuple[str, ...]
    repeats: Repeats
    analysis: Analysis

    def to_json(self) -> bytes:
        """The file's bytes, on one line; the same for the same rows."""
        return orjson.dumps(self, option=orjson.OPT_SORT_KEYS) + b"\n"


def compare(
    rows: Iterable[Row],
    *,
    families: Families | None = None,
    atemporal: Sequence[str] = (),
    resamples: int = RESAMPLES,
) -> Comparisons:
    """The comparisons of the paper and every two systems over all questions.

    Without `families` they are `MEMORY_SYSTEMS` and, where the run has that baseline, `FULL_CONTEXT`, which then had
    the memory systems' answer model and is set against each of them. Raises `ValueError` for a system that has no rows.
    """
    scored = list(map(_scored, rows))
    matrix = matrix_of(scored)
    chosen = _families(matrix.systems) if families is None else _named(families)
    _refuse_unknown(matrix.systems, [*(name for family in chosen for name in family.systems), *atemporal])
    plan = paper_plan(matrix, chosen, atemporal=atemporal, matched=_matched(chosen) if families is None else None)
    plan = replace(plan, blocks=(*_pairs(matrix), *plan.blocks))
    analysis = analyse(matrix, plan, seed=SEED, resamples=resamples)
    return Comparisons(
        families=plan.families,
        named=families is not None,
        atemporal=tuple(sorted(plan.atemporal)),
        caveats=tuple(_caveats(analysis, {family.name for family in chosen if len(family.systems) > 1})),
        repeats=Repeats(systems=repeats_of(scored)),
        analysis=analysis,
    )


def compare_again(rows: Iterable[Row], told: Mapping[str, Any]) -> Comparisons:
    """The comparisons with the families and the atemporal systems that a `statistics.json` tells.

    Raises `ValueError` for a file that no `compare` of these rows has written.
    """
    try:
        families = {family["name"]: family["systems"] for family in told["families"]} if told["named"] else None
        return compare(rows, families=families, atemporal=told["atemporal"])
    except (KeyError, TypeError) as error:
        raise ValueError(f"it does not say what was compared ({error})") from error


def _scored(row: Row) -> ScoredRow:
    right = score(row)
    indices = [int(session.removeprefix("s")) for session in row.evidence_sessions]
    return ScoredRow(
        system=row.system,
        language=row.language,
        dialogue_id=row.dialogue_id,
        question_id=row.question_id,
        axes=row.axes,
        correct=None if right is None else bool(right),
        f1=0.0 if row.outcome is Outcome.SYSTEM_ERROR else row.f1,
        position=relative_position(indices, row.sessions) if row.sessions else None,
        ingest=row.ingest,
        answer=row.repeat - row.judging,
        judging=row.judging,
    )


def _families(systems: Sequence[str]) -> list[Family]:
    memory = tuple(name for name in systems if not name.startswith(PREFIX))
    full = tuple(name for name in systems if name == f"{PREFIX}full-context")
    named = ((FULL_CONTEXT, full), (MEMORY_SYSTEMS, memory))
    return [Family(name=name, systems=members) for name, members in named if members]


def _named(families: Families) -> list[Family]:
    return [Family(name=name, systems=tuple(members)) for name, members in families.items()]


def _refuse_unknown(systems: Sequence[str], named: Iterable[str]) -> None:
    if unknown := sorted(set(named) - set(systems)):
        raise ValueError(f"there is no system {unknown[0]!r}: the run has {', '.join(systems)}")


def _matched(families: Sequence[Family]) -> MatchedAnswerer | None:
    of_name = {family.name: family for family in families}
    if not of_name.keys() >= {FULL_CONTEXT, MEMORY_SYSTEMS}:
        return None
    return MatchedAnswerer(baseline=of_name[FULL_CONTEXT].systems[0], family=MEMORY_SYSTEMS)


def _pairs(matrix: ScoreMatrix) -> Iterator[Block]:
    """Every two systems over all questions of a language: memory systems first, each minus those after it."""
    systems = sorted(matrix.systems, key=lambda name: (name.startswith(PREFIX), name))
    for language in matrix.languages:
        contrasts = tuple(
            Contrast(first=_all_questions(first, language), second=_all_questions(second, language))
            for first, second in combinations(systems, 2)
        )
        if contrasts:
            yield Block(kind=Kind.SYSTEMS, name=f"every two systems: {language}", contrasts=contrasts)


def _all_questions(system: str, language: str) -> Side:
    return Side(terms=(Term(unit=system, language=language),), slice=OVERALL)


def _caveats(analysis: Analysis, ranked: Collection[str]) -> Iterator[str]:
    """Each sentence once, with what it is about; `ranked` are the families that have several systems to rank."""
    refused = dict.fromkeys(
        (
            *(("Bootstraps give no p-value", block.refused) for block in analysis.blocks),
            *(("No test of all pairs in all slices", found.refused) for found in analysis.pairs),
            *(("No rank intervals", found.refused) for found in analysis.rankings if found.family in ranked),
        )
    )
    yield from (f"{about} ({reason})." for about, reason in refused if reason)
    yield from dict.fromkeys(block.caveat for block in analysis.blocks if block.caveat)
