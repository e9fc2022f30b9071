"""Accuracy against the size of the context that a system gives the answer model."""

from collections.abc import Iterator
from dataclasses import dataclass

from memdock_evaluator.summary.ranking import languages_of, systems_in_order
from memdock_evaluator.summary.shape import Summary


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPoint:
    """A system in a language: `tokens` of context a question (mean, a quarter of the bytes of UTF-8), accuracy and its
    interval by dialogue, shares of 1. `series`: the system's name without its k, which all its points share.
    """

    system: str
    series: str
    k: int | None
    language: str
    baseline: bool
    tokens: float
    accuracy: float
    low: float | None
    high: float | None


def context_points(summary: Summary) -> list[ContextPoint]:
    """Language by language, in the order of the tables; those of several k of one system by k, one behind the other.

    A system without an accuracy has no point.
    """
    return list(_points(summary))


def _points(summary: Summary) -> Iterator[ContextPoint]:
    for language in languages_of(summary["systems"]):
        found = [point for name, _ in systems_in_order(summary, language) if (point := _point(summary, name, language))]
        places = {series: place for place, series in reversed([*enumerate(point.series for point in found)])}
        yield from sorted(found, key=lambda point: (places[point.series], point.k or 0))


def _point(summary: Summary, name: str, language: str) -> ContextPoint | None:
    figures = summary["systems"][name]["languages"][language]
    if figures["judge_accuracy"] is None:
        return None
    interval = figures["judge_accuracy_interval"]
    return ContextPoint(
        system=name,
        series=summary["systems"][name]["system"] or name,
        k=summary["systems"][name]["k"],
        language=language,
        baseline=summary["systems"][name]["baseline"],
        tokens=figures["tokens"]["context_mean"],
        accuracy=figures["judge_accuracy"],
        low=interval["low"] if interval else None,
        high=interval["high"] if interval else None,
    )
