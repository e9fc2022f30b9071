"""One process at a time: a lock on a file of this machine, free again when its last holder has ended, however."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(path: Path) -> Iterator[int]:
    """Holds the lock of a file, made with its folder where it is missing; gives the descriptor, which may be inherited.

    Raises `BlockingIOError` where another process holds it, any other `OSError` where the file cannot be made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield file.fileno()
