"""What an analysis says, as frozen dataclasses that `orjson` writes as they are. Scores and differences lie between -1
and 1 (interactions between -2 and 2); `None` is "cannot be said".
"""

from dataclasses import dataclass
from math import isfinite

from memdock_evaluator.statistics.plan import Contrast, Kind

DIGITS = 6


def tidy(value: float) -> float | None:
    """A figure to six significant digits, so that processors that differ in the last bit write the same; no NaN."""
    return float(f"{value:.{DIGITS}g}") if isfinite(value) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One unit (a system or a family) in one language and slice, by one measure ("accuracy" or "f1").

    `standard_error` is the paper's: sqrt(p (1 - p) / n) for a system's accuracy, else sd / sqrt(n). `low` to `high` is
    the headline interval, by dialogue. `asked` are the slice's questions in the language, `n` those with a score;
    `least` to `most` is where the score lies whatever the others would have been.
    """

    measure: str
    unit: str
    language: str
    axis: str
    value: str
    asked: int
    n: int
    n_dialogues: int
    score: float | None
    standard_error: float | None
    clustered_error: float | None
    low: float | None
    high: float | None
    least: float | None
    most: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one method makes of a difference: its interval, its two-sided p, and p after Holm inside the block."""

    low: float | None
    high: float | None
    p: float | None
    p_holm: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A contrast's result: `estimate` = `first` - `second`.

    `clustered` is the headline (CR1, t on G - 1), `dialogue_bootstrap` stands beside it, `question_bootstrap` is the
    paper's. `n` are the questions used, of `asked`; of two slices, both together. `least` to `most` bounds the estimate
    whatever the questions without a score would have been. `smallest_detectable` is a true difference that a test like
    the headline finds with the plan's power.
    """

    contrast: Contrast
    first: float | None
    second: float | None
    estimate: float | None
    asked: int
    n: int
    n_dialogues: int
    clustered_error: float | None
    clustered: Finding
    dialogue_bootstrap: Finding
    question_bootstrap: Finding
    least: float | None
    most: float | None
    smallest_detectable: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockResult:
    """A block's differences. `refused` says why its bootstraps have no `p_holm`, or is ""."""

    kind: Kind
    name: str
    caveat: str
    refused: str
    differences: tuple[Difference, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two systems in a slice: `estimate` is the first's accuracy minus the second's over the questions that both have
    scores on, `p` is adjusted over all pairs and slices of the language (max-T, step-down).
    """

    first: str
    second: str
    axis: str
    value: str
    n: int
    n_dialogues: int
    estimate: float
    clustered_error: float | None
    p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PairFamily:
    """All pairs of the families' systems in all slices of a language. `refused` says why there are none, or is "".
    `left_out` counts the pairs and slices with too few dialogues to test.
    """

    language: str
    refused: str
    left_out: int
    pairs: tuple[Pair, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """A system's place in its family by accuracy, 1 the best: anything from `best` to `worst`."""

    system: str
    accuracy: float | None
    best: int
    worst: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """The ranks of a family in a language, all intervals right at once with the plan's level. `refused` says why there
    are none, or is "". `smallest_detectable` is that of two systems, the median over the pairs.
    """

    family: str
    language: str
    refused: str
    smallest_detectable: float | None
    ranks: tuple[Rank, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """The best of a family in a slice as observed (F.11): several when they are equal. Picked for being best, so its
    score is too high a guess of its next one, and no test of anything.
    """

    family: str
    language: str
    axis: str
    value: str
    systems: tuple[str, ...]
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MarginResult:
    """A claim of the plan, tested: see `clustered.NonInferiority`. All `None` where there is no error to test with."""

    unit: str
    reference: str
    language: str
    margin: float
    n: int
    n_dialogues: int
    difference: float | None
    lower: float | None
    p: float | None
    not_inferior: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """All of it. `level` is that of the intervals, `alpha` and `power` those of tests and detectable differences."""

    seed: int
    resamples: int
    level: float
    alpha: float
    power: float
    n_questions: int
    n_dialogues: int
    scores: tuple[Score, ...]
    blocks: tuple[BlockResult, ...]
    pairs: tuple[PairFamily, ...]
    rankings: tuple[Ranking, ...]
    best: tuple[Best, ...]
    margins: tuple[MarginResult, ...]
