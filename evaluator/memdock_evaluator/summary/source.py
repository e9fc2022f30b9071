"""The files of a run that a summary and a report are made of."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from pydantic import TypeAdapter, ValidationError

from memdock_evaluator.results.finalise import MANIFEST, OUTCOMES, TIMINGS
from memdock_evaluator.results.folder import Folder
from memdock_evaluator.results.labels import LABELS, SCHEMA_VERSION
from memdock_evaluator.results.manifest import Manifest
from memdock_evaluator.results.rows import Row, RowError, Timing
from memdock_evaluator.words import counted

if TYPE_CHECKING:  # they load numpy, which only what follows a run that was read should wait for
    from memdock_evaluator.judging.audit import Audit
    from memdock_evaluator.judging.people import PeoplesView

AUDIT = "audit.json"
"""What `memdock-eval judge audit --json` printed of the run's judges, put into the run's folder."""

Found = TypeVar("Found", Row, Timing)


class RunFilesError(ValueError):
    """A folder that holds no readable run; the message names the file, the line and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFiles:
    """All of a run's rows and timings, in memory, and what is known of its judges where the folder has it."""

    rows: tuple[Row, ...]
    timings: tuple[Timing, ...]
    manifest: Manifest
    people: "PeoplesView | None" = None
    audit: "Audit | None" = None


def read_run(folder: Folder) -> RunFiles:
    """Read a run's files; raises `RunFilesError`, and `ManifestError` for a manifest of another version."""
    manifest = Manifest.from_json(_content(folder, MANIFEST), place=f"{folder.address}/{MANIFEST}")
    rows = _lines(folder, OUTCOMES, Row.from_json)
    if not rows:
        raise RunFilesError(f"{folder.address}/{OUTCOMES} is empty: {_REMEDY}")
    _check_count(folder, rows, manifest)
    return RunFiles(
        rows=rows,
        timings=_lines(folder, TIMINGS, Timing.from_json),
        manifest=manifest,
        people=_people(folder, manifest),
        audit=_audit(folder),
    )


def _check_count(folder: Folder, rows: Sequence[Row], manifest: Manifest) -> None:
    """A file that was cut between two lines has whole rows, and too few; one that was written twice has too many."""
    expected = sum(totals.coverage.expected for totals in manifest.totals.values())
    if len(rows) < expected:
        raise RunFilesError(
            f"{folder.address}/{OUTCOMES} has {counted(len(rows), 'row')}, and {MANIFEST} counts {expected}: "
            f"{_MADE_AGAIN}"
        )
    before = set()
    for number, row in enumerate(rows, start=1):
        if row.key in before:
            told = ", ".join(map(str, row.key))
            raise RunFilesError(
                f"{folder.address}/{OUTCOMES}, line {number}: the row ({told}) stands there twice: {_MADE_AGAIN}"
            )
        before.add(row.key)


def _people(folder: Folder, manifest: Manifest) -> "PeoplesView | None":
    content = folder.read(LABELS)
    if content is None:
        return None
    from memdock_evaluator.judging.people import PeoplesView

    try:
        found = TypeAdapter(PeoplesView).validate_json(content, extra="forbid")
    except ValidationError as error:
        raise RunFilesError(f"{folder.address}/{LABELS} cannot be read: {_LABEL_AGAIN}") from error
    if found.schema_version != SCHEMA_VERSION:
        raise RunFilesError(f"{folder.address}/{LABELS} was made by another version: {_LABEL_AGAIN}")
    if found.run_id != manifest.run_id:
        raise RunFilesError(f"{folder.address}/{LABELS} is of another run: {_LABEL_AGAIN}")
    return found


def _audit(folder: Folder) -> "Audit | None":
    content = folder.read(AUDIT)
    if content is None:
        return None
    from memdock_evaluator.judging.audit import Audit

    try:
        return TypeAdapter(Audit).validate_json(content, extra="forbid")
    except ValidationError as error:
        raise RunFilesError(f"{folder.address}/{AUDIT} cannot be read: {_AUDIT_AGAIN}") from error


def _lines(folder: Folder, name: str, read: Callable[[bytes], Found]) -> tuple[Found, ...]:
    found = []
    with folder.lines(name) as lines:
        if lines is None:
            raise RunFilesError(f"{folder.address}/{name} is not there: {_REMEDY}")
        for number, line in enumerate(lines, start=1):
            try:
                found.append(read(line))
            except RowError as error:
                what = _MADE_AGAIN if error.damaged else _OTHER_VERSION
                raise RunFilesError(f"{folder.address}/{name}, line {number}: {error}; {what}") from error
    return tuple(found)


def _content(folder: Folder, name: str) -> bytes:
    content = folder.read(name)
    if content is None:
        raise RunFilesError(f"{folder.address}/{name} is not there: {_REMEDY}")
    return content


_LABEL_AGAIN = "delete it, and import the sheets again (memdock-eval label import)"
_AUDIT_AGAIN = "delete it, or write it again (memdock-eval judge audit --json)"
_MADE_AGAIN = "the file is damaged, and the command that made the run makes it again from the parts"
_OTHER_VERSION = "another version of memdock-eval wrote it: use the one that manifest.json names"
_REMEDY = "finish the run first (memdock-eval run)"
