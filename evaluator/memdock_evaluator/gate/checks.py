"""The checks of one baseline: each measure of each of its systems against the results."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from memdock_evaluator.gate.measured import VALUES, Measured, Place, by_dialogue, slices, values
from memdock_evaluator.gate.shape import Check, GateError, GateSettings, Verdict
from memdock_evaluator.results.manifest import Price
from memdock_evaluator.results.rows import Row
from memdock_evaluator.statistics.no_worse import (
    Clusters,
    Worse,
    mean_is_no_worse,
    mean_is_not_larger,
    quantile_is_not_larger,
)
from memdock_evaluator.summary.figures import score
from memdock_evaluator.words import counted

P95 = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A baseline and the results, and how they are held against each other."""

    baseline: Measured
    results: Measured
    settings: GateSettings

    @property
    def systems(self) -> tuple[str, ...]:
        """The contestants of the baseline that are held. Raises `GateError` for a name that it does not have."""
        plan = self.baseline.manifest.plan
        address = self.baseline.folder.address
        known = [each.name for each in plan.systems]
        if unknown := [name for name in self.settings.systems if name not in known]:
            raise GateError(f"--system {unknown[0]}: the baseline {address} has {', '.join(known)}")
        found = self.settings.systems or tuple(each.name for each in plan.systems if not each.baseline)
        if not found:
            raise GateError(f"the baseline {address} has no memory system: name what to hold with --system")
        return found

    def holds(self, measure: str) -> bool:
        """Whether the measure is held."""
        return measure not in self.settings.without

    def check(self, place: Place, measure: str, margin: float, of: str = "", *, relative: bool = False) -> Check:
        """A check of which nothing is known yet."""
        return Check(
            baseline=self.baseline.folder.address,
            system=place[0],
            language=place[1],
            measure=measure,
            of=of,
            verdict=Verdict.INCONCLUSIVE,
            margin=margin,
            relative=relative,
        )


def judged(check: Check, worse: Worse, least_clusters: int = 0) -> Check:
    """The check with its verdict.

    Passed: the bound lies below the margin, and enough varied. A regression: what was found is worse by the margin or
    more. Inconclusive: what was found is within the margin, but its bound is not.
    """
    found = replace(
        check,
        first=worse.first,
        second=worse.second,
        by=worse.by,
        bound=worse.bound,
        n=worse.n,
        clusters=worse.clusters,
    )
    if worse.by >= check.margin:
        return replace(found, verdict=Verdict.REGRESSION)
    if worse.clusters < least_clusters:
        few = counted(worse.clusters, "dialogue")
        return replace(found, why=f"{few}, and fewer than {least_clusters} are taken to prove nothing")
    if worse.bound >= check.margin:
        why = "what may be is beyond the margin, though what was found is not: ask more questions, or widen it"
        return replace(found, why=why)
    return replace(found, verdict=Verdict.PASSED)


def score_checks(pair: Pair) -> Iterator[Check]:
    """Accuracy, recall and coverage of all questions and of each slice."""
    before, after = pair.baseline.rows, pair.results.rows
    margins = pair.settings.margins
    _refuse_unknown_axes(pair)
    for place in _places(pair, before):
        rows, new = before[place], after.get(place, [])
        for measure, value in VALUES.items():
            if pair.holds(measure):
                yield from _scores(pair, pair.check(place, measure, getattr(margins, measure)), rows, new, value)
        for axis, name in slices(rows, pair.settings.slices):
            check = pair.check(place, "accuracy", margins.slices, f"{axis} {name}")
            inside = [row for row in new if row.axes.get(axis) == name]
            yield from _scores(pair, check, [row for row in rows if row.axes.get(axis) == name], inside, score)


def _refuse_unknown_axes(pair: Pair) -> None:
    known = sorted({axis for row in pair.baseline.run.rows for axis in row.axes})
    if unknown := [axis for axis in pair.settings.slices if axis not in known]:
        raise GateError(f"--slice {unknown[0]}: the baseline's questions have {', '.join(known) or 'no axes'}")


