"""The order of systems in a table: memory systems before baselines, by accuracy only where that may rank them."""

from collections.abc import Iterator, Mapping

from memdock_evaluator.baselines import PREFIX
from memdock_evaluator.results.manifest import Manifest
from memdock_evaluator.results.plan import Track
from memdock_evaluator.summary.shape import LanguageSummary, Summary, SystemSummary

RANKING_COVERAGE = 0.95
"""Below this coverage of any memory system, the systems of a language are not put in order."""

TRACKS = (Track.CONTROLLED.value, Track.VENDOR.value, "")
"""In the order of tables; "": none was stated."""

Systems = Mapping[str, SystemSummary]


def offline(manifest: Manifest) -> list[str]:
    """Which of "answerer" and "judge" is one of the rules that stand in for a model."""
    roles = {"answerer": manifest.plan.answerer, "judge": manifest.plan.judge}
    return [role for role, model in roles.items() if model.kind != "openai"]


def rankable(systems: Systems, manifest: Manifest) -> dict[str, bool]:
    """By language, whether accuracy may put systems in order: real models, and enough coverage of every system."""
    return {
        language: not offline(manifest)
        and all(
            found["coverage"] >= RANKING_COVERAGE
            for name, its, found in each(systems)
            if its == language and not systems[name]["baseline"]
        )
        for language in languages_of(systems)
    }


def languages_of(systems: Systems) -> list[str]:
    """The languages of a run, by code."""
    return sorted({language for _, language, _ in each(systems)})


def each(systems: Systems) -> Iterator[tuple[str, str, LanguageSummary]]:
    """Every system in every language it ran in: its name, the language, the figures."""
    for name, system in systems.items():
        for language, found in system["languages"].items():
            yield name, language, found


def display_name(system: str) -> str:
    """A system's name in a table, which marks baselines in its own way."""
    return system.removeprefix(PREFIX) if system.startswith(PREFIX) else system


def tracks_of(summary: Summary, language: str) -> list[str]:
    """The tracks of a language's memory systems, in the order of `TRACKS`."""
    found = {
        system["track"]
        for system in summary["systems"].values()
        if language in system["languages"] and not system["baseline"]
    }
    return [track for track in TRACKS if track in found]


def block_of(summary: Summary, system: str) -> tuple[bool, str, int | None]:
    """Whether a baseline, the track and the k, `None` where a vendor set it: systems of one block stand together."""
    found = summary["systems"][system]
    return found["baseline"], found["track"], None if found["track"] == Track.VENDOR else found["k"]


def ks_of(summary: Summary, language: str) -> list[int]:
    """The k of a language's blocks, from the smallest."""
    blocks = {block_of(summary, name) for name, its, _ in each(summary["systems"]) if its == language}
    return sorted({k for _, _, k in blocks if k is not None})


def systems_in_order(summary: Summary, language: str) -> list[tuple[str, LanguageSummary]]:
    """The systems that ran in a language with their figures, baselines last; where they are not ranked, by name.

    Those that may be ranked together stand together: of one track, and of one k unless vendors set it.
    """
    found = [
        (name, system["languages"][language])
        for name, system in summary["systems"].items()
        if language in system["languages"]
    ]

    def place(entry: tuple[str, LanguageSummary]) -> tuple[bool, int, int, float, str]:
        name, figures = entry
        baseline, track, k = block_of(summary, name)
        accuracy = figures["judge_accuracy"] if summary["ranked"][language] else None
        return baseline, TRACKS.index(track), k or 0, -(accuracy or 0.0), name

    return sorted(found, key=place)
