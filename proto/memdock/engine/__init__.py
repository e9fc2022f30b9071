"""The protocol's promises around a memory system: `Ledgered(system, ledger)` is a `Service`."""

from memdock.engine.service import Ledgered

__all__ = ["Ledgered"]
