"""The order of systems in a table: memory systems before baselines, by accuracy only where that may rank them."""

from memdock_evaluator.baselines import PREFIX
from memdock_evaluator.summary.shape import LanguageSummary, Summary


def languages(summary: Summary) -> list[str]:
    """The languages of a run, by code."""
    return sorted(summary["ranked"])


def display_name(system: str) -> str:
    """A system's name in a table, which marks baselines in its own way."""
    return system.removeprefix(PREFIX)


def systems_in_order(summary: Summary, language: str) -> list[tuple[str, LanguageSummary]]:
    """The systems that ran in a language with their figures; where they are not ranked, by name."""
    found = [
        (name, system["languages"][language])
        for name, system in summary["systems"].items()
        if language in system["languages"]
    ]

    def place(entry: tuple[str, LanguageSummary]) -> tuple[bool, float, str]:
        name, figures = entry
        accuracy = figures["judge_accuracy"] if summary["ranked"][language] else None
        return summary["systems"][name]["baseline"], -(accuracy or 0.0), name

    return sorted(found, key=place)
