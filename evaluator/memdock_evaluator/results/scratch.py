"""Files of an address that is not on this machine, kept beside it for as long as a process works on them."""

import tempfile
import threading
import weakref


class Scratch:
    """Contents by name, in one file that has no name itself: it is gone with the process, however that ends.

    Several threads may use it.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed below
        self._places: dict[str, tuple[int, int]] = {}
        self._lock = threading.Lock()
        weakref.finalize(self, self._file.close)

    def keep(self, name: str, content: bytes) -> None:
        """Keeps a content that will not change. Raises `OSError` where the disk is full."""
        with self._lock:
            start = self._file.seek(0, 2)
            self._file.write(content)
            self._file.flush()
            self._places[name] = start, len(content)

    def get(self, name: str) -> bytes | None:
        """What was kept; `None` where nothing was."""
        if name not in self._places:
            return None
        start, size = self._places[name]
        with self._lock:
            self._file.seek(start)
            return self._file.read(size)
