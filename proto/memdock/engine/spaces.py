"""What a server knows of a space beside the ledger, while somebody works on it."""

import asyncio
from weakref import WeakValueDictionary

from memdock.ledger import ErasureKind, Intent


class Space:
    """One space: its lock, its barrier, its open erasures, and who wants to know of changes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lock = asyncio.Lock()
        """Held around each `add`, `forget` and `reset` of the system, first come, first served."""
        self.barrier = 0
        """The place in the order up to which buffers must be closed; 0: none."""
        self.wanted = False
        """There may be work for the worker."""
        self.working = False
        """A worker is running."""
        self.resets_begun = 0
        """How often a Reset began: what was read before one is not shown after it."""
        self._resets_open = 0
        self._forgetting: dict[int, frozenset[str]] = {}
        self._changed = asyncio.Event()

    @property
    def resetting(self) -> bool:
        """A Reset has begun and has not ended: what the system holds is of the past."""
        return self._resets_open > 0

    @property
    def changed(self) -> asyncio.Event:
        """Is set at the next change of turns; take it before looking at the ledger."""
        return self._changed

    def notify(self) -> None:
        """Tells those who wait that turns have changed."""
        self._changed.set()
        self._changed = asyncio.Event()

    def hides(self, memory_id: str) -> bool:
        """A Forget of this memory is under way."""
        return any(memory_id in memory_ids for memory_ids in self._forgetting.values())

    def begin_reset(self) -> None:
        """From now on nothing of the system is shown and no turn is worked on."""
        self.resets_begun += 1
        self._resets_open += 1

    def end_reset(self) -> None:
        """Takes one `begin_reset` back."""
        self._resets_open -= 1

    def begin_erasure(self, intent: Intent) -> None:
        """From now on what the erasure takes is not shown."""
        self._forgetting[intent.erasure_id] = frozenset(intent.selection.memory_ids)
        if intent.kind is ErasureKind.RESET:
            self.begin_reset()

    def end_erasure(self, intent: Intent) -> None:
        """Takes one `begin_erasure` back."""
        del self._forgetting[intent.erasure_id]
        if intent.kind is ErasureKind.RESET:
            self.end_reset()


class Spaces:
    """The spaces that somebody holds; the others cost nothing."""

    def __init__(self) -> None:
        self._held: WeakValueDictionary[str, Space] = WeakValueDictionary()

    def at(self, name: str) -> Space:
        """The space of that name, the same for all who hold it at once."""
        space = self._held.get(name)
        if space is None:
            space = self._held[name] = Space(name)
        return space

    def notify_all(self) -> None:
        """Wakes whoever waits for a change in any space."""
        for space in list(self._held.values()):
            space.notify()
