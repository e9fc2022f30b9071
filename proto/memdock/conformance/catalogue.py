"""All cases, choosing among them, and the table of them for people."""

from collections.abc import Sequence
from fnmatch import fnmatchcase

from memdock.conformance.case import REGISTERED, Case, Level
from memdock.conformance.cases import (
    barrier,
    errors,
    forget,
    gateway,
    gateway_keys,
    isolation,
    operation,
    order_and_time,
    reset,
    retrieve,
    retry,
)

_FILES = (barrier, retry, order_and_time, retrieve, forget, reset, isolation, errors, operation, gateway_keys, gateway)
_ORDER = [file.__name__ for file in _FILES]
CASES: tuple[Case, ...] = tuple(sorted(REGISTERED, key=lambda case: _ORDER.index(case.check.__module__)))
"""All of them, in the order of the list in the README."""

GROUPS = {
    "T": "when a write can be found",
    "I": "the same turn again",
    "O": "order",
    "E": "when it was said",
    "R": "reading",
    "F": "forgetting",
    "X": "Reset",
    "S": "isolation",
    "P": "errors, limits, deadlines, health, cost",
    "G": "gateways",
}


def choose(only: Sequence[str] = (), *, core: bool = False) -> list[Case]:
    """The cases that fit one of the patterns (`T1` takes `T1.models` too, `R*` all of R), or all.

    `core`: those alone that every server must pass and that need nothing beside an address. Raises `ValueError` for a
    pattern that fits nothing.
    """
    for pattern in only:
        if not any(_fits(case, pattern) for case in CASES):
            raise ValueError(f"--only {pattern}: there is no such case; --list tells them")
    chosen = [case for case in CASES if not only or any(_fits(case, pattern) for pattern in only)]
    return [case for case in chosen if not core or (case.level is Level.MUST and not case.needs)]


def _fits(case: Case, pattern: str) -> bool:
    return fnmatchcase(case.id, pattern) or fnmatchcase(case.id.partition(".")[0], pattern)


def markdown() -> str:
    """The table for the README, a group at a time."""
    lines = []
    for letter, about in GROUPS.items():
        lines += [f"**{letter}: {about}**", "", "| id | level | what it proves | needs |", "|---|---|---|---|"]
        for case in CASES:
            if case.letter == letter:
                wants = [*(f"`{feature}`" for feature in case.features), *case.needs]
                lines.append(f"| {case.id} | {case.level} | {_escaped(case.proves)} | {', '.join(wants)} |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _escaped(text: str) -> str:
    return text.replace("|", r"\|")
