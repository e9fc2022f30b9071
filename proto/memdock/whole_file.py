"""Files that are replaced in one step: no reader and no crash ever sees a part of one."""

import os
import secrets
from pathlib import Path


def write_whole(path: Path, text: str, *, private: bool = False) -> None:
    """Writes the file, on the disk when this returns; `private`: only its owner can read it. Raises `OSError`."""
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    file = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o644)
    try:
        with os.fdopen(file, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)
        _sync_folder(path.parent)
    finally:
        partial.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
