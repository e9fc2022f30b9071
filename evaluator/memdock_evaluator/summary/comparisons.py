"""`statistics.json`: what differs from what in a run, and how surely. Importing this loads numpy."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, TypeAlias

import orjson

from memdock.types import Feature, Support
from memdock_evaluator.baselines import PREFIX
from memdock_evaluator.results.manifest import Compared, NamedFamily
from memdock_evaluator.results.plan import SystemFacts, Track
from memdock_evaluator.results.rows import Outcome, Row
from memdock_evaluator.statistics import bilingual
from memdock_evaluator.statistics.analysis import RESAMPLES, analyse
from memdock_evaluator.statistics.bilingual import LanguagePair, language_pairs
from memdock_evaluator.statistics.matrix import ScoredRow, ScoreMatrix, matrix_of
from memdock_evaluator.statistics.plan import Block, Contrast, Family, Kind, MatchedAnswerer, Side, Term, paper_plan
from memdock_evaluator.statistics.repeats import METHOD, SOURCE, SystemRepeats, repeats_of
from memdock_evaluator.statistics.shape import Analysis
from memdock_evaluator.statistics.slices import OVERALL, relative_position
from memdock_evaluator.summary.figures import score
from memdock_evaluator.summary.scripts import MemoryScript, memory_scripts
from memdock_evaluator.summary.source import RunFiles
from memdock_evaluator.words.names import TRACK_NAMES
from memdock_evaluator.words.sentence import said

STATISTICS = "statistics.json"
MEMORY_SYSTEMS, FULL_CONTEXT = said("memory systems"), said("full context")
"""The families where none are named: all that is no baseline, and the baseline of that name.

