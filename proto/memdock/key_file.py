"""The file of API keys: JSON, replaced as a whole, readable by its owner alone."""

import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from memdock.key_document import parse_keys, render_keys
from memdock.keys import Key
from memdock.whole_file import write_whole


class KeyFileError(ValueError):
    """The file is not a key file; the message names the file, the entry and what to do."""


def read_keys(path: Path) -> tuple[Key, ...]:
    """The keys, in the file's order. Raises `KeyFileError`."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise KeyFileError(f"{path}: there is no such file; `memdock keys create` makes one") from None
    except OSError as problem:
        raise KeyFileError(f"{path}: cannot be read: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise KeyFileError(f"{path}: is not UTF-8 text") from None
    except json.JSONDecodeError as problem:
        raise KeyFileError(f"{path}: is not JSON: look at line {problem.lineno}, column {problem.colno}") from None
    except (ValueError, RecursionError):  # Python's own bounds: of a number's digits, of how deep brackets stand
        raise KeyFileError(f"{path}: is no key file: a number in it is too long, or brackets stand too deep") from None
    try:
        return parse_keys(document)
    except ValueError as problem:
        raise KeyFileError(f"{path}: {problem}") from None


@contextmanager
def editing(path: Path) -> Iterator["KeyFile"]:
    """The keys to change; they are written when the block ends well. Two processes take turns.

    A file that does not exist is an empty one. Raises `KeyFileError`.
    """
    try:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as problem:
        raise KeyFileError(f"{path}: cannot be written: {problem.strerror}") from None
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        file = KeyFile(read_keys(path) if path.exists() else ())
        yield file
        write_whole(path, render_keys(file.keys.values()), private=True)
    except OSError as problem:
        raise KeyFileError(f"{path}: cannot be written: {problem.strerror}") from None
    finally:
        os.close(folder)


class KeyFile:
    """The keys of a file by key id, while it is edited."""

    def __init__(self, keys: Sequence[Key]) -> None:
        self.keys: dict[str, Key] = {key.key_id: key for key in keys}

    def find(self, key_id: str) -> Key:
        """The key. Raises `KeyFileError` naming those that are there."""
        if key_id not in self.keys:
            known = ", ".join(self.keys) or "none"
            raise KeyFileError(f"there is no key {key_id!r}; the file has: {known}")
        return self.keys[key_id]