def _scores(
    pair: Pair, check: Check, rows: Sequence[Row], new: Sequence[Row], value: Callable[[Row], float | None]
) -> Iterator[Check]:
    first, second = values(rows, value), values(new, value)
    if not first:
        return
    asked = {(row.dialogue_id, row.question_id) for row in new}
    if missing := {(row.dialogue_id, row.question_id) for row in rows} - asked:
        yield replace(check, why=f"the results lack {_named(missing)}")
        return
    common = first.keys() & second.keys()
    if not common:
        yield replace(check, why="the results have no question with this measure")
        return
    worse = mean_is_no_worse(by_dialogue(first, common), by_dialogue(second, common), alpha=pair.settings.alpha)
    yield judged(check, worse, pair.settings.least_dialogues)


def _named(missing: set[tuple[str, str]]) -> str:
    dialogue, question = min(missing)
    return f"{counted(len(missing), 'question')} of the baseline, such as {question} of dialogue {dialogue}"


def latency_checks(pair: Pair) -> Iterator[Check]:
    """The p95 of a stage."""
    before, after = (run.times(pair.settings.stage) for run in (pair.baseline, pair.results))

    def compared(first: Clusters, second: Clusters) -> Worse:
        return quantile_is_not_larger(first, second, P95, alpha=pair.settings.alpha)

    for place in _places(pair, before):
        check = pair.check(place, "latency", pair.settings.margins.latency, f"{pair.settings.stage} p95", relative=True)
        yield _amount(pair, check, before[place], after.get(place, {}), compared)


def cost_checks(pair: Pair) -> Iterator[Check]:
    """Money a dialogue of answers and of the memory system's own calls, both runs by the prices of the results."""
    prices: dict[str, Price] = {}
    for run in (pair.baseline, pair.results):
        prices |= run.manifest.cost.prices if run.manifest.cost else {}
    stores = {pair.baseline.manifest.plan.stores[name] for name in pair.systems}
    held = tuple(dict.fromkeys((*pair.systems, *sorted(stores))))
    margin = pair.settings.margins.cost
    if lacking := [run.folder.address for run in (pair.baseline, pair.results) if run.without_parts()]:
        blank = pair.check((pair.systems[0], ""), "cost", margin, relative=True)
        yield replace(blank, why=f"a dialogue's bill is made of parts/, which {lacking[0]} lacks")
        return
    (before, unpriced_before), (after, unpriced_after) = (run.costs(prices) for run in (pair.baseline, pair.results))

    def compared(first: Clusters, second: Clusters) -> Worse:
        return mean_is_not_larger(first, second, alpha=pair.settings.alpha)

    for place in sorted(before):
        if place[0] not in held:
            continue
        check = pair.check(place, "cost", margin, "a dialogue", relative=True)
        old = {name: [value] for name, value in before[place].items()}
        new = {name: [value] for name, value in after.get(place, {}).items()}
        if unpriced := sorted(unpriced_before ^ unpriced_after):
            yield replace(check, why=f"no price is known of {', '.join(unpriced)}, which one of the two asked")
        elif any(before[place].values()):
            yield _amount(pair, check, old, new, compared)
        elif any(after.get(place, {}).values()):
            yield replace(check, verdict=Verdict.REGRESSION, why="what cost nothing costs something now")


def _amount(
    pair: Pair,
    check: Check,
    first: Mapping[str, Sequence[float]],
    second: Mapping[str, Sequence[float]],
    compared: Callable[[Clusters, Clusters], Worse],
) -> Check:
    if missing := sorted(first.keys() - second.keys()):
        return replace(check, why=f"the results lack {counted(len(missing), 'dialogue')}, such as {missing[0]}")
    try:
        worse = compared(first, {name: second[name] for name in first})
    except ValueError as error:
        return replace(check, why=str(error))
    return judged(check, worse, pair.settings.least_dialogues)


def _places(pair: Pair, found: Mapping[Place, object]) -> list[Place]:
    return sorted(place for place in found if place[0] in pair.systems)
