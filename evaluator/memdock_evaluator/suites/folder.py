"""The folder of a suite: a manifest as it begins, rows and a summary as it ends."""

import platform
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import orjson

from memdock_evaluator.results.finalise import holds_something_else
from memdock_evaluator.results.folder import Folder
from memdock_evaluator.results.manifest import Plan
from memdock_evaluator.run.settings import SettingsError

SCHEMA_VERSION = 1
MANIFEST, SUMMARY = "manifest.json", "summary.json"
_ID_BYTES = 5
_DISTS = ("memdock", "memdock-evaluator")


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteManifest:
    """`manifest.json`. `plan`: what a run's manifest has there; `options`: what the suite adds to it.

    `finished` is `None` while the suite runs, and stays so where it was ended by a signal. `spaces_not_reset`, as
    system/space, may still hold data.
    """

    schema_version: int = SCHEMA_VERSION
    suite: str
    run_id: str
    started: datetime
    finished: datetime | None = None
    command: tuple[str, ...]
    """As typed, without secrets."""
    versions: Mapping[str, str]
    plan: Plan
    options: Mapping[str, Any]
    spaces_not_reset: tuple[str, ...] = ()


def refuse_used(folder: Folder) -> None:
    """Raises `SettingsError` for a folder that holds anything: a suite is not gone on with."""
    if folder.read(MANIFEST) is not None:
        raise SettingsError(f"--out {folder.address} holds results already: give a new folder")
    if holds_something_else(folder):
        raise SettingsError(f"--out {folder.address} holds something else: give an empty folder or a new one")


def begin(
    folder: Folder, suite: str, plan: Plan, options: Mapping[str, Any], command: tuple[str, ...]
) -> SuiteManifest:
    """Writes the manifest of a suite that begins."""
    manifest = SuiteManifest(
        suite=suite,
        run_id=secrets.token_hex(_ID_BYTES),
        started=_now(),
        command=command,
        versions={"python": platform.python_version(), **{name: version(name) for name in _DISTS}},
        plan=plan,
        options=options,
    )
    folder.write(MANIFEST, to_json(asdict(manifest)))
    return manifest


def finish(folder: Folder, manifest: SuiteManifest, summary: Any, spaces_not_reset: Iterable[str]) -> None:
    """Writes the summary, then the manifest with its end."""
    folder.write(SUMMARY, to_json(summary))
    ended = replace(manifest, finished=_now(), spaces_not_reset=tuple(sorted(spaces_not_reset)))
    folder.write(MANIFEST, to_json(asdict(ended)))


def write_rows(folder: Folder, name: str, rows: Iterable[Any]) -> None:
    """Dataclasses as JSON lines, keys sorted, in the order given."""
    with folder.writing(name) as file:
        for row in rows:
            file.write(orjson.dumps(asdict(row), option=orjson.OPT_SORT_KEYS) + b"\n")


def to_json(content: Any) -> bytes:
    """Indented, keys sorted."""
    return orjson.dumps(content, option=orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2) + b"\n"


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)
