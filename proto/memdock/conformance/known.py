"""Known failures: what a system does not keep today and why, as a file that must stay true.

    [[known-failure]]
    id = "E4"            # of a case
    face = "http"        # left out: both
    reason = "the framework keeps no zone; see its issue 123"

A case that is listed must fail: once it passes, its entry must go.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memdock.conformance.case import Case

_FIELDS = ("id", "face", "reason")
FACES = ("grpc", "http")


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFailure:
    """One entry; `face` empty: both."""

    id: str
    reason: str
    face: str = ""


def read_known_failures(path: Path, cases: Sequence[Case]) -> list[KnownFailure]:
    """Reads the file. Raises `ValueError` that names the file and the entry."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise ValueError(f"{path} cannot be read: {problem.strerror}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
        raise ValueError(f"{path}: {problem}") from None
    entries = document.pop("known-failure", [])
    if document:
        raise ValueError(f"{path}: {next(iter(document))} is not known; the file holds [[known-failure]] alone")
    if not isinstance(entries, list):
        raise ValueError(f"{path}: write [[known-failure]], with two brackets")
    ids = {case.id for case in cases}
    return [_entry(f"{path}: known-failure {number}", entry, ids) for number, entry in enumerate(entries, 1)]


def _entry(where: str, entry: Mapping[str, Any], ids: set[str]) -> KnownFailure:
    for name, value in entry.items():
        if name not in _FIELDS:
            raise ValueError(f"{where}: {name} is not known; known are {', '.join(_FIELDS)}")
        if not isinstance(value, str) or not value.strip():
            raise ValueError(f"{where}: {name} must be text")
    for name in ("id", "reason"):
        if name not in entry:
            raise ValueError(f"{where}: {name} is missing")
    if entry["id"] not in ids:
        raise ValueError(f"{where}: there is no case {entry['id']}; --list tells them")
    if entry.get("face", "grpc") not in FACES:
        raise ValueError(f"{where}: face must be one of {', '.join(FACES)}")
    return KnownFailure(id=entry["id"], face=entry.get("face", ""), reason=entry["reason"])


def known_failure(known: Sequence[KnownFailure], case: Case, face: str) -> KnownFailure | None:
    """The entry of a case over a face."""
    return next((one for one in known if one.id == case.id and one.face in ("", face)), None)
