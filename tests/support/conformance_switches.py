"""The small system with a store and a component that a command takes away, by a file that is there; sound and not."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from memdock.conformance.target import Commands
from memdock.errors import UnavailableError
from memdock.types import Erasure, Memory, Query, Residue, Selection
from support.remembering import NOTHING_LEFT, Remembering


class WithSwitches(Remembering):
    """`folder/away`: the store is not there. `folder/broken`: what is forgotten cannot be looked for."""

    def __init__(self, model_url: str, folder: Path) -> None:
        super().__init__(model_url)
        self._folder = folder

    @property
    def away(self) -> bool:
        return (self._folder / "away").exists()

    @property
    def broken(self) -> bool:
        return (self._folder / "broken").exists()

    async def check_ready(self) -> None:
        if self.away:
            raise UnavailableError("STORE_UNREACHABLE", "the store is away")

    async def retrieve(self, space: str, query: Query) -> Sequence[Memory]:
        await self.check_ready()
        return await super().retrieve(space, query)

    async def forget(self, space: str, selection: Selection, *, dry_run: bool) -> Erasure:
        erasure = await super().forget(space, selection, dry_run=dry_run)
        left: tuple[Residue, ...] = (replace(NOTHING_LEFT[0], items=1, verified=False, note="cannot be searched"),)
        return replace(erasure, residual=left) if self.broken else erasure


class EmptyWithoutStore(WithSwitches):
    """Says that it is ready, and finds nothing."""

    async def check_ready(self) -> None:
        return

    async def retrieve(self, space: str, query: Query) -> Sequence[Memory]:
        return [] if self.away else await super().retrieve(space, query)


class VerifiesBlindly(WithSwitches):
    """Says that it has looked."""

    async def forget(self, space: str, selection: Selection, *, dry_run: bool) -> Erasure:
        erasure = await super().forget(space, selection, dry_run=dry_run)
        return replace(erasure, residual=NOTHING_LEFT)


class NeverReady(WithSwitches):
    """Answers calls, and says that it cannot."""

    async def check_ready(self) -> None:
        raise UnavailableError("STORE_UNREACHABLE", "not yet")

    async def retrieve(self, space: str, query: Query) -> Sequence[Memory]:
        return await Remembering.retrieve(self, space, query)


def commands(folder: Path) -> Commands:
    """What turns the switches."""
    return Commands(
        store_down=f"touch {folder}/away",
        store_up=f"rm {folder}/away",
        component_break=f"touch {folder}/broken",
        component_mend=f"rm {folder}/broken",
    )


SWITCHED: dict[str, tuple[type[WithSwitches], str]] = {
    "is empty without its store": (EmptyWithoutStore, "P6.store"),
    "verifies blindly": (VerifiesBlindly, "F8.fault"),
    "is never ready": (NeverReady, "P6"),
}
