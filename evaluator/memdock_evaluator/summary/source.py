"""The three files of a run that a summary and a report are made of."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from pydantic import ValidationError

from memdock_evaluator.attribution import RowKey
from memdock_evaluator.results.finalise import MANIFEST, OUTCOMES, TIMINGS
from memdock_evaluator.results.folder import Folder
from memdock_evaluator.results.labels import LABELS, LabelsFile
from memdock_evaluator.results.manifest import Manifest
from memdock_evaluator.results.rows import Row, RowError, Timing

Found = TypeVar("Found", Row, Timing)


class RunFilesError(ValueError):
    """A folder that holds no readable run; the message names the file, the line and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFiles:
    """All of a run's rows and timings, in memory."""

    rows: tuple[Row, ...]
    timings: tuple[Timing, ...]
    manifest: Manifest
    labelled_right: frozenset[RowKey] = frozenset()
    """Keys of the rows whose answer people call right."""


def read_run(folder: Folder) -> RunFiles:
    """Read a run's files; raises `RunFilesError`, and `ManifestError` for a manifest of another version."""
    manifest = Manifest.from_json(_content(folder, MANIFEST), place=f"{folder.address}/{MANIFEST}")
    rows = _lines(folder, OUTCOMES, Row.from_json)
    if not rows:
        raise RunFilesError(f"{folder.address}/{OUTCOMES} is empty: {_REMEDY}")
    return RunFiles(
        rows=rows,
        timings=_lines(folder, TIMINGS, Timing.from_json),
        manifest=manifest,
        labelled_right=_labelled_right(folder, manifest),
    )


def _labelled_right(folder: Folder, manifest: Manifest) -> frozenset[RowKey]:
    content = folder.read(LABELS)
    if content is None:
        return frozenset()
    try:
        labels = LabelsFile.model_validate_json(content)
    except ValidationError as error:
        raise RunFilesError(f"{folder.address}/{LABELS} cannot be read: {_LABEL_AGAIN}") from error
    if labels.run_id != manifest.run_id:
        raise RunFilesError(f"{folder.address}/{LABELS} is of another run: {_LABEL_AGAIN}")
    return frozenset(each.key for each in labels.items if each.right)


def _lines(folder: Folder, name: str, read: Callable[[bytes], Found]) -> tuple[Found, ...]:
    found = []
    for number, line in enumerate(_content(folder, name).splitlines(), start=1):
        try:
            found.append(read(line))
        except RowError as error:
            raise RunFilesError(f"{folder.address}/{name}, line {number}: {error}") from error
    return tuple(found)


def _content(folder: Folder, name: str) -> bytes:
    content = folder.read(name)
    if content is None:
        raise RunFilesError(f"{folder.address}/{name} is not there: {_REMEDY}")
    return content


_LABEL_AGAIN = "delete it, and import the sheets again (memdock-eval label import)"
_REMEDY = "finish the run first (memdock-eval run)"
