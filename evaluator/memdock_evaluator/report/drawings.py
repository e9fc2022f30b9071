"""What the page's drawings show, in numbers that the templates place: forests of differences, curves of recall."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil

from memdock_evaluator.attribution import Failure
from memdock_evaluator.baselines import PREFIX
from memdock_evaluator.statistics.plan import Kind
from memdock_evaluator.statistics.shape import Difference
from memdock_evaluator.statistics.slices import OVERALL
from memdock_evaluator.summary import recall
from memdock_evaluator.summary.axes import slice_name, title, values_in_order
from memdock_evaluator.summary.comparisons import Comparisons
from memdock_evaluator.summary.ranking import display_name, languages_of, systems_in_order
from memdock_evaluator.summary.shape import Summary
from memdock_evaluator.tables.comparing import contrast_label
from memdock_evaluator.words.language import Words
from memdock_evaluator.words.sentence import said

_STEP, _WIDEST = 0.05, 0.5
"""The axis of a forest ends at a multiple of the step, and need not hold intervals that are wider."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Twig:
    """A row of a forest; `at`, `low` and `high` are places on its axis, 0 the left end and 100 the right one."""

    label: str
    axis: str
    found: Difference
    at: float
    low: float | None
    high: float | None

    @property
    def is_sure(self) -> bool:
        """Whether the interval leaves out zero."""
        found = self.found.clustered
        return found.low is not None and found.high is not None and (found.low > 0 or found.high < 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forest:
    """Differences on one axis from `-limit` to `limit`, shares of 1."""

    title: str
    limit: float
    twigs: tuple[Twig, ...]


def forests(comparisons: Comparisons, words: Words) -> list[Forest]:
    """The differences worth a picture: every two systems, family minus family by slice, slice minus slice.

    What has no estimate is left out, and so are two baselines, which say nothing of a memory.
    """
    of_kind: dict[Kind, list[Difference]] = {}
    for block in comparisons.analysis.blocks:
        of_kind.setdefault(block.kind, []).extend(one for one in block.differences if one.estimate is not None)
    systems = [one for one in of_kind.get(Kind.SYSTEMS, []) if not _unit(one).startswith(PREFIX)]
    groups = (
        (said("Every two systems, all questions"), systems),
        (said("One family minus another, slice by slice"), of_kind.get(Kind.GAP, [])),
        (said("One slice minus another, in a family"), of_kind.get(Kind.SLICES, [])),
    )
    return [_forest(name, found, words) for name, found in groups if found]


def _unit(found: Difference) -> str:
    return found.contrast.first.terms[0].unit


def _forest(name: str, differences: Sequence[Difference], words: Words) -> Forest:
    points = [abs(one.estimate) for one in differences if one.estimate is not None]
    ends = [abs(end) for one in differences for end in (one.clustered.low, one.clustered.high) if end is not None]
    # The interval of a slice of few questions may span all there is: it runs out of the drawing, or nothing else could
    # be seen in it.
    widest = max([*points, *(min(end, _WIDEST) for end in ends)])
    limit = ceil(round(widest / _STEP, 6)) * _STEP or _STEP
    return Forest(title=name, limit=limit, twigs=tuple(_twig(one, limit, words) for one in differences))


def _twig(found: Difference, limit: float, words: Words) -> Twig:
    def place(value: float | None) -> float | None:
        return None if value is None else round(max(0.0, min(100.0, 50 + 50 * value / limit)), 2)

    slice_ = found.contrast.first.slice
    return Twig(
        label=_label(found, words),
        axis="" if slice_ == OVERALL else words.word(title(slice_.axis)),
        found=found,
        at=place(found.estimate) or 0.0,
        low=place(found.clustered.low),
        high=place(found.clustered.high),
    )


def _label(found: Difference, words: Words) -> str:
    return contrast_label(
        found.contrast,
        unit=lambda name: words.word(display_name(name)),
        value=lambda of: words.word(slice_name(of.axis, of.value)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One system's recall by session over k: `points` are (x, y) in per cent of the drawing, y from its top."""

    system: str
    colour: int
    """That of the system in every drawing, from 0."""
    values: tuple[tuple[str, float], ...]
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """The systems of a language; `places` is where each number of memories stands, in per cent from the left."""

    language: str
    places: tuple[tuple[str, float], ...]
    curves: tuple[Curve, ...]


def recall_curves(summary: Summary) -> list[Curves]:
    """Recall by session over k, of the languages in which it is known at more than one k."""
    return [found for language in languages_of(summary["systems"]) if (found := _curves(summary, language))]


def _curves(summary: Summary, language: str) -> Curves | None:
    measured = [(name, found) for name, found in systems_in_order(summary, language) if found["n_retrieval"]]
    cutoffs = recall.cutoffs(found for _, found in measured)
    if len(cutoffs) < 2:
        return None
    places = {cutoff: round(100 * index / (len(cutoffs) - 1), 2) for index, cutoff in enumerate(cutoffs)}
    systems = {name: None for each in languages_of(summary["systems"]) for name, _ in systems_in_order(summary, each)}
    colours = {name: place for place, name in enumerate(systems)}
    curves = []
    for name, found in measured:
        shares = ((cutoff, recall.recall(found, cutoff, "sessions")) for cutoff in cutoffs)
        values = tuple((cutoff, share) for cutoff, share in shares if share is not None)
        curves.append(
            Curve(
                system=display_name(name),
                colour=colours[name],
                values=values,
                points=tuple((places[cutoff], round(100 * (1 - share), 2)) for cutoff, share in values),
            )
        )
    return Curves(language=language, places=tuple(places.items()), curves=tuple(curves))


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureBar:
    """Where the wrong answers of a system in a language went wrong, zeros left out."""

    system: str
    language: str
    n: int
    by_text: int
    maybe_not_stored: int
    parts: tuple[tuple[str, int], ...]
    types: tuple[tuple[str, tuple[int, ...]], ...]
    """Semantic type -> counts in the order of `FAILURES`; none where the data has no such types."""


FAILURES = tuple(failure.value for failure in Failure)


def failure_bars(summary: Summary) -> list[FailureBar]:
    """One bar for each memory system in each language that has wrong answers."""
    return [bar for language in languages_of(summary["systems"]) for bar in _failure_bars(summary, language)]


def _failure_bars(summary: Summary, language: str) -> Iterator[FailureBar]:
    for name, found in systems_in_order(summary, language):
        wrong = found["failures"]
        if wrong["n"]:
            by_type = wrong["slices"].get("semantic", {})
            yield FailureBar(
                system=name,
                language=language,
                n=wrong["n"],
                by_text=wrong["by_text"],
                maybe_not_stored=wrong["maybe_not_stored"],
                parts=tuple((place, wrong["where"][place]) for place in FAILURES if place in wrong["where"]),
                types=tuple(
                    (value, tuple(by_type[value].get(place, 0) for place in FAILURES))
                    for value in values_in_order("semantic", by_type)
                ),
            )
