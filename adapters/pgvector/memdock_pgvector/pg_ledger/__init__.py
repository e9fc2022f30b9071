"""The turn ledger in the memory's own database and transaction."""

from memdock_pgvector.pg_ledger.ledger import PgLedger

__all__ = ["PgLedger"]
