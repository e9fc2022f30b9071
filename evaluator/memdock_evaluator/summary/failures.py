"""Where a system's wrong answers went wrong, counted."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from memdock_evaluator.attribution import Attributed, Failure
from memdock_evaluator.summary.shape import Failures


def failures(found: Sequence[Attributed]) -> Failures:
    """The counts of one system in one language."""
    slices: defaultdict[str, defaultdict[str, list[Attributed]]] = defaultdict(lambda: defaultdict(list))
    for each in found:
        for axis, value in each.row.axes.items():
            slices[axis][value].append(each)
    return Failures(
        n=len(found),
        by_text=sum(each.by_text for each in found),
        maybe_not_stored=sum(each.maybe_not_stored for each in found),
        where=_where(found),
        slices={axis: {value: _where(some) for value, some in values.items()} for axis, values in slices.items()},
    )


def _where(found: Iterable[Attributed]) -> dict[str, int]:
    counts = Counter(each.failure for each in found)
    return {failure.value: counts[failure] for failure in Failure if counts[failure]}
