"""One process at a time at an address that has no locks: a lease object that its holder renews while it lives.

No clock is compared: whoever finds a lease looks whether it is renewed, and takes it over where it is not.

Taken by a conditional write, it is renewed by a plain one, which every store can. So a late beat of a holder that was
out of reach may replace the lease of who took over: that one finds it at its own next beat, and gives way. What both
write in those seconds does no harm: parts, and the manifest of a merge, are written under a condition (`once`), and
all else is made of them.
"""

import os
import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import orjson

from memdock_evaluator.results.folder import Folder, FolderError, FolderHeldError

LEASE = ".lease"
BEAT_S = 3.0
"""A lease is renewed as often."""
DEAD_S = 5 * BEAT_S
"""A lease that was not renewed for as long is nobody's."""


@contextmanager
def leased(folder: Folder, say: Callable[[str], None] = lambda _: None) -> Iterator[None]:
    """Holds the lease of a folder as long as the block runs; `say` gets a sentence where that must be waited for.

    Raises `FolderHeldError` where a process that lives holds it, `FolderError` where the store does not answer. A
    holder that was out of reach for so long that another took over writes nothing any more: its folder is lost.
    """
    lease = _Lease(folder)
    lease.take(say)
    renewing = threading.Thread(target=lease.renew, name="lease", daemon=True)
    renewing.start()
    try:
        yield
    finally:
        lease.ended.set()
        renewing.join()
        lease.give_back()


class _Lease:
    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._holder = {"host": socket.gethostname(), "process": os.getpid(), "token": secrets.token_hex(8)}
        self._beats = 0
        self.ended = threading.Event()

    def take(self, say: Callable[[str], None]) -> None:
        while not self._folder.create(LEASE, self._written()):
            if (found := self._folder.read(LEASE)) is None:
                continue  # given back meanwhile
            where = self._folder.address
            say(f"{where} is held by {_named(found)}: waiting {DEAD_S:g} s to see whether that still runs")
            if not self._stands_still(found):
                continue
            self._folder.write(LEASE, self._written())
            # Of several who take over at once, the one who wrote last holds it.
            self.ended.wait(BEAT_S)
            if not self._is_mine():
                raise self._held()
            return

    def _stands_still(self, found: bytes) -> bool:
        """Whether nobody renews it; not: it was given back. Raises `FolderHeldError` where its holder lives."""
        for _ in range(round(DEAD_S / BEAT_S)):
            self.ended.wait(BEAT_S)
            if (now := self._folder.read(LEASE)) is None:
                return False
            if now != found:
                raise self._held()
        return True

    def renew(self) -> None:
        while not self.ended.wait(BEAT_S):
            # A store that does not answer now is told by what is written there; the next beat may come through.
            with suppress(FolderError):
                if not self._is_mine():
                    self._folder.lose(
                        f"{self._folder.address} was taken over by {_named(self._folder.read(LEASE))}, for this run "
                        "was out of reach: what it has written is kept, let the other one go on"
                    )
                    return
                self._beats += 1
                self._folder.write(LEASE, self._written())

    def give_back(self) -> None:
        # Where that fails, the lease ends by itself.
        with suppress(FolderError):
            if self._is_mine():
                self._folder.delete(LEASE)

    def _written(self) -> bytes:
        return orjson.dumps({**self._holder, "beats": self._beats})

    def _is_mine(self) -> bool:
        return str(self._holder["token"]).encode() in (self._folder.read(LEASE) or b"")

    def _held(self) -> FolderHeldError:
        found = _named(self._folder.read(LEASE))
        return FolderHeldError(
            f"another run is writing to {self._folder.address} ({found}): wait for it, or give another --out"
        )


def _named(lease: bytes | None) -> str:
    try:
        found = orjson.loads(lease or b"")
        return f"process {found['process']} on {found['host']}"
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return "an unknown process"
