"""Where the files of a folder are: on this machine's disk, or behind any other address that fsspec knows."""

import errno
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import IO, Any, Protocol, TypeVar

from memdock_evaluator.results.scratch import Scratch

ResultT = TypeVar("ResultT")

_UNFINISHED = ".unfinished"
_AT_ONCE = 8
_TRIES_AT_CONFLICT, _PAUSE_S = 5, 0.2
"""Of a conditional write that met another one, and between its tries."""


class StoreError(Exception):
    """A store that does not do as asked. `remedy`: what its user can do about it."""

    def __init__(self, said: str, remedy: str) -> None:
        super().__init__(said)
        self.remedy = remedy


class Store(Protocol):
    """Files by a relative name with "/" between. Methods raise `StoreError`; what a block raises goes through."""

    def read(self, name: str) -> bytes | None:
        """A file's bytes; `None` where there is none."""

    def lines(self, name: str) -> AbstractContextManager[Iterator[bytes] | None]:
        """A file's lines with their ends, so that a long file need not be in memory; `None` where there is none."""

    def names(self, folder: str) -> list[str]:
        """The names of the files right inside `folder`, in any order."""

    def entries(self) -> list[str]:
        """The names of all files and folders right inside the store."""

    def below(self, folder: str) -> list[str]:
        """The paths of all files below `folder`, and of the folders, which end with "/", in any order."""

    def writing(self, name: str, *, once: bool) -> AbstractContextManager[IO[bytes]]:
        """The file to fill. Raises `FileExistsError` for one of `once` that is there already."""

    def delete(self, name: str) -> None:
        """Takes a file away; there may be none."""


