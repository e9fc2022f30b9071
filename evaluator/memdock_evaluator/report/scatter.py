"""Accuracy against context, a drawing a language: where its points, lines, ticks and labels stand, in pixels."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from math import ceil, floor, hypot, log10

from memdock_evaluator.baselines import PREFIX
from memdock_evaluator.report.labels import Anchor, Box, Label, placed
from memdock_evaluator.summary.context import ContextPoint, context_points
from memdock_evaluator.summary.ranking import display_name
from memdock_evaluator.summary.shape import Summary

WIDTH, HEIGHT = 780.0, 420.0
LEFT, RIGHT, TOP, BOTTOM = 46.0, 764.0, 14.0, 366.0
"""The frame inside which the axes run."""

SHAPES = {f"{PREFIX}full-context": "square", f"{PREFIX}oracle": "diamond"}
_POINT = 6.0
_STEP, _BETWEEN = 0.1, 6.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A point with its interval and its label; `shape` is "circle" of a memory system, "triangle" of a baseline that
    has no shape of its own.
    """

    point: ContextPoint
    shape: str
    x: float
    y: float
    low_y: float | None
    high_y: float | None
    label: Label


@dataclass(frozen=True, slots=True, kw_only=True)
class Scatter:
    """One language. `lines` join the points of a system at several k; `left_out` gave no context, which has no place
    on a log axis.
    """

    language: str
    marks: tuple[Mark, ...]
    lines: tuple[tuple[tuple[float, float], ...], ...]
    x_ticks: tuple[tuple[int, float], ...]
    y_ticks: tuple[tuple[float, float], ...]
    left_out: tuple[str, ...]


def scatters(summary: Summary) -> list[Scatter]:
    """A drawing for each language in which any system has context and accuracy."""
    of_language = groupby(context_points(summary), key=lambda point: point.language)
    return [found for language, points in of_language if (found := _scatter(language, list(points)))]


def _scatter(language: str, all_points: Sequence[ContextPoint]) -> Scatter | None:
    points = [point for point in all_points if point.tokens >= 1]
    if not points:
        return None
    across, up = _across([point.tokens for point in points]), _up(points)
    spots = [(across.place(point.tokens), up.place(point.accuracy)) for point in points]
    reaches = [
        (None, None) if point.low is None or point.high is None else (up.place(point.low), up.place(point.high))
        for point in points
    ]
    taken = [Box.around(*spot, _POINT) for spot in spots]
    taken += [
        Box(left=x - 2, right=x + 2, top=high, bottom=low)
        for (x, _), (low, high) in zip(spots, reaches, strict=True)
        if low is not None and high is not None
    ]
    ways = [
        tuple(spot for _, spot in found)
        for _, found in groupby(zip(points, spots, strict=True), key=lambda each: each[0].series)
    ]
    lines = tuple(way for way in ways if len(way) > 1)
    taken += [Box.around(*spot, 2) for line in lines for spot in _along(line)]
    texts = list(_texts(points))
    frame = Box(left=LEFT, right=RIGHT, top=TOP, bottom=BOTTOM)
    labels = placed([Anchor(text=text, x=x, y=y) for text, (x, y) in zip(texts, spots, strict=True)], taken, frame)
    marks = tuple(
        Mark(
            point=point,
            shape=SHAPES.get(point.system, "triangle" if point.baseline else "circle"),
            x=x,
            y=y,
            low_y=low,
            high_y=high,
            label=label,
        )
        for point, (x, y), (low, high), label in zip(points, spots, reaches, labels, strict=True)
    )
    return Scatter(
        language=language,
        marks=marks,
        lines=lines,
        x_ticks=tuple((int(tick), across.place(tick)) for tick in across.ticks),
        y_ticks=tuple((tick, up.place(tick)) for tick in up.ticks),
        left_out=tuple(display_name(point.system) for point in all_points if point.tokens < 1),
    )


def _along(line: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """Spots on a line, a few pixels from each other."""
    for (x, y), (to_x, to_y) in pairwise(line):
        steps = max(1, round(hypot(to_x - x, to_y - y) / _BETWEEN))
        yield from ((x + (to_x - x) * step / steps, y + (to_y - y) * step / steps) for step in range(1, steps))


def _texts(points: Sequence[ContextPoint]) -> Iterator[str]:
    """A system's name, with its k where it has several."""
    for point in points:
        yield display_name(point.series) + ("" if point.k is None else f"@{point.k}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Axis:
    """From a value to its pixel; `log` of the value where the axis is one of logarithms."""

    low: float
    high: float
    start: float
    end: float
    log: bool
    ticks: tuple[float, ...]

    def place(self, value: float) -> float:
        low, high, here = (log10(each) if self.log else each for each in (self.low, self.high, value))
        share = max(0.0, min(1.0, (here - low) / (high - low)))
        return round(self.start + share * (self.end - self.start), 1)


def _across(tokens: Iterable[float]) -> _Axis:
    """A log axis from a nice number to a nice number (1, 2 or 5 times a power of ten), at least a decade long."""
    tokens = list(tokens)
    exponents = range(floor(log10(min(tokens))) - 1, ceil(log10(max(tokens))) + 2)
    nice = [factor * 10**exponent for exponent in exponents for factor in (1, 2, 5) if factor * 10**exponent >= 1]
    low = max((each for each in nice if each <= min(tokens) * 0.95), default=nice[0])
    high = max(min(each for each in nice if each >= max(tokens) * 1.05), 10 * low)
    ticks = tuple(each for each in nice if low <= each <= high)
    return _Axis(low=low, high=high, start=LEFT + 10, end=RIGHT - 10, log=True, ticks=ticks)


def _up(points: Iterable[ContextPoint]) -> _Axis:
    """Tenths below and above every interval."""
    ends = [end for point in points for end in (point.low, point.accuracy, point.high) if end is not None]
    low = max(0, floor(round(min(ends) / _STEP, 6)))
    high = min(10, ceil(round(max(ends) / _STEP, 6)))
    low = min(low, max(0, high - 2))
    high = max(high, low + 2)
    ticks = tuple(round(step * _STEP, 6) for step in range(low, high + 1))
    return _Axis(low=ticks[0], high=ticks[-1], start=BOTTOM, end=TOP, log=False, ticks=ticks)
