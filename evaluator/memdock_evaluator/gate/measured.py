"""A run's rows, timings and bill as values by dialogue: what the checks compare."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import TypeAlias

from memdock_evaluator.cost.bill import JUDGE, used
from memdock_evaluator.cost.prices import money
from memdock_evaluator.results.finalise import with_stores
from memdock_evaluator.results.folder import Folder
from memdock_evaluator.results.manifest import Manifest, Price
from memdock_evaluator.results.parts import Parts, Unit
from memdock_evaluator.results.records import ROWS
from memdock_evaluator.results.rows import Row
from memdock_evaluator.summary.figures import score
from memdock_evaluator.summary.source import RunFiles, read_run

Place: TypeAlias = tuple[str, str]
"""A contestant and a language."""
Question: TypeAlias = tuple[str, str]
"""A dialogue and a question of it."""
Values: TypeAlias = Mapping[Question, float]

VALUES: Mapping[str, Callable[[Row], float | None]] = {
    "accuracy": score,
    "recall": lambda row: row.recall_sessions,
    "coverage": lambda row: float(score(row) is not None),
}
"""Scores of a row, more being better; `None`: the row does not count for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A run that was read."""

    folder: Folder
    run: RunFiles

    @property
    def manifest(self) -> Manifest:
        """That of the run."""
        return self.run.manifest

    @property
    def rows(self) -> Mapping[Place, list[Row]]:
        """By contestant and language."""
        found: defaultdict[Place, list[Row]] = defaultdict(list)
        for row in self.run.rows:
            found[row.system, row.language].append(row)
        return found

    def times(self, stage: str) -> Mapping[Place, Mapping[str, list[float]]]:
        """Milliseconds of every call at a stage, by dialogue; those of a shared system stand with each contestant."""
        names = {system: [each.name for each in found] for system, found in self.manifest.plan.contestants.items()}
        found: defaultdict[Place, defaultdict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        for timing in self.run.timings:
            if timing.stage == stage and not timing.inner:
                for name in names.get(timing.system, [timing.system]):
                    found[name, timing.language][timing.dialogue_id].append(timing.ms)
        return found

    def without_parts(self) -> bool:
        """Whether the parts, of which a dialogue's bill is made, are not all there."""
        return not all(Parts(self.folder, unit).has(ROWS) for unit in set(map(Unit.of, self.run.rows)))

    def costs(self, prices: Mapping[str, Price]) -> tuple[Mapping[Place, Mapping[str, float]], frozenset[str]]:
        """Money that a dialogue's answers and the memory system's own calls took, and the models without a price.

        By contestant; what several share (storing a dialogue) stands under the memory system's own name. Judges are
        left out, for they are no part of a system. A reply from a cache counts as if it had been asked for.
        """
        found: defaultdict[Place, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
        unpriced = set[str]()
        plan = self.manifest.plan
        for unit in with_stores(plan, dict.fromkeys(map(Unit.of, self.run.rows), 1)):
            here = found[unit.system, unit.language]
            here[unit.dialogue_id] += 0.0
            for _, purpose, usage in used(plan, Parts(self.folder, unit)):
                if purpose.startswith(JUDGE):
                    continue
                if usage.model not in prices:
                    unpriced.add(usage.model)
                    continue
                here[unit.dialogue_id] += money(prices[usage.model], usage.input_tokens, usage.output_tokens)
        return found, frozenset(unpriced)


def measured(address: str) -> Measured:
    """Raises `RunFilesError`, `ManifestError` or `FolderError`."""
    folder = Folder(address)
    return Measured(folder=folder, run=read_run(folder))


def values(rows: Iterable[Row], of: Callable[[Row], float | None]) -> Values:
    """Question -> the mean over its repeats, of those that count."""
    found: defaultdict[Question, list[float]] = defaultdict(list)
    for row in rows:
        if (known := of(row)) is not None:
            found[row.dialogue_id, row.question_id].append(known)
    return {question: fmean(repeats) for question, repeats in found.items()}


def by_dialogue(found: Values, among: Iterable[Question]) -> Mapping[str, list[float]]:
    """The values of some questions, dialogue by dialogue."""
    clusters: defaultdict[str, list[float]] = defaultdict(list)
    for question in sorted(among):
        clusters[question[0]].append(found[question])
    return clusters


def slices(rows: Iterable[Row], axes: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The values that some rows have on these axes."""
    rows = list(rows)
    for axis in axes:
        yield from sorted({(axis, row.axes[axis]) for row in rows if axis in row.axes})