Memory systems that may not be ranked together, for their track or their k, are families of their own: "memory systems,
k = 5", "memory systems, controlled, k = 5". So no family counts a system twice.
"""

_FULL = f"{PREFIX}full-context"

SEED = 0

_NOTHING = Compared()
_Group: TypeAlias = tuple[str, int]
"""A track and a k."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeats:
    """What ingests, answers and verdicts vary by where they were repeated; `systems` is empty where nothing was."""

    method: str = METHOD
    source: str = SOURCE
    systems: tuple[SystemRepeats, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bilingual:
    """The same questions in two languages, and the language of the memories; empty where there is nothing to tell."""

    method: str = bilingual.METHOD
    source: str = bilingual.SOURCE
    pairs: tuple[LanguagePair, ...]
    memories: tuple[MemoryScript, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparisons:
    """All of `statistics.json`. `caveats` are sentences that must stand beside the figures.

    `named`: somebody chose the families.
    """

    families: tuple[Family, ...]
    named: bool
    atemporal: tuple[str, ...]
    case_studies: tuple[str, ...]
    caveats: tuple[str, ...]
    repeats: Repeats
    languages: Bilingual
    analysis: Analysis

    def to_json(self) -> bytes:
        """The file's bytes, on one line; the same for the same rows."""
        return orjson.dumps(self, option=orjson.OPT_SORT_KEYS) + b"\n"


def compared_in(run: RunFiles, asked: Compared) -> Compared:
    """What is asked for, what it leaves open as the run's manifest has it, and the systems that declare no times."""
    found = asked.or_else(run.manifest.compared).among(run.manifest.plan.systems)
    there = {row.system for row in run.rows}
    silent = (system.name for system in run.manifest.plan.systems if system.name in there and _has_no_times(system))
    return replace(found, atemporal=tuple(dict.fromkeys((*found.atemporal, *silent))))


def compare(
    rows: Iterable[Row],
    compared: Compared = _NOTHING,
    *,
    contestants: Iterable[SystemFacts] = (),
    resamples: int = RESAMPLES,
) -> Comparisons:
    """The comparisons of the paper and every two systems over all questions.

    Without families they are `MEMORY_SYSTEMS` and, where the run has that baseline, `FULL_CONTEXT`. That baseline had
    the memory systems' answer model, so it is also set against each of them. `contestants` tell which systems may be
    ranked together. Pairs are of these, of one system's several k, and of a baseline with anything. Raises
    `ValueError` for a system that has no rows.
    """
    rows = list(rows)
    scored = list(map(_scored, rows))
    matrix = matrix_of(scored)
    _refuse_unknown(matrix.systems, compared.names)
    facts = {each.name: each for each in contestants}
    groups = {name: _group(facts.get(name)) for name in matrix.systems if not name.startswith(PREFIX)}
    chosen = _families(matrix.systems, compared, groups)
    memory = [system for system in matrix.systems if not system.startswith(PREFIX)]
    studied = compared.case_studies or (memory if len(memory) == 1 else ())
    plan = paper_plan(
        matrix,
        chosen,
        atemporal=compared.atemporal,
        matched=list(_matched(matrix.systems, chosen)),
        profiles=studied,
    )
    plan = replace(plan, blocks=(*_pairs(matrix, facts, groups), *plan.blocks))
    analysis = analyse(matrix, plan, seed=SEED, resamples=resamples)
    return Comparisons(
        families=plan.families,
        named=bool(compared.families),
        atemporal=tuple(sorted(plan.atemporal)),
        case_studies=tuple(studied),
        caveats=tuple(_caveats(analysis, {family.name for family in chosen if len(family.systems) > 1})),
        repeats=Repeats(systems=repeats_of(scored)),
        languages=Bilingual(pairs=language_pairs(matrix), memories=memory_scripts(rows)),
        analysis=analysis,
    )


def compare_again(rows: Iterable[Row], told: Mapping[str, Any], contestants: Iterable[SystemFacts] = ()) -> Comparisons:
    """The comparisons of what a `statistics.json` tells that it compares.

    Raises `ValueError` for a file that no `compare` of these rows has written.
    """
    try:
        families = tuple(
            NamedFamily(name=family["name"], systems=tuple(family["systems"]))
            for family in (told["families"] if told["named"] else ())
        )
        atemporal, studied = tuple(told["atemporal"]), tuple(told["case_studies"])
        compared = Compared(families=families, atemporal=atemporal, case_studies=studied)
        return compare(rows, compared, contestants=contestants)
    except (KeyError, TypeError) as error:
        raise ValueError(f"it does not say what was compared ({error})") from error


def _has_no_times(system: SystemFacts) -> bool:
    """Whether it told its features and that its memories carry the time at which they were said is not among them."""
    can = (Support.NATIVE.value, Support.EMULATED.value)
    return bool(system.features) and system.features.get(Feature.EVENT_TIME.value) not in can


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


def _group(facts: SystemFacts | None) -> _Group:
    """What may be ranked together has the same; of vendors' systems each has the k that its vendor would have."""
    if facts is None:
        return "", 0
    return facts.track or "", 0 if facts.track is Track.VENDOR else facts.k


def _group_name(group: _Group, groups: Collection[_Group]) -> str:
    """With the track and the k where the run has several of these."""
    track, k = group
    tracks, ks = {each[0] for each in groups}, {each[1] for each in groups if each[1]}
    parts: list[str] = [MEMORY_SYSTEMS]
    parts += [TRACK_NAMES[track]] if len(tracks) > 1 else []
    parts += [said("k = {k}", k=k)] if len(ks) > 1 and k else []
    return parts[0] if len(parts) == 1 else said("{parts}", parts=parts)


def _families(systems: Sequence[str], compared: Compared, groups: Mapping[str, _Group]) -> list[Family]:
    if compared.families:
        return [Family(name=family.name, systems=family.systems) for family in compared.families]
    full = [Family(name=FULL_CONTEXT, systems=(_FULL,))] if _FULL in systems else []
    return full + [
        Family(
            name=_group_name(group, set(groups.values())),
            systems=tuple(name for name, its in groups.items() if its == group),
        )
        for group in sorted(set(groups.values()))
    ]


def _refuse_unknown(systems: Sequence[str], named: Iterable[str]) -> None:
    if unknown := sorted(set(named) - set(systems)):
        raise ValueError(f"there is no system {unknown[0]!r}: the run has {', '.join(systems)}")


def _matched(systems: Sequence[str], families: Sequence[Family]) -> Iterator[MatchedAnswerer]:
    """The baseline that the answer model was given the whole dialogue in, against each family of memory systems."""
    for family in families:
        if _FULL in systems and not any(system.startswith(PREFIX) for system in family.systems):
            yield MatchedAnswerer(baseline=_FULL, family=family.name)


def _pairs(matrix: ScoreMatrix, facts: Mapping[str, SystemFacts], groups: Mapping[str, _Group]) -> Iterator[Block]:
    """Every two systems over all questions of a language: memory systems first, each minus those after it.

    Two memory systems of different groups are not compared, unless they are one system at two k.
    """

    def comparable(first: str, second: str) -> bool:
        if second.startswith(PREFIX) or groups[first] == groups[second]:
            return True
        return facts[first].system == facts[second].system

    systems = sorted(matrix.systems, key=lambda name: (name.startswith(PREFIX), name))
    for language in matrix.languages:
        contrasts = tuple(
            Contrast(first=_all_questions(first, language), second=_all_questions(second, language))
            for first, second in combinations(systems, 2)
            if comparable(first, second)
        )
        if contrasts:
            yield Block(kind=Kind.SYSTEMS, name=f"every two systems: {language}", contrasts=contrasts)


def _all_questions(system: str, language: str) -> Side:
    return Side(terms=(Term(unit=system, language=language),), slice=OVERALL)


def _caveats(analysis: Analysis, ranked: Collection[str]) -> Iterator[str]:
    """Each sentence once, with what it is about; `ranked` are the families that have several systems to rank."""
    refused = dict.fromkeys(
        (
            *((said("Bootstraps give no p-value"), block.refused) for block in analysis.blocks),
            *((said("No test of all pairs in all slices"), found.refused) for found in analysis.pairs),
            *((said("No rank intervals"), found.refused) for found in analysis.rankings if found.family in ranked),
        )
    )
    yield from (said("{what} ({reason}).", what=what, reason=reason) for what, reason in refused if reason)
    yield from dict.fromkeys(block.caveat for block in analysis.blocks if block.caveat)
