"""Whose the variables `MEMDOCK_...` of the environment are.

The client's have bare names (`MEMDOCK_URL`); each other program's begin with its own prefix. A program takes its own,
passes over those of the others, and refuses what nobody knows: a misspelt name must never turn into a default.
"""

from collections.abc import Collection, Iterable

CLIENT = frozenset(
    {
        "MEMDOCK_CA_FILE",
        "MEMDOCK_CERT_FILE",
        "MEMDOCK_CERT_KEY_FILE",
        "MEMDOCK_KEY",
        "MEMDOCK_KEYS_FILE",
        "MEMDOCK_KEY_FILE",
        "MEMDOCK_SYSTEM",
        "MEMDOCK_TIMEOUT",
        "MEMDOCK_URL",
    }
)
"""Of the command `memdock`."""

PREFIXES = (
    "MEMDOCK_ADAPTER_",
    "MEMDOCK_EMBEDDER",
    "MEMDOCK_EVAL_",
    "MEMDOCK_GATEWAY_",
    "MEMDOCK_METER_",
    "MEMDOCK_PGVECTOR_",
)
"""Of the other programs."""


def unknown_variables(names: Iterable[str], own: Collection[str]) -> list[str]:
    """Those of `names` that no program knows, sorted. `own`: all that the asking program knows, with one prefix."""
    others = tuple(prefix for prefix in PREFIXES if not any(name.startswith(prefix) for name in own))
    return sorted(
        name
        for name in names
        if name.startswith("MEMDOCK_") and not name.startswith(others) and name not in own and name not in CLIENT
    )
