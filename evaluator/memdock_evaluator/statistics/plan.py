"""What is compared with what, as data: families of systems, contrasts, and the blocks that Holm's correction spans.

Every comparison of the paper has one form, a side minus a side: the mean, over the questions of a slice, of scores
added and subtracted. Full context minus Agent/RAG in a slice, slice minus slice in a family, English minus Russian,
their interactions and one model against each system are all that.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import combinations, groupby

from memdock_evaluator.statistics.matrix import ScoreMatrix
from memdock_evaluator.statistics.slices import OVERALL, PAIRS, POSITION, POSITION_SINGLE, TIME_AXES, Slice, pairs_of
from memdock_evaluator.words.sentence import said


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Systems whose mean is taken: a question's family score is the mean of its systems' scores (Appendix F)."""

    name: str
    systems: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """The score of a system or a family in a language, added (`sign` 1) or subtracted (-1)."""

    unit: str
    language: str
    sign: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """The mean of `terms` over the questions of a slice."""

    terms: tuple[Term, ...]
    slice: Slice


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """`first` minus `second`, over the questions on which every term of both has a score: so all pairs are whole."""

    first: Side
    second: Side

    @property
    def reach(self) -> float:
        """The largest that the difference can be: 1 of two scores, 2 of two differences."""
        return (len(self.first.terms) + len(self.second.terms)) / 2


class Kind(StrEnum):
    """What a block's contrasts ask."""

    GAP = "gap"
    """One family minus another inside a slice (Tables 11, 16, 19)."""
    SLICES = "slices"
    """One slice minus another inside a family or system (Tables 12, 13, 15, 17, 20 to 23, 25)."""
    LANGUAGES = "languages"
    """A language minus another (Tables 18, 25)."""
    GAP_LANGUAGES = "gap_languages"
    """The gap of two families in a language minus their gap in another (F.1)."""
    GAP_SLICES = "gap_slices"
    """The gap of two families in a slice minus their gap in another: how much more one loses than the other (F.2)."""
    SYSTEMS = "systems"
    """One system minus another over all questions; every two of a language are one block (ours)."""
    ANSWERER = "answerer"
    """A baseline minus each memory system that answers with the same model, and minus their family (Table 6)."""


