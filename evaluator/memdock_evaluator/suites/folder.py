"""The folder of a suite: a manifest as it begins, parts as it goes, rows and a summary as it ends."""

import platform
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import orjson
from pydantic import TypeAdapter, ValidationError

from memdock_evaluator.results.finalise import holds_something_else
from memdock_evaluator.results.folder import Folder
from memdock_evaluator.results.lines import line_of
from memdock_evaluator.results.plan import Plan, differences
from memdock_evaluator.run.settings import SettingsError

SCHEMA_VERSION = 1
MANIFEST, SUMMARY = "manifest.json", "summary.json"
_ID_BYTES = 5
_DISTS = ("memdock", "memdock-evaluator")


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteManifest:
    """`manifest.json`. `plan`: what a run's manifest has there; `options`: what the suite adds to it.

    `finished` is `None` while anything is left to do. `spaces_not_reset`, as system/space, may still hold data.
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


def refuse_something_else(folder: Folder) -> None:
    """Raises `SettingsError` for a folder of something else, before any system or model is asked."""
    if folder.read(MANIFEST) is None and holds_something_else(folder):
        raise SettingsError(f"--out {folder.address} holds something else: give an empty folder or a new one")


def earlier(folder: Folder, suite: str, plan: Plan, options: Mapping[str, Any]) -> SuiteManifest | None:
    """The manifest of the suite that the folder holds, if any.

    Raises `SettingsError` for a suite of another configuration, naming the fields that differ, for one of another
    version, and for a folder of something else.
    """
    refuse_something_else(folder)
    content = folder.read(MANIFEST)
    if content is None:
        return None
    return _same(folder, _read(content, f"{folder.address}/{MANIFEST}"), suite, plan, options)


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


def _read(content: bytes, place: str) -> SuiteManifest:
    try:
        told = orjson.loads(content)
        if told["schema_version"] == SCHEMA_VERSION:
            return _MANIFEST.validate_json(content, extra="forbid")
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise SettingsError(f"{place} is no suite's: {where}: {first['msg']}; give another --out") from error
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise SettingsError(f"{place} is no suite's: give another --out") from error
    raise SettingsError(
        f"{place} has schema version {told['schema_version']}, and this version knows {SCHEMA_VERSION}: "
        "go on with the version that began it, or give another --out"
    )


def _same(folder: Folder, manifest: SuiteManifest, suite: str, plan: Plan, options: Mapping[str, Any]) -> SuiteManifest:
    if manifest.suite != suite:
        raise SettingsError(f"--out {folder.address} holds results of {manifest.suite}: give another folder")
    found = differences(manifest.plan, plan)
    now = orjson.loads(to_json(options))
    found += [
        f"{name}: then {manifest.options.get(name)}, now {now.get(name)}"
        for name in sorted(manifest.options.keys() | now.keys())
        if manifest.options.get(name) != now.get(name)
    ]
    if found:
        listed = "\n  ".join(found)
        raise SettingsError(
            f"--out {folder.address} holds results already, of another configuration. It differs in\n  {listed}\n"
            "Give another --out, or go on with what that folder was begun with."
        )
    return manifest


def finish(
    folder: Folder, manifest: SuiteManifest, summary: Any, spaces_not_reset: Iterable[str], *, whole: bool
) -> None:
    """Writes the summary, then the manifest; with its end where the suite is `whole`, so that nothing is left to do."""
    folder.write(SUMMARY, to_json(summary))
    ended = replace(
        manifest,
        finished=(manifest.finished or _now()) if whole else None,
        spaces_not_reset=tuple(sorted(spaces_not_reset)),
    )
    folder.write(MANIFEST, to_json(asdict(ended)))


def write_rows(folder: Folder, name: str, rows: Iterable[Any]) -> None:
    """Dataclasses as JSON lines, keys sorted, in the order given."""
    with folder.writing(name) as file:
        for row in rows:
            file.write(line_of(row) + b"\n")


def to_json(content: Any) -> bytes:
    """Indented, keys sorted."""
    return orjson.dumps(content, option=orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2) + b"\n"


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


_MANIFEST = TypeAdapter(SuiteManifest)
