"""What a gate is asked and what it says."""

from dataclasses import dataclass, field
from enum import StrEnum


class GateError(ValueError):
    """Runs that cannot be held against each other; the message names what differs and says what to do."""


class Verdict(StrEnum):
    """Of one check, and of the whole gate."""

    PASSED = "passed"
    REGRESSION = "regression"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True, kw_only=True)
class Margins:
    """How much worse still does. Shares of 1: `accuracy`, `recall`, `coverage`, of pairs of users (`leaks`) and of
    dialogues (`residue`). `latency` and `cost` are parts of the baseline's: .25 allows a quarter more.

    `leaks` and `residue` bound what silence proves: none among 20 leaves 14 % possible.
    """

    accuracy: float = 0.03
    recall: float = 0.03
    coverage: float = 0.01
    latency: float = 0.25
    cost: float = 0.10
    leaks: float = 0.15
    residue: float = 0.15
    slices: float = 0.10


@dataclass(frozen=True, slots=True, kw_only=True)
class GateSettings:
    """`systems`: contestants of the baseline, empty for all its memory systems. `slices`: axes whose values are held
    for themselves. `without`: names of `MEASURES` that are not held. Fewer dialogues than `least_dialogues` prove
    nothing. `stage` is the one whose p95 is held.
    """

    margins: Margins = field(default_factory=Margins)
    systems: tuple[str, ...] = ()
    slices: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    least_dialogues: int = 20
    alpha: float = 0.05
    stage: str = "retrieve"


MEASURES = ("accuracy", "recall", "coverage", "latency", "cost", "leaks", "residue")


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One measure of one system against one baseline. `of` says of which questions or when: "temporality temporal",
    "by turn", "at rest"; "" for all.

    `first` (the baseline's), `second` and `by`, how much worse the second is, are shares, money a question or
    milliseconds; where `relative`, `by`, `bound` and `margin` are parts of the first. `bound`: `by` is at most that
    with confidence 1 - alpha. What could not be measured has none of these, and `why` says what is missing.
    """

    baseline: str
    system: str
    language: str
    measure: str
    of: str = ""
    verdict: Verdict
    first: float | None = None
    second: float | None = None
    by: float | None = None
    bound: float | None = None
    margin: float
    relative: bool = False
    n: int = 0
    clusters: int = 0
    why: str = ""

    @property
    def name(self) -> str:
        """ "rag-dense (ru): accuracy, scope multi"."""
        language = f" ({self.language})" if self.language else ""
        return f"{self.system}{language}: {self.measure}{f', {self.of}' if self.of else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """`plan`: what differs between the plans of each baseline and of the results, a line each; it stops nothing."""

    results: str
    baselines: tuple[str, ...]
    alpha: float
    plan: tuple[str, ...]
    checks: tuple[Check, ...]

    @property
    def verdict(self) -> Verdict:
        """One regression is one; else one inconclusive check leaves all of it so."""
        found = {check.verdict for check in self.checks}
        return next(
            (each for each in (Verdict.REGRESSION, Verdict.INCONCLUSIVE) if each in found),
            Verdict.PASSED if self.checks else Verdict.INCONCLUSIVE,
        )
