"""Small files at the results address that several processes write: what replicas know of each other is all in them.

A mark is created by one process alone, however many try at once. Nothing is cached: another replica may have written
a moment ago.
"""

import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, TypeVar

import fsspec
from fsspec.implementations.local import LocalFileSystem

from memdock.log import log_fault
from memdock_evaluator.service.faults import ResultsUnreachableError, ServiceConfigError

ResultT = TypeVar("ResultT")

_UNFINISHED = ".unfinished"


class Marks:
    """Files by a relative name with "/" between. Methods wait for the store, and raise `ResultsUnreachableError`."""

    def __init__(self, address: str) -> None:
        """Raises `ServiceConfigError` for an address of no known kind."""
        try:
            self._files, root = fsspec.core.url_to_fs(address)
        except (ValueError, ImportError, OSError) as error:
            raise ServiceConfigError(f"--results {address}: {error}") from error
        self._root = root.rstrip("/")
        self._local = isinstance(self._files, LocalFileSystem)

    def read(self, name: str) -> bytes | None:
        """A file's bytes; `None` where there is none."""
        return self._done(lambda: bytes(self._files.cat_file(self._path(name))))

    def names(self, folder: str) -> list[str]:
        """The names of the files right inside, sorted."""
        return self._listed(folder, "file")

    def folders(self, folder: str) -> list[str]:
        """The names of the folders right inside, sorted."""
        return self._listed(folder, "directory")

    def open(self, name: str) -> IO[bytes] | None:
        """A file to be read piece by piece; `None` where there is none."""
        return self._done(lambda: self._files.open(self._path(name), "rb"))

    def create(self, name: str, content: bytes) -> bool:
        """Writes the file unless there is one; whether it is ours. `content` must be like no other writer's."""
        try:
            self._done(lambda: self._create(name, content))
        except FileExistsError:
            # An upload may have come through though its answer did not: then its next try finds itself.
            return self.read(name) == content
        return True

    def write(self, name: str, content: bytes) -> None:
        """Writes the file whole, in place of one that is there. For files that one process alone writes."""
        self._done(lambda: self._write(name, content))

    def delete(self, name: str) -> None:
        """Takes a file away, or a folder with all that is in it; there may be none."""
        self._done(lambda: self._files.rm(self._path(name), recursive=True))

    def _create(self, name: str, content: bytes) -> None:
        if not self._local:
            self._files.pipe_file(self._path(name), content, mode="create")
            return
        unfinished = self._whole(name, content)
        try:
            os.link(unfinished, self._path(name))
        finally:
            unfinished.unlink()

    def _write(self, name: str, content: bytes) -> None:
        if self._local:
            self._whole(name, content).replace(self._path(name))
        else:
            self._files.pipe_file(self._path(name), content)

    def _whole(self, name: str, content: bytes) -> Path:
        """A file beside the one that is meant, on the disk."""
        path = Path(self._path(name))
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}{_UNFINISHED}")
        with unfinished.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        return unfinished

    def _listed(self, folder: str, kind: str) -> list[str]:
        # An object store's listing is cached for the life of the process unless one asks for it anew.
        entries: Any = self._done(lambda: self._files.ls(self._path(folder), detail=True, refresh=True)) or ()
        names = (str(entry["name"]).rstrip("/").rsplit("/", 1)[-1] for entry in entries if entry["type"] == kind)
        return sorted(name for name in names if name and not name.endswith(_UNFINISHED))

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root

    def _done(self, work: Callable[[], ResultT]) -> ResultT | None:
        try:
            return work()
        except FileNotFoundError:
            return None
        except FileExistsError:
            raise
        except Exception as fault:  # each store has classes of errors of its own
            log_fault("results_unreachable", fault)
            raise ResultsUnreachableError from fault
