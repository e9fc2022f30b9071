"""The folder of a run, on a disk or at any other address that fsspec knows: a file is there whole or not at all."""

import os
import tempfile
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import fsspec
from fsspec.implementations.local import LocalFileSystem


class FolderError(Exception):
    """The folder cannot be used; the message says why."""


class Folder:
    """Files by a relative name with "/" between; `address` is a path or a URL such as `s3://bucket/runs/x`."""

    def __init__(self, address: str) -> None:
        """Raises `FolderError` for an address of no known kind, and for a file of this machine's."""
        self.address = address
        try:
            self._files, root = fsspec.core.url_to_fs(address)
        except (ValueError, ImportError, OSError) as error:
            raise FolderError(f"{address}: {error}") from error
        self._root = root.rstrip("/")
        self._local = isinstance(self._files, LocalFileSystem)
        if file := next((path for path in _way_to(self.local_path) if os.path.isfile(path)), None):
            raise FolderError(f"{file} is a file; name a folder")

    @property
    def local_path(self) -> Path | None:
        """The folder on this machine's disk; `None` for any other address."""
        return Path(self._root) if self._local else None

    def read(self, name: str) -> bytes | None:
        """A file's bytes; `None` where there is none. Raises `FolderError` where it cannot be read."""
        try:
            content = self._files.cat_file(self._path(name))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise FolderError(f"{self.address}/{name} cannot be read ({error.strerror or error})") from error
        return bytes(content)

    def names(self, folder: str) -> list[str]:
        """The names of the files right inside `folder`, sorted; none where there is no such folder."""
        try:
            # An object store's listing is cached for the life of the process unless one asks for it anew.
            entries: list[dict[str, Any]] = self._files.ls(self._path(folder), detail=True, refresh=True)
        except FileNotFoundError:
            return []
        names = (entry["name"].rsplit("/", 1)[-1] for entry in entries if entry["type"] == "file")
        return sorted(name for name in names if not name.endswith(_UNFINISHED))

    def is_without(self, names: Collection[str]) -> bool:
        """Whether the folder holds files or folders, and none of these; what is hidden by a dot does not count."""
        try:
            entries: list[str] = self._files.ls(self._root, detail=False, refresh=True)
        except FileNotFoundError:
            return False
        found = {entry.rstrip("/").rsplit("/", 1)[-1] for entry in entries}
        shown = {name for name in found if name and not name.startswith(".") and not name.endswith(_UNFINISHED)}
        return bool(shown) and shown.isdisjoint(names)

    def write(self, name: str, content: bytes) -> None:
        """Writes a file whole."""
        with self.writing(name) as file:
            file.write(content)

    @contextmanager
    def writing(self, name: str) -> Iterator[IO[bytes]]:
        """A file to fill; it takes its place as the block ends, and leaves nothing behind where the block raises."""
        with self._writing_here(name) if self._local else self._writing_elsewhere(name) as file:
            yield file

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root

    @contextmanager
    def _writing_here(self, name: str) -> Iterator[IO[bytes]]:
        path = Path(self._path(name))
        unfinished = path.with_name(path.name + _UNFINISHED)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with unfinished.open("wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(path)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise

    @contextmanager
    def _writing_elsewhere(self, name: str) -> Iterator[IO[bytes]]:
        # An object store shows an object once its upload has ended, so that the upload is what must be short.
        with tempfile.TemporaryFile() as file:
            yield file
            file.seek(0)
            with self._files.open(self._path(name), "wb") as target:
                while chunk := file.read(_CHUNK_BYTES):
                    target.write(chunk)


def _way_to(path: Path | None) -> Iterable[Path]:
    return (path, *path.parents) if path is not None else ()


_UNFINISHED = ".unfinished"
_CHUNK_BYTES = 1 << 20
