"""The turn ledger in one SQLite file: the default for a system whose own store cannot share a transaction."""

from memdock.sqlite_ledger.ledger import SqliteLedger

__all__ = ["SqliteLedger"]