class Disk:
    """A folder of this machine."""

    def __init__(self, root: str) -> None:
        self.path = Path(root)

    def read(self, name: str) -> bytes | None:
        """See `Store`."""
        try:
            return _on_disk(self.path.joinpath(name).read_bytes)
        except FileNotFoundError:
            return None

    @contextmanager
    def lines(self, name: str) -> Iterator[Iterator[bytes] | None]:
        """See `Store`."""
        try:
            file = _on_disk(lambda: self.path.joinpath(name).open("rb"))
        except FileNotFoundError:
            file = None
        if file is None:
            yield None
        else:
            with file as opened:
                yield iter(lambda: _on_disk(opened.readline), b"")

    def names(self, folder: str) -> list[str]:
        """See `Store`."""
        path = self.path / folder
        try:
            return _on_disk(lambda: [entry.name for entry in os.scandir(path) if entry.is_file() and _is_whole(entry)])
        except FileNotFoundError:
            return []

    def entries(self) -> list[str]:
        """See `Store`."""
        try:
            return _on_disk(lambda: [entry.name for entry in os.scandir(self.path) if _is_whole(entry)])
        except FileNotFoundError:
            return []

    def below(self, folder: str) -> list[str]:
        """See `Store`; a link is what it is called, wherever it leads."""

        def walked() -> list[str]:
            return [
                Path(inside, name).relative_to(self.path).as_posix() + end
                for inside, folders, files in os.walk(self.path / folder, onerror=_raise)
                for names, end in ((folders, "/"), (files, ""))
                for name in names
                if not name.endswith(_UNFINISHED)
            ]

        try:
            return _on_disk(walked)
        except FileNotFoundError:
            return []

    @contextmanager
    def writing(self, name: str, *, once: bool) -> Iterator[IO[bytes]]:  # noqa: ARG002 - one process writes, by its lock
        """See `Store`."""
        path = self.path / name
        unfinished = path.with_name(path.name + _UNFINISHED)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with unfinished.open("wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(path)
        except OSError as error:
            _discard(unfinished)
            raise _of_disk(error) from error
        except BaseException:
            _discard(unfinished)
            raise

    def delete(self, name: str) -> None:
        """See `Store`."""
        _on_disk(lambda: self.path.joinpath(name).unlink(missing_ok=True))


class Elsewhere:
    """An address that fsspec knows, such as one of S3; only one process writes there (`lease.py`).

    What lies below a folder of the root, such as `parts`, is listed once and read once, for it is written once: a
    listing or a look takes tens of milliseconds there, and a run looks at its parts again and again.
    """

    def __init__(self, files: Any, root: str) -> None:
        self._files, self._root = files, root
        self._scratch = Scratch()
        self._trees: dict[str, dict[str, set[str]]] = {}

    def read(self, name: str) -> bytes | None:
        """See `Store`."""
        folder, _, last = name.rpartition("/")
        if not folder:
            return self._cat(name)
        if last not in self._tree(folder).get(folder, ()):
            return None
        if (kept := self._scratch.get(name)) is None:
            self._fetch(folder)
            kept = self._scratch.get(name)
        return kept

    @contextmanager
    def lines(self, name: str) -> Iterator[Iterator[bytes] | None]:
        """See `Store`; the file has been read as a whole."""
        content = self.read(name)
        yield None if content is None else iter(content.splitlines(keepends=True))

    def names(self, folder: str) -> list[str]:
        """See `Store`."""
        if folder:
            return list(self._tree(folder).get(folder, ()))
        try:
            # An object store's listing is cached for the life of the process unless one asks for it anew.
            found = self._call(lambda: self._files.ls(self._root, detail=True, refresh=True))
        except FileNotFoundError:
            return []
        return [_last(entry["name"]) for entry in found if entry["type"] == "file"]

    def entries(self) -> list[str]:
        """See `Store`."""
        try:
            found = self._call(lambda: self._files.ls(self._root, detail=False, refresh=True))
        except FileNotFoundError:
            return []
        return [name for entry in found if (name := _last(entry))]

    def below(self, folder: str) -> list[str]:
        """See `Store`; an object store has no folders of their own."""
        tree = self._tree(folder).items()
        return [f"{inside}/{name}" for inside, names in tree if f"{inside}/".startswith(f"{folder}/") for name in names]

    @contextmanager
    def writing(self, name: str, *, once: bool) -> Iterator[IO[bytes]]:
        """See `Store`. The file is uploaded as the block ends; an object is there once its upload has ended."""
        folder, _, last = name.rpartition("/")
        # The ending tells the store what it holds, so that a browser shows a report.
        with tempfile.NamedTemporaryFile(suffix=PurePosixPath(name).suffix) as file:
            try:
                yield file
                file.flush()
            except OSError as error:
                raise _of_disk(error) from error
            self._put(file.name, name, once=once)
            if folder:
                self._tree(folder).setdefault(folder, set()).add(last)
                self._scratch.keep(name, Path(file.name).read_bytes())

    def delete(self, name: str) -> None:
        """See `Store`."""
        try:
            self._call(lambda: self._files.rm_file(self._path(name)))
        except FileNotFoundError:
            return

    def _put(self, source: str, name: str, *, once: bool, tries: int = _TRIES_AT_CONFLICT) -> None:
        mode = "create" if once else "overwrite"
        try:
            self._call(lambda: self._files.put_file(source, self._path(name), mode=mode))
        except FileExistsError:
            # Also where an upload came through and its answer did not: then it was tried again, and finds itself.
            if self._cat(name) != Path(source).read_bytes():
                raise
        except FileNotFoundError as error:
            raise StoreError(str(error), "correct the address") from error
        except StoreError as error:
            if (
                once
                and tries > 1
                and isinstance(error.__cause__, Exception)
                and _code(error.__cause__) == "ConditionalRequestConflict"
            ):
                # S3: another one writes the same just now, and it is to be seen which of the two is the first.
                time.sleep(_PAUSE_S)
                self._put(source, name, once=True, tries=tries - 1)
                return
            if not (once and getattr(error.__cause__, "errno", None) == errno.ENOSYS):
                raise
            # A store that cannot write under a condition.
            if self._cat(name) is not None:
                raise FileExistsError(name) from error
            self._put(source, name, once=False)

    def _tree(self, folder: str) -> dict[str, set[str]]:
        """The names in each folder below the first one of `folder`'s path."""
        top = folder.partition("/")[0]
        if top not in self._trees:
            try:
                paths = self._call(lambda: self._files.find(self._path(top), refresh=True))
            except FileNotFoundError:
                paths = []
            tree = self._trees[top] = {}
            for path in paths:
                inside, _, last = str(path).removeprefix(f"{self._root}/").rpartition("/")
                tree.setdefault(inside, set()).add(last)
        return self._trees[top]

    def _fetch(self, folder: str) -> None:
        """All files of a folder, at once."""
        names = [f"{folder}/{last}" for last in self._tree(folder)[folder]]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for name, content in zip(names, pool.map(self._cat, names), strict=True):
                self._scratch.keep(name, content or b"")

    def _cat(self, name: str) -> bytes | None:
        try:
            return bytes(self._call(lambda: self._files.cat_file(self._path(name))))
        except FileNotFoundError:
            return None

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    def _call(self, work: Callable[[], ResultT]) -> ResultT:
        """The answer; errors are the store's own, of any class, but for files that are or are not there."""
        try:
            return work()
        except FileExistsError:
            raise
        except FileNotFoundError as error:
            if _code(error) == "NoSuchBucket":
                raise StoreError(str(error), "make it, or correct the address") from error
            raise
        except Exception as error:
            raise StoreError(_in_words(error), _remedy(error)) from error


def _on_disk(work: Callable[[], ResultT]) -> ResultT:
    try:
        return work()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _of_disk(error) from error


def _raise(error: OSError) -> None:
    raise error


def _discard(unfinished: Path) -> None:
    with suppress(OSError):  # there may be none, and a disk that takes nothing may not let go of it either
        unfinished.unlink()


def _of_disk(error: OSError) -> StoreError:
    remedies = {
        **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "free some space, then the same command goes on"),
        **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "make it writable, or give another folder"),
    }
    return StoreError(error.strerror or str(error), remedies.get(error.errno or 0, "then give the same command again"))


def _code(error: BaseException) -> str:
    """What a store on S3's protocol calls its error; "" for another's."""
    response = getattr(error.__cause__ or error, "response", None)
    return str(response["Error"].get("Code", "")) if isinstance(response, dict) and "Error" in response else ""


def _in_words(error: Exception) -> str:
    said = (str(error) or type(error).__name__).strip().rstrip(".")
    code = _code(error)
    return f"{said}, {code}" if code and code not in said else said


def _remedy(error: Exception) -> str:
    if isinstance(error, PermissionError) or "Credentials" in type(error).__name__:
        return "check the credentials and what they allow (to read, write and list)"
    return "once it answers again, the same command goes on"


def _is_whole(entry: "os.DirEntry[str]") -> bool:
    return not entry.name.endswith(_UNFINISHED)


def _last(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]
