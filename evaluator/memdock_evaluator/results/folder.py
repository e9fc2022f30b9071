"""The folder of a run, on a disk or at any other address that fsspec knows: a file is there whole or not at all."""

import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import fsspec
from fsspec.implementations.local import LocalFileSystem

from memdock_evaluator.results.stores import Disk, Elsewhere, Store, StoreError

_OPTIONS = {"s3": {"max_concurrency": 1}, "s3a": {"max_concurrency": 1}}
"""By protocol. The files are small, and an S3 that reads in several strands asks for each one's size first."""


class FolderError(Exception):
    """The folder cannot be used; the message says why, and what to do."""


class FolderHeldError(FolderError):
    """Another process that lives is writing to the folder."""


class Folder:
    """Files by a relative name with "/" between; `address` is a path or a URL such as `s3://bucket/runs/x`.

    All methods raise `FolderError` where the disk or the store does not do as asked.
    """

    def __init__(self, address: str) -> None:
        """Raises `FolderError` for an address of no known kind, and for a file of this machine's."""
        self.address = address
        self._lost = ""
        try:
            files, root = fsspec.core.url_to_fs(address, **_OPTIONS.get(address.partition("://")[0], {}))
        except (ValueError, ImportError, OSError) as error:
            raise FolderError(f"{address}: {error}") from error
        root = root.rstrip("/")
        self._store: Store = Disk(root) if isinstance(files, LocalFileSystem) else Elsewhere(files, root)
        if file := next((path for path in _way_to(self.local_path) if os.path.isfile(path)), None):
            raise FolderError(f"{file} is a file; name a folder")

    @property
    def local_path(self) -> Path | None:
        """The folder on this machine's disk; `None` for any other address."""
        return self._store.path if isinstance(self._store, Disk) else None

    def read(self, name: str) -> bytes | None:
        """A file's bytes; `None` where there is none."""
        with self._told(name, "read"):
            return self._store.read(name)

    @contextmanager
    def lines(self, name: str) -> Iterator[Iterator[bytes] | None]:
        """A file's lines without their ends, one by one, inside the block; `None` where there is no such file."""
        with self._told(name, "read"), self._store.lines(name) as lines:
            yield None if lines is None else (line.rstrip(b"\n") for line in lines)

    def names(self, folder: str) -> list[str]:
        """The names of the files right inside `folder`, sorted; none where there is no such folder."""
        with self._told(folder, "listed"):
            return sorted(self._store.names(folder))

    def below(self, folder: str) -> list[str]:
        """The paths of all files below `folder`, and of the folders, which end with "/", sorted."""
        with self._told(folder, "listed"):
            return sorted(self._store.below(folder))

    def is_without(self, names: Collection[str]) -> bool:
        """Whether the folder holds files or folders, and none of these; what is hidden by a dot does not count."""
        with self._told("", "listed"):
            shown = {name for name in self._store.entries() if not name.startswith(".")}
        return bool(shown) and shown.isdisjoint(names)

    def write(self, name: str, content: bytes, *, once: bool = False) -> None:
        """Writes a file whole. `once`: it is never replaced; where one is there, another process has written it."""
        with self._writing(name, once=once) as file:
            file.write(content)

    def create(self, name: str, content: bytes) -> bool:
        """Writes a file where there is none; whether it did. Of several processes one does, but on a disk."""
        try:
            with self._told(name, "written"), self._store.writing(name, once=True) as file:
                file.write(content)
        except FileExistsError:
            return False
        return True

    @contextmanager
    def writing(self, name: str) -> Iterator[IO[bytes]]:
        """A file to fill; it takes its place as the block ends, and leaves nothing behind where the block raises."""
        with self._writing(name, once=False) as file:
            yield file

    def delete(self, name: str) -> None:
        """Takes a file away where there is one."""
        with self._told(name, "deleted"):
            self._store.delete(name)

    def lose(self, why: str) -> None:
        """From now on nothing is written here any more, with this sentence: the folder is another process's."""
        self._lost = why

    @contextmanager
    def _writing(self, name: str, *, once: bool) -> Iterator[IO[bytes]]:
        if self._lost:
            raise FolderError(self._lost)
        try:
            with self._told(name, "written"), self._store.writing(name, once=once) as file:
                yield file
        except FileExistsError as error:
            said = f"{self.address}/{name} is there already: another process is writing to the folder; wait for it"
            raise FolderError(said) from error

    @contextmanager
    def _told(self, name: str, done: str) -> Iterator[None]:
        try:
            yield
        except StoreError as error:
            place = f"{self.address}/{name}" if name else self.address
            raise FolderError(f"{place} cannot be {done} ({error}): {error.remedy}") from error


def _way_to(path: Path | None) -> Iterable[Path]:
    return (path, *path.parents) if path is not None else ()