JUDGES_DIFFER = said("Where the languages have judges of their own, part of the difference may be theirs.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Contrasts whose p-values are corrected together. `caveat` is a sentence that must stand beside them, or ""."""

    kind: Kind
    name: str
    contrasts: tuple[Contrast, ...]
    caveat: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Margin:
    """The claim that `unit` is at most `margin` (0 to 1) worse than `reference` in a language, over all questions."""

    unit: str
    reference: str
    language: str
    margin: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisPlan:
    """What an analysis is to say.

    `atemporal` systems leave the slices of `slices.TIME_AXES`, alone and in their families. Systems are ranked within
    their family; those of all families are compared in pairs within a language. `level` is that of all intervals,
    `alpha` of tests, `power` (above .5) that of the smallest detectable differences. Raises `ValueError` for a family
    that has a system's name, a name twice, or no system.
    """

    families: tuple[Family, ...]
    atemporal: frozenset[str] = frozenset()
    blocks: tuple[Block, ...] = ()
    margins: tuple[Margin, ...] = ()
    level: float = 0.95
    alpha: float = 0.05
    power: float = 0.8

    def __post_init__(self) -> None:
        names = [family.name for family in self.families]
        systems = {system for family in self.families for system in family.systems}
        if len(set(names)) < len(names) or systems & set(names):
            raise ValueError(f"families {names}: each needs a name of its own, and none that a system has")
        for family in self.families:
            if not family.systems or len(set(family.systems)) < len(family.systems):
                raise ValueError(f"family {family.name!r} must hold systems, each once")

    def systems_of(self, unit: str, slice_: Slice) -> tuple[str, ...]:
        """The systems behind a family or a system in a slice; none where all of them are atemporal and it is not."""
        members = next((family.systems for family in self.families if family.name == unit), (unit,))
        if slice_.axis not in TIME_AXES:
            return members
        return tuple(system for system in members if system not in self.atemporal)


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedAnswerer:
    """A full-context baseline that uses the answer model of the memory systems of a family (Table 6)."""

    baseline: str
    family: str


def paper_plan(
    matrix: ScoreMatrix,
    families: Sequence[Family],
    *,
    atemporal: Iterable[str] = (),
    matched: Sequence[MatchedAnswerer] = (),
    profiles: Sequence[str] = (),
    margins: Sequence[Margin] = (),
) -> AnalysisPlan:
    """The paper's comparisons, as far as the matrix has what they need.

    `families` in the order in which they are subtracted: full context before Agent/RAG. `profiles` names the systems
    that get Appendix G's case study. The blocks are ours where the paper is silent: a gap's are one language and one
    axis; a pair of slices makes one block over families and languages; English minus Russian is a block a slice, of all
    families; a profile's are a pair of slices over languages, and an axis for English minus Russian.
    """
    plan = AnalysisPlan(families=tuple(families), atemporal=frozenset(atemporal), margins=tuple(margins))
    make = _Maker(matrix, plan)
    names = [family.name for family in families]
    blocks = [
        *make.gaps(names),
        *make.slices(names),
        *make.languages(names),
        *make.gap_languages(names),
        *make.gap_slices(names),
        *(block for each in matched for block in make.answerer(each)),
        *(block for system in profiles for block in make.profile(system)),
    ]
    return replace(plan, blocks=tuple(blocks))


class _Maker:
    """Makes the blocks, without contrasts of units that have no system in a slice, and without empty blocks."""

    def __init__(self, matrix: ScoreMatrix, plan: AnalysisPlan) -> None:
        self._plan = plan
        self._languages = matrix.languages
        self._axes = {axis: list(slices) for axis, slices in groupby(matrix.slices, key=lambda one: one.axis)}
        self._families = {family.name: family for family in plan.families}

    def gaps(self, families: Sequence[str]) -> Iterator[Block]:
        for first, second in combinations(families, 2):
            for language in self._languages:
                for axis, slices in self._axes.items():
                    yield from self._block(
                        Kind.GAP,
                        f"{first} minus {second}: {axis}, {language}",
                        (
                            Contrast(
                                first=_side(slice_, Term(unit=first, language=language)),
                                second=_side(slice_, Term(unit=second, language=language)),
                            )
                            for slice_ in slices
                        ),
                    )

    def slices(self, units: Sequence[str], of: str = "") -> Iterator[Block]:
        for first, second in self._pairs():
            yield from self._block(
                Kind.SLICES,
                f"{first.value} minus {second.value}: {first.axis}{of}",
                (
                    Contrast(
                        first=_side(first, Term(unit=unit, language=language)),
                        second=_side(second, Term(unit=unit, language=language)),
                    )
                    for unit in units
                    for language in self._languages
                ),
            )

    def languages(self, units: Sequence[str]) -> Iterator[Block]:
        for first, second in combinations(self._languages, 2):
            for slices in self._axes.values():
                for slice_ in slices:
                    yield from self._block(
                        Kind.LANGUAGES,
                        f"{first} minus {second}: {slice_.axis}, {slice_.value}",
                        (_between_languages(slice_, unit, first, second) for unit in units),
                        caveat=JUDGES_DIFFER,
                    )

    def gap_languages(self, families: Sequence[str]) -> Iterator[Block]:
        for one, other in combinations(families, 2):
            for first, second in combinations(self._languages, 2):
                for axis, slices in self._axes.items():
                    yield from self._block(
                        Kind.GAP_LANGUAGES,
                        f"{one} minus {other}, {first} minus {second}: {axis}",
                        (
                            Contrast(
                                first=_side(slice_, *_gap(one, other, first)),
                                second=_side(slice_, *_gap(one, other, second)),
                            )
                            for slice_ in slices
                        ),
                        caveat=JUDGES_DIFFER,
                    )

    def gap_slices(self, families: Sequence[str]) -> Iterator[Block]:
        for one, other in combinations(families, 2):
            for first, second in self._pairs():
                yield from self._block(
                    Kind.GAP_SLICES,
                    f"{one} minus {other}, {first.value} minus {second.value}: {first.axis}",
                    (
                        Contrast(
                            first=_side(first, *_gap(one, other, language)),
                            second=_side(second, *_gap(one, other, language)),
                        )
                        for language in self._languages
                    ),
                )

    def answerer(self, matched: MatchedAnswerer) -> Iterator[Block]:
        for language in self._languages:
            yield from self._block(
                Kind.ANSWERER,
                f"{matched.baseline} minus what answers with its model: {matched.family}, {language}",
                (
                    Contrast(
                        first=_side(OVERALL, Term(unit=matched.baseline, language=language)),
                        second=_side(OVERALL, Term(unit=unit, language=language)),
                    )
                    for unit in (*self._families[matched.family].systems, matched.family)
                ),
            )

    def profile(self, system: str) -> Iterator[Block]:
        """Appendix G. Its Table 24 and 25 stand on the axes that have pairs; positions are compared, not translated."""
        yield from self.slices([system], f", {system}")
        for first, second in combinations(self._languages, 2):
            for axis, slices in self._axes.items():
                if axis in (POSITION, POSITION_SINGLE) or not (axis == OVERALL.axis or PAIRS.get(axis, True)):
                    continue
                yield from self._block(
                    Kind.LANGUAGES,
                    f"{first} minus {second}: {axis}, {system}",
                    (_between_languages(slice_, system, first, second) for slice_ in slices),
                    caveat=JUDGES_DIFFER,
                )

    def _pairs(self) -> Iterator[tuple[Slice, Slice]]:
        for axis, slices in self._axes.items():
            yield from pairs_of(axis, [slice_.value for slice_ in slices])

    def _block(self, kind: Kind, name: str, contrasts: Iterable[Contrast], caveat: str = "") -> Iterator[Block]:
        whole = tuple(
            contrast
            for contrast in contrasts
            if all(
                self._plan.systems_of(term.unit, side.slice)
                for side in (contrast.first, contrast.second)
                for term in side.terms
            )
        )
        if whole:
            yield Block(kind=kind, name=name, contrasts=whole, caveat=caveat)


def _side(slice_: Slice, *terms: Term) -> Side:
    return Side(terms=terms, slice=slice_)


def _gap(one: str, other: str, language: str) -> tuple[Term, Term]:
    return Term(unit=one, language=language), Term(unit=other, language=language, sign=-1)


def _between_languages(slice_: Slice, unit: str, first: str, second: str) -> Contrast:
    return Contrast(
        first=_side(slice_, Term(unit=unit, language=first)), second=_side(slice_, Term(unit=unit, language=second))
    )
