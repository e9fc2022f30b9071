"""Bootstraps by whole numbers: how often each question or dialogue was drawn, times the columns of sums.

Every product is of whole numbers that the floats hold exactly, so it is the same in any order of additions and on any
number of threads. All slices and contrasts share their resamples.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memdock_evaluator.statistics.arrays import Floats, Ints
from memdock_evaluator.statistics.sums import Sides
from memdock_evaluator.words.sentence import said

LEAST_DIALOGUES = 20
"""Below this many dialogues a resampling test rejects far too often, or cannot reject at all: no p-value."""

TOO_FEW_DIALOGUES = said("fewer than {least} dialogues: resampling them tests nothing", least=LEAST_DIALOGUES)

CHUNK = 500
"""Resamples worked on at a time: few enough for the processor's cache, many enough for its threads to be worth waking.
It is part of what a seed means: another chunk draws other resamples."""

TIE = 1e-12
"""Two figures nearer than this are equal: divisions round, and a tie counts against the claim."""


def exact(values: Ints, things: int) -> NDArray[Any]:
    """`values` as the smallest floats in which all their sums over `things` draws are exact: 24 bits, or 53."""
    largest = int(np.abs(values).max(initial=0)) * things
    if largest >= 2**53:
        raise OverflowError(f"sums of up to {largest} are not exact in any float: take a coarser unit of points")
    return values.astype(np.float32 if largest < 2**24 else np.float64)


def draws(rng: np.random.Generator, things: int, resamples: int) -> Iterator[Ints]:
    """How often each of `things` was drawn, with replacement, `things` draws a resample: chunks of things x resamples.

    The bootstrap over questions (the paper's, "bootstrap resampling over questions") or over dialogues (Davison and
    Hinkley 1997, section 3.8; Field and Welsh 2007), depending on the things.
    """
    for start in range(0, resamples, CHUNK):
        rows = min(CHUNK, resamples - start)
        drawn = rng.integers(0, things, size=(rows, things), dtype=np.int32)
        drawn += np.arange(rows, dtype=np.int32)[:, None] * things
        yield np.bincount(drawn.ravel(), minlength=rows * things).reshape(rows, things).T


def signs(rng: np.random.Generator, things: int, resamples: int) -> Iterator[NDArray[np.int8]]:
    """-1 or 1 for each of `things`, evenly and independently: chunks of things x resamples."""
    for start in range(0, resamples, CHUNK):
        yield 2 * rng.integers(0, 2, size=(things, min(CHUNK, resamples - start)), dtype=np.int8) - 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Findings:
    """Of K differences: the ends of an interval, and p; NaN where they cannot be said."""

    low: Floats
    high: Floats
    p: Floats


def bootstrap(
    columns: Ints, first: Sides, second: Sides, *, rng: np.random.Generator, resamples: int, level: float
) -> Findings:
    """Resample the K differences `first` - `second`; `columns` is columns x questions or x dialogues.

    Percentile intervals (Davison and Hinkley 1997, section 5.3.1) and `bootstrap_p`. NaN where a resample left a side
    without questions.
    """
    whole = exact(columns, columns.shape[1])
    observed = _difference(columns.sum(axis=1, keepdims=True), first, second)
    threshold = np.abs(observed) - TIE
    values = np.empty((len(first.points), resamples))
    beyond = np.zeros(len(first.points), dtype=np.int64)
    done = 0
    for counts in draws(rng, columns.shape[1], resamples):
        drawn = _difference((whole @ counts.astype(whole.dtype)).astype(np.float64), first, second)
        values[:, done : done + counts.shape[1]] = drawn
        done += counts.shape[1]
        drawn -= observed
        beyond += np.count_nonzero(np.abs(drawn, out=drawn) >= threshold, axis=1)
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2], axis=1, overwrite_input=True)
    known = np.isfinite(low) & np.isfinite(high)
    return Findings(low=low, high=high, p=np.where(known, bootstrap_p(beyond, resamples), np.nan))


def _difference(sums: NDArray[Any], first: Sides, second: Sides) -> Floats:
    """From the columns' sums, columns x resamples, to K x resamples."""
    with np.errstate(invalid="ignore", divide="ignore"):
        one, other = (sums[side.points] / (sums[side.counts] * side.units[:, None]) for side in (first, second))
    return np.subtract(one, other, out=one)


def bootstrap_p(beyond: Ints, resamples: int) -> Floats:
    """(1 + b) / (B + 1): b of B resamples lie at least as far from their centre as the observed figure from 0.

    Davison and Hinkley 1997, section 4.2; never 0 (Phipson and Smyth 2010, "Permutation p-values should never be
    zero").
    """
    return np.asarray((1 + beyond) / (resamples + 1), dtype=np.float64)
